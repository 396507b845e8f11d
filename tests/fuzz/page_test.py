#!/usr/bin/python3
"""docs/results/fuzz.md has the form that tests/fuzz/page.py writes, a row of figures for each target, and a test and inputs for each
finding. Each target with sources has a dictionary.

page_test.py PAGE
"""
import pathlib
import re
import sys
import tomllib

import dictionary
import page as pages

HERE = pathlib.Path(__file__).resolve().parent
path = pathlib.Path(sys.argv[1])
kept, inputs = path.read_text(), pages.archives()
wrong = []
if pages.render(kept, {}) != kept:
    wrong.append(f"{path} is old; expected what tests/fuzz/page.py --write makes of it")
rows = pages.kept_rows(kept)
for name in inputs:
    cells = rows.get(name, [])
    if len(cells) != len(pages.COLUMNS) or not all(re.fullmatch(r"[0-9]+", cell) for cell in cells):
        wrong.append(f"{path} has no figures of the target {name}; expected that tests/fuzz/run.sh ran it")
        continue
    executions, _, edges, features, last_edge, ran = map(int, cells)
    if not 0 < edges <= features or not executions or last_edge > ran:
        wrong.append(f"{path}: the figures of {name} contradict each other")
# A made-up campaign replaces the row of one target only.
some = min(inputs)
made = pages.render(kept, {some: {"executions": 120, "seconds": 60, "edges": 7, "features": 9, "last_edge_s": 30}})
changed = [line for line in made.splitlines() if line not in kept.splitlines()]
if changed != [f"| `{some}` | 120 | 2 | 7 | 9 | 0 | 1 | {len(inputs[some])} |"]:
    wrong.append(f"page.py makes {changed} of a campaign")
for each in tomllib.loads((HERE / "found.toml").read_text())["found"]:
    lost = [name for name in each["inputs"] if name not in inputs.get(each["target"], [])]
    if lost or not (HERE.parents[1] / each["test"]).is_file():
        wrong.append(f"found.toml: {each['target']}: no {lost or each['test']}")
for target in dictionary.SOURCES:
    if target not in inputs or len(dictionary.dictionary(target)) < 2:
        wrong.append(f"dictionary.py: {target} has no words")
if wrong:
    sys.exit("page_test.py: " + "\n".join(wrong))
print(f"{len(inputs)} targets, {sum(map(len, inputs.values()))} inputs")
