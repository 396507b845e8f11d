#!/usr/bin/python3
"""30 cancels find nothing wrong; docs/results/cancel.md has the form that the command prints, and its run found nothing either.

page_test.py CANCEL PAGE
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

cancel, page = sys.argv[1:]


with tempfile.TemporaryDirectory() as folder:
    ran = subprocess.run([cancel, "--rounds", "30", "--page", folder], stdout=subprocess.PIPE, text=True)
    print(ran.stdout, flush=True)
    if ran.returncode:
        sys.exit(ran.returncode)
    now = (pathlib.Path(folder) / "cancel.md").read_text()
kept = pathlib.Path(page).read_text()
if pages.form(kept) != pages.form(now):
    sys.exit(f"page_test.py: {page} is old; expected the form of\n{now}")
for row in ("| processes that hang | 0 |", "| other causes, wrong results, ranks that could not go on | 0 |"):
    if row not in kept.splitlines():
        sys.exit(f"page_test.py: {page} lacks the row {row}")
rounds = int(re.search(r"^\| rounds, each with a cancel \| ([0-9]+) \|$", kept, re.M)[1])
kills = int(re.search(r"^\| rounds with a kill at the same moment \| ([0-9]+) \|$", kept, re.M)[1])
if rounds < 1000 or kills < 200:
    sys.exit(f"page_test.py: {page} has {rounds} rounds and {kills} kills; expected 1000 and 200")
