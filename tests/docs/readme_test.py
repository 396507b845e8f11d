#!/usr/bin/python3
"""readme_test.py ESPALIER README: the README lists the algorithms as `espalier list` prints them."""
import pathlib
import subprocess
import sys

program, readme = sys.argv[1:]
listed = subprocess.run([program, "list"], check=True, capture_output=True, text=True).stdout
if f"<!-- espalier list -->\n```\n{listed}```\n" in pathlib.Path(readme).read_text():
    print("the README lists every algorithm")
else:
    print(f"put this below <!-- espalier list --> in {readme}:\n{listed}")
    sys.exit(1)
