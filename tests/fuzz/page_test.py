#!/usr/bin/python3
"""docs/results/fuzz.md has a row for each fuzz target, without a failure.

page_test.py PAGE CORPUS TARGET...
"""
import pathlib
import re
import sys

page, corpus, *targets = sys.argv[1:]
rows = {name: [int(number) for number in cells.split("|")]
        for name, cells in re.findall(r"^\| ([a-z]+) \| ([0-9 |]+) \|$", pathlib.Path(page).read_text(), re.M)}
kept = {path.stem for path in pathlib.Path(corpus).glob("*.tar")}
if not set(targets) <= kept:
    sys.exit(f"page_test.py: no corpus of {sorted(set(targets) - kept)}; expected a file tests/fuzz/corpus/TARGET.tar")
if set(rows) != kept:
    sys.exit(f"page_test.py: {page} and tests/fuzz/corpus differ in {sorted(set(rows) ^ kept)}; tests/fuzz/run.sh prints the page")
for name, (executions, _, edges, inputs, failures) in rows.items():
    if failures or not executions or not edges or not inputs:
        sys.exit(f"page_test.py: {name}: {executions} executions, {edges} edges, {inputs} inputs, {failures} failures")
print(f"{len(rows)} targets")
