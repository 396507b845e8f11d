#!/usr/bin/python3
"""docs/results/storm.md has the form that the command prints, no seed broke a promise, and the tests that it names exist.

page_test.py STORM PAGE
"""
import pathlib
import re
import subprocess
import sys
import tempfile

storm, page = sys.argv[1:]


def form(text):
    """The lines without their numbers and without the verdicts, which a short run has not all of."""
    text = re.sub(r"(\| seeds that ended with .*\n.*\n)(\|.*\n)*", r"\1", text)
    return re.sub(r"[0-9]+", "0", text)


kept = pathlib.Path(page).read_text()
with tempfile.TemporaryDirectory() as folder:
    runs = []
    for carrier in ("network", "frames", "tcp", "mem", "mem+tcp"):
        runs.append(pathlib.Path(folder) / carrier)
        ran = subprocess.run([storm, "--over", carrier, "3", "0"], stdout=subprocess.PIPE, text=True)
        if ran.returncode:
            sys.exit(ran.stdout)
        runs[-1].write_text(ran.stdout)
    ran = subprocess.run([storm, "--page", *runs], stdout=subprocess.PIPE, text=True, check=True)
if form(kept) != form(ran.stdout):
    sys.exit(f"page_test.py: {page} is old; expected the form of\n{ran.stdout}")
broke = re.search(r"^\| seeds that broke a promise \|(.*) \|$", kept, re.M)[1]
if set(broke.replace(" ", "").split("|")) != {"0"}:
    sys.exit(f"page_test.py: {page} has seeds that broke a promise:{broke}")
tests = re.findall(r"\[`(\w+)\.(\w+)`\]\((\S+)\)", kept)
for suite, name, path in tests:
    if not re.search(rf"\bTEST(_F|_P)?\({suite}, {name}\)", (pathlib.Path(page).parent / path).read_text()):
        sys.exit(f"page_test.py: {path} has no test {suite}.{name}")
print(re.search(r"^\| number of seeds .*", kept, re.M)[0], f"{len(tests)} regression tests")
