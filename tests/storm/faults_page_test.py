#!/usr/bin/python3
"""docs/results/faults.md is what the command prints, and no point broke a promise.

faults_page_test.py STORM PAGE
"""
import pathlib
import subprocess
import sys

storm, page = sys.argv[1:]
ran = subprocess.run([storm, "--single-faults"], stdout=subprocess.PIPE, text=True)
if ran.returncode:
    sys.exit(ran.stdout)
if pathlib.Path(page).read_text() != ran.stdout:
    sys.exit(f"faults_page_test.py: {page} is old: {storm} --single-faults writes it anew\n{ran.stdout}")
print(next(line for line in ran.stdout.splitlines() if line.startswith("| all |")))
