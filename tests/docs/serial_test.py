#!/usr/bin/python3
"""serial_test.py FIGURES PAGE: every line that FIGURES prints stands in the page."""
import pathlib
import subprocess
import sys

page = pathlib.Path(sys.argv[2]).read_text().splitlines()
printed = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines()
missing = [line for line in printed if line not in page]
for line in missing:
    print(f"{sys.argv[2]} lacks: {line}")
if not printed:
    print("nothing was printed")
sys.exit(1 if missing or not printed else 0)
