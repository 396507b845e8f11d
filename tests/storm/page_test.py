#!/usr/bin/python3
"""docs/results/storm.md has the tables that page.py makes, no seed broke a promise, and the tests that it names exist.

page_test.py STORM PAGE
"""
import pathlib
import re
import subprocess
import sys

import page

storm, path = sys.argv[1:]
RUN = ("WRONG seed 3: hang\ntally over network\nfirst seed: {}\nseeds: 50\nseeds that broke a promise: 0\ncollectives, counted on each node: 0\n"
       "block messages: 7\nms of the processor: 0\nfault tick: 3\nended with dead link: 2\nend of the tally\n")


def check_sums():
    """Runs are added up; two runs of one seed, none, and one that was cut short are refused."""
    both = page.tables(page.tallies(RUN.format(100) + RUN.format(150)))
    for row in ("| seeds | 100 to 199 |", "| block messages | 14 |", "| tick | 6 |", "| dead link | 4 |"):
        assert row in both, both
    for text, says in (("", "expected a run's tally, to its end"), (RUN.format(1)[:-9], "expected a run's tally, to its end"),
                       (RUN.format(0) + RUN.format(49), "two runs over network had seed 49")):
        try:
            page.tables(page.tallies(text))
            sys.exit(f"page_test.py: not refused, expected '{says}':\n{text}")
        except ValueError as error:
            assert str(error) == says, error


def form(text):
    """The lines without their numbers and without the verdicts, which a short run has not all of."""
    text = re.sub(r"(\| seeds that ended with .*\n.*\n)(\|.*\n)*", r"\1", text)
    return re.sub(r"[0-9]+", "0", text)


check_sums()
kept, printed = pathlib.Path(path).read_text(), ""
for carrier in page.CARRIERS:
    ran = subprocess.run([storm, "--over", carrier, "3", "0"], stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(ran.stdout)
    printed += ran.stdout
now = page.with_tables(kept, page.tables(page.tallies(printed)))
if form(kept) != form(now):
    sys.exit(f"page_test.py: {path} is old; expected the form of\n{now}")
broke = re.search(r"^\| seeds that broke a promise \|(.*) \|$", kept, re.M)[1]
if set(broke.replace(" ", "").split("|")) != {"0"}:
    sys.exit(f"page_test.py: {path} has seeds that broke a promise:{broke}")
tests = re.findall(r"\[`(\w+)\.(\w+)`\]\((\S+)\)", kept)
for suite, name, file in tests:
    if not re.search(rf"\bTEST(_F|_P)?\({suite}, {name}\)", (pathlib.Path(path).parent / file).read_text()):
        sys.exit(f"page_test.py: {file} has no test {suite}.{name}")
print(re.search(r"^\| number of seeds .*", kept, re.M)[0], f"{len(tests)} regression tests")
