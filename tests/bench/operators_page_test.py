#!/usr/bin/python3
"""docs/results/operators.md has the form that the command prints.

operators_page_test.py OPERATORS PAGE
"""
import pathlib
import re
import subprocess
import sys

operators, page = sys.argv[1:]


def form(text):
    """The lines without their numbers, and without the versions that the processor lacks."""
    return re.sub(r"[0-9]+(\.[0-9]+)?|none", "0", text)


kept = pathlib.Path(page).read_text()
now = subprocess.run([operators, "1"], stdout=subprocess.PIPE, text=True, check=True).stdout
if form(kept) != form(now):
    sys.exit(f"operators_page_test.py: {page} is old; expected the form of\n{now}")
print(f"{len(re.findall('^. [a-z]', kept, re.M))} rows have the form of {operators}'s")
