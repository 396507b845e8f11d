#!/usr/bin/env python3
"""A sample of the judge's cases is right; docs/results/status.md has the form that it prints, and no wrong answer.

page_test.py ESPALIER HELD PAGE
"""
import pathlib
import re
import subprocess
import sys
import tempfile

espalier, held, page = sys.argv[1:]
JUDGE = pathlib.Path(__file__).resolve().parent / "judge.py"


def form(text):
    """The lines without their numbers."""
    return re.sub(r"[0-9]+(\.[0-9]+)?", "0", text.replace(" -", " 0"))


with tempfile.TemporaryDirectory() as folder:
    new = pathlib.Path(folder) / "status.md"
    done = subprocess.run([sys.executable, JUDGE, "--cases", "7", "--records", "3", "--jobs", "2", "--page", new, espalier, held])
    if done.returncode:
        sys.exit(done.returncode)
    now = new.read_text(encoding="utf-8")
kept = pathlib.Path(page).read_text(encoding="utf-8")
if form(kept) != form(now):
    sys.exit(f"page_test.py: {page} is old; expected the form of\n{now}")
answers = re.findall(r"([0-9]+) of ([0-9]+) ", kept)
if not answers or any(right != all_of for right, all_of in answers):
    sys.exit(f"page_test.py: {page} has wrong answers")
