#!/usr/bin/python3
"""Gate: every test has the one time limit of meson.build (its add_test_setup), which only a hang reaches.

timeouts.py BUILD    fails for tests of BUILD with their own limit: `timeout : 0` means no limit, and slow machines reach others
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

DEFAULT = 30  # seconds; meson's own, which the test setup multiplies


def find(build):
    info = pathlib.Path(build) / "meson-info"
    for test in json.loads((info / "intro-tests.json").read_text()):
        if test["timeout"] != DEFAULT:
            yield f"{info}/intro-tests.json:1: the test '{test['name']}' has timeout : {test['timeout']}"


if __name__ == "__main__":
    sys.exit(tree.report(list(find(sys.argv[1])), "take 'timeout' out of its meson.build"))
