#!/usr/bin/python3
"""docs/results equals the present output of the commands that write it, and every number of the papers is right.

pages_test.py PAPERS DESCRIPTORS RESULTS   (two programs, the folder docs/results)
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PAPERS, DESCRIPTORS, RESULTS = sys.argv[1:4]


class Pages(unittest.TestCase):
    def same(self, name, written):
        kept = (pathlib.Path(RESULTS) / name).read_text()
        for number, (new, old) in enumerate(zip(written.splitlines(), kept.splitlines()), 1):
            self.assertEqual(new, old, f"docs/results/{name}, line {number} is old; write the page anew")
        self.assertEqual(written, kept, f"docs/results/{name} is old; write it anew")

    def test_papers(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run([PAPERS, "--write", folder], stdout=subprocess.PIPE, text=True)
            wrong = [line for line in ran.stdout.splitlines() if line.startswith("WRONG")]
            self.assertEqual(wrong, [])
            self.assertEqual(ran.returncode, 0)
            for file in sorted(pathlib.Path(folder).iterdir()):
                self.same(file.name, file.read_text())

    def test_descriptors(self):
        self.same("descriptors.md", subprocess.run([DESCRIPTORS], check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
