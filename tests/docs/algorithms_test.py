#!/usr/bin/python3
"""algorithms_test.py ESPALIER PAGE: the page lists the algorithms as `espalier list` prints them."""
import pathlib
import subprocess
import sys

program, page = sys.argv[1:]
listed = subprocess.run([program, "list"], check=True, capture_output=True, text=True).stdout
if f"<!-- espalier list -->\n```\n{listed}```\n" in pathlib.Path(page).read_text():
    print("the page lists every algorithm")
else:
    print(f"put this below <!-- espalier list --> in {page}:\n{listed}")
    sys.exit(1)
