#!/usr/bin/python3
"""Writes docs/results/fuzz.md from the statistics of tests/fuzz/run.sh: page.py [--results FOLDER] [--write] PAGE

A target that has no results in FOLDER (build-fuzz/results) keeps its row of PAGE. Prints the page, or writes it with --write.
"""
import argparse
import json
import pathlib
import re
import sys
import tarfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pages import markdown

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ("executions", "per second", "edges", "features", "last new edge after", "ran for")
HEAD = """# Fuzzing

Written by `tests/fuzz/page.py --write docs/results/fuzz.md` from libFuzzer's final statistics. `tests/fuzz/run.sh 3600` fuzzes each target
with libFuzzer, ASan and UBSan until one hour after its last new edge of the program; `--at-most SECONDS` ends it earlier. The campaigns of this page ran at the lowest priority on one core of a busy machine, one after another, so the executions
per second are far fewer than those of an idle core. Times are in seconds. A target that ended less than 3600 seconds after its last
new edge can still find others. libFuzzer's entropic schedule is off: it took nine tenths of the processor time of the target
`schedule`, whose 3000 executions took 38 s with it and 3.8 s without it.

The head of each target's source in `tests/fuzz/` says what it feeds and what it demands. Edges and features are libFuzzer's: those that
all inputs of the campaign reach together. Each target's archive in `tests/fuzz/corpus/` keeps a smallest set of inputs that reach the same
edges, at most 2 KiB each, and inputs with names, which somebody wrote or which once failed. `./test.sh` replays the archives.

"""
FOUND = """
## What was found

Each was mended, with a test that failed before. `rig` is `tests/hil/fuzz_test.py`, which changes rigs and test lists by seed, without
libFuzzer: `./test.sh` runs 4000 mutants.

"""


def archives():
    """Returns the names of the inputs of each target."""
    found = {}
    for path in sorted((HERE / "corpus").glob("*.tar")):
        with tarfile.open(path) as archive:
            found[path.stem] = archive.getnames()
    return found


def kept_rows(page):
    """Returns the cells of each target's row, without the number of inputs."""
    rows = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == len(COLUMNS) + 2:
            rows[cells[0].strip("`")] = cells[1:-1]
    return rows


def row(results):
    seconds = results["seconds"]
    return [str(results["executions"]), str(round(results["executions"] / max(seconds, 1))), str(results["edges"]),
            str(results["features"]), str(results["last_edge_s"]), str(seconds)]


def render(page, results):
    """Returns the page. page: its text before. results: of campaigns, by target."""
    rows, inputs = kept_rows(page), archives()
    rows.update({name: row(each) for name, each in results.items()})
    shown = [[f"`{name}`", *rows.get(name, ["not run"] * len(COLUMNS)), str(len(names))] for name, names in inputs.items()]
    targets = markdown(("target", *COLUMNS, "inputs kept"), shown, (*COLUMNS, "inputs kept"))
    entries = tomllib.loads((HERE / "found.toml").read_text())["found"]
    found = [[f"`{each['target']}`", each["what"], ", ".join(f"`{name}`" for name in each["inputs"]), f"`{each['test']}`"]
             for each in entries]
    return HEAD + targets + FOUND + markdown(("target", "what", "inputs", "test"), found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page")
    parser.add_argument("--results", default=str(HERE.parents[1] / "build-fuzz/results"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    path = pathlib.Path(options.page)
    results = {each.stem: json.loads(each.read_text()) for each in pathlib.Path(options.results).glob("*.json")}
    text = render(path.read_text() if path.exists() else "", results)
    if options.write:
        path.write_text(text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
