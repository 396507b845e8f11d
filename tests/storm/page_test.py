#!/usr/bin/python3
"""docs/results/storm.md has the form that the command prints, and no seed broke a promise.

page_test.py STORM PAGE
"""
import pathlib
import re
import subprocess
import sys

storm, page = sys.argv[1:]


def form(text):
    """The lines without their numbers; of the verdicts, which a short run has not all of, only the head."""
    return re.sub(r"[0-9]+", "0", text.partition("| seeds that ended with")[0])


kept = pathlib.Path(page).read_text()
ran = subprocess.run([storm, "--page", "64", "0"], stdout=subprocess.PIPE, text=True)
if ran.returncode:
    sys.exit(ran.stdout)
if form(kept) != form(ran.stdout):
    sys.exit(f"page_test.py: {page} is old; expected the form of\n{ran.stdout}")
if not re.search(r"^\| seeds that broke a promise \| 0 \|$", kept, re.M):
    sys.exit(f"page_test.py: {page} has seeds that broke a promise")
print(re.search(r"^\| seeds \| [0-9]+", kept, re.M)[0])
