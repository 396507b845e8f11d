#!/usr/bin/python3
"""The newest version of each dependency that a whole run of ./test.sh passed with, as a C++ header.

newest_tested.py RUNS   RUNS: tests/releases/runs.json; a run with failures that no later run of the failed tests mended does not count
"""
import json
import pathlib
import re
import sys


def numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)]


def is_whole(run):
    """Whether each test passed in the run, or afterwards. A failure is BUILD: TEST: CASE: MESSAGE; `passed` has 'BUILD TEST'."""
    mended = run.get("mended", {}).get("passed", [])
    return all(" ".join(failure.split(": ")[:2]) in mended for failure in run["failures"])


newest = {}
for run in json.loads(pathlib.Path(sys.argv[1]).read_text()).values():
    for name, version in run["versions"].items() if is_whole(run) else ():
        if numbers(version) > numbers(newest.get(name, "")):
            newest[name] = version
print("#pragma once\nnamespace espalier::tools::doctor {\nstruct NewestTested {\n  const char* name;\n  const char* version;\n};")
print("inline constexpr NewestTested kNewestTested[] = {")
for name, version in sorted(newest.items()):
    print(f'    {{"{name}", "{version}"}},')
print('    {"", ""}};\n}  // namespace espalier::tools::doctor')
