#!/usr/bin/python3
"""The newest version of each dependency that a whole run of ./test.sh passed with, as a C++ header.

newest_tested.py RUNS   RUNS: tests/releases/runs.json; a run with failures does not count
"""
import json
import pathlib
import re
import sys


def numbers(version):
    return [int(number) for number in re.findall(r"\d+", version)]


newest = {}
for run in json.loads(pathlib.Path(sys.argv[1]).read_text()).values():
    for name, version in run["versions"].items() if not run["failed"] else ():
        if numbers(version) > numbers(newest.get(name, "")):
            newest[name] = version
print("#pragma once\nnamespace espalier::tools::doctor {\nstruct NewestTested {\n  const char* name;\n  const char* version;\n};")
print("inline constexpr NewestTested kNewestTested[] = {")
for name, version in sorted(newest.items()):
    print(f'    {{"{name}", "{version}"}},')
print('    {"", ""}};\n}  // namespace espalier::tools::doctor')
