#!/usr/bin/python3
"""A short soak finds nothing wrong; docs/results/soak.md has the form that it prints, and its run found nothing either.

page_test.py SOAK PAGE
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

soak, page = sys.argv[1:]


with tempfile.TemporaryDirectory() as folder:
    plot = pathlib.Path(folder) / "soak.svg"
    ran = subprocess.run([soak, "--page", folder, "--plot", plot, "--verbose"], stdout=subprocess.PIPE, text=True)
    print(ran.stdout, flush=True)
    if ran.returncode:
        sys.exit(ran.returncode)
    now = (pathlib.Path(folder) / "soak.md").read_text()
    if not plot.read_text().startswith("<svg") or "descriptors of the controller" not in plot.read_text():
        sys.exit("page_test.py: soak.svg is no picture")
kept = pathlib.Path(page).read_text()
if pages.form(kept) != pages.form(now):
    sys.exit(f"page_test.py: {page} is old; expected the form of\n{now}")
for row in ("| wrong results, other causes and hangs | 0 |", "| findings | 0 |"):
    if row not in kept.splitlines():
        sys.exit(f"page_test.py: {page} lacks the row {row}")
print(re.search(r"^\| minutes \| [0-9.]+", kept, re.M)[0])
