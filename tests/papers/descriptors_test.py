#!/usr/bin/python3
"""descriptors_test.py DESCRIPTORS: docs/results/descriptors.md is what this program prints."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

PAGE = pages.RESULTS / "descriptors.md"
now = subprocess.run(sys.argv[1:2], check=True, stdout=subprocess.PIPE, text=True).stdout
if bad := pages.differences("docs/results/descriptors.md", PAGE.read_text(encoding="utf-8"), now):
    sys.exit("\n".join([*bad, f"{sys.argv[1]} >docs/results/descriptors.md writes it anew"]))
print(f"{len(now.splitlines())} lines are as printed")
