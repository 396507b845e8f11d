#!/usr/bin/python3
"""The record of docs/results/random.md has the present output of the command for the sample, and the page is made of it. Nothing wrong was
accepted in the whole campaign.

page_test.py RANDOM_PROGRAMS
"""
import re
import subprocess
import sys
import unittest

import page
from page import RECORD, sections

PROGRAM = sys.argv[1]
WHOLE = "--accepted 100000"


def row(lines, name):
    """The numbers of the row with this name."""
    return next([int(cell) for cell in line.split("|")[2:-1]] for line in lines
                if line.startswith("|") and line.split("|")[1].strip() == name)


class Page(unittest.TestCase):
    head, record = sections(RECORD.read_text())

    def compare(self, written, read):
        for new, old in zip(written, read):
            self.assertEqual(new, old, f"{RECORD.name} is old: {PROGRAM} {WHOLE} prints it anew")
        self.assertEqual(len(written), len(read))

    def test_is_made_of_the_record(self):
        self.assertEqual(page.PAGE.read_text(), page.page(RECORD.read_text()), "tests/random/page.py --page writes it anew")

    def test_sample(self):
        ran = subprocess.run([PROGRAM], stdout=subprocess.PIPE, text=True)
        head, printed = sections(ran.stdout)
        ((title, written),) = printed.items()
        print(f"a sample: {title}; the whole campaign: {PROGRAM} {WHOLE}")
        self.assertEqual(ran.returncode, 0, "something wrong was accepted")
        self.compare([re.sub(r"--seeds \d+", WHOLE, line) for line in head], self.head)
        self.compare(written, self.record[title])

    def test_whole(self):
        whole = self.record["All of this run"]
        (accepted,) = row(whole, "accepted for every N")
        self.assertGreaterEqual(accepted, 100000)
        (differ,) = row(whole, "of these with ranks that differ in strides, paces or instances")
        self.assertGreaterEqual(2 * differ, accepted)
        (windows,) = row(whole, "looked at near an N of up to 2^29")
        self.assertGreater(windows, accepted / 2)
        broken = row(whole, "all")
        self.assertEqual(sum(broken[1:]), broken[0])
        longer = row(whole, "all ranks: a longer window")[0]
        # The other seeds have no program that the dice find a way to break.
        self.assertGreaterEqual(broken[0] - longer, 100000, "tried again with one rank's program broken")
        self.assertEqual([*row(whole, "**accepted and wrong, whole or broken**"), broken[-1]], [0, 0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
