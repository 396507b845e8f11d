#!/usr/bin/python3
"""serial_test.py FIGURES PAGE...: every line that FIGURES prints stands in one of the pages, and each page has one of them at least."""
import pathlib
import subprocess
import sys

pages = {name: pathlib.Path(name).read_text().splitlines() for name in sys.argv[2:]}
printed = [line for line in subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.splitlines() if line]
bad = [f"no page has: {line}" for line in printed if not any(line in page for page in pages.values())]
bad += [f"{name} has no printed line" for name, page in pages.items() if not set(printed) & set(page)]
if not printed:
    bad.append("nothing was printed")
print("\n".join(bad) or f"{len(printed)} lines are in {len(pages)} pages as they are printed")
sys.exit(1 if bad else 0)
