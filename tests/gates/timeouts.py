#!/usr/bin/python3
"""Gate: every test ends by the one limit of meson.build (its add_test_setup), which only a hang reaches.

timeouts.py BUILD    fails for tests of BUILD with a limit of their own: `timeout : 0` is none, others are reached on slow machines
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

DEFAULT = 30  # seconds; meson's own, to be multiplied


def find(build):
    info = pathlib.Path(build) / "meson-info"
    for test in json.loads((info / "intro-tests.json").read_text()):
        if test["timeout"] != DEFAULT:
            yield f"{info}/intro-tests.json:1: the test '{test['name']}' has timeout : {test['timeout']}"


if __name__ == "__main__":
    sys.exit(tree.report(list(find(sys.argv[1])), "take 'timeout' out of its meson.build"))
