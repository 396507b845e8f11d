#!/usr/bin/python3
"""docs/results/random.md has the sample's figures as they are now, and nothing wrong was accepted in the whole campaign.

page_test.py RANDOM_PROGRAMS PAGE
"""
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, PAGE = sys.argv[1:3]


def sections(text):
    """Title -> lines, of each second heading."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {title: body.strip().splitlines() for title, body in zip(parts[1::2], parts[2::2])}


def figure(lines, name):
    return next(int(line.split("|")[2]) for line in lines if line.split("|")[1].strip() == name)


class Page(unittest.TestCase):
    page = sections(pathlib.Path(PAGE).read_text())

    def test_sample(self):
        ran = subprocess.run([PROGRAM], stdout=subprocess.PIPE, text=True)
        (title, written), = sections(ran.stdout).items()
        print(f"a sample: {title}; the whole campaign: {PROGRAM} --accepted 100000")
        for new, old in zip(written, self.page[title]):
            self.assertEqual(new, old, "docs/results/random.md is old; write it anew")
        self.assertEqual(written, self.page[title], "docs/results/random.md is old; write it anew")
        self.assertEqual(ran.returncode, 0, "something wrong was accepted")

    def test_whole(self):
        whole = self.page["All of this run"]
        accepted = figure(whole, "accepted for every N")
        self.assertGreaterEqual(accepted, 100000)
        self.assertGreaterEqual(2 * figure(whole, "of these with ranks that differ in strides, paces or instances"),
                                accepted)
        self.assertEqual(figure(whole, "**accepted and wrong, whole or broken**"), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
