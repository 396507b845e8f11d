#!/usr/bin/python3
"""pages_test.py: a page of docs/results and its record are refused if one row of them changes."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pages

COLUMNS = ("name", "steps")
ROWS = [["chain, of p", 3], ["ring", 5]]


class Tables(unittest.TestCase):
    def test_markdown(self):
        self.assertEqual(pages.markdown(("a", "b"), [["x|y", 1]], ("b",)), "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n")

    def test_tables(self):
        self.assertEqual(pages.tables("# T\n\n## A\n\n| n | m |\n| --- | --- |\n| 1 | 2 |\n\n## B\n"), {"A": [["1", "2"]], "B": []})

    def test_csv(self):
        text = pages.csv_text(COLUMNS, ROWS)
        self.assertEqual(text, 'name,steps\n"chain, of p",3\nring,5\n')
        self.assertEqual(pages.rows_of(text), [{"name": "chain, of p", "steps": "3"}, {"name": "ring", "steps": "5"}])
        self.assertEqual(pages.csv_text(COLUMNS, pages.rows_of(text)), text)

    def test_differences(self):
        lines = "".join(f"{k}\n" for k in range(90))
        self.assertEqual(pages.differences("x", lines, lines), [])
        self.assertEqual(pages.differences("x", lines, lines.replace("7\n8\n", "7\n9\n", 1))[1:], ["@@ -9 +9 @@", "-8", "+9"])
        self.assertIn("more lines", pages.differences("x", lines, "")[-1])

    def test_wrapped(self):
        text = pages.wrapped(f"{'word ' * 27}`some code` [a link](b.md)\n- an item")
        self.assertEqual([len(line) for line in text.splitlines()], [134, 26, 9])

    def test_worst(self):
        self.assertEqual(pages.worst(ROWS, lambda row: row[1], 1), [["ring", 5]])


class Checked(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name in ("tests/a", "docs/results", "build/tests/a"):
            (self.root / name).mkdir(parents=True)
        kept = mock.patch.multiple(pages, ROOT=self.root, RESULTS=self.root / "docs/results")
        kept.start()
        self.addCleanup(kept.stop)
        self.rows = [list(row) for row in ROWS]
        self.program = str(self.root / "build/tests/a/a")
        self.page = pages.Page(self.root / "tests/a/page.py", "a.md", ("a.csv",), self.compute, lambda record: f"# A\n\n{record['a.csv'][0]['steps']}\n")
        self.page.main(["--write", self.program])

    def compute(self, program):
        self.assertEqual(program, self.program)
        return {"a.csv": pages.csv_text(COLUMNS, self.rows), "a.svg": "<svg/>"}

    def check(self):
        """What --check ends with; None: nothing is wrong."""
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                return self.page.main(["--check", self.program])
            except SystemExit as end:
                return str(end)

    def change(self, file, old, new):
        path = self.root / file
        self.assertIn(old, path.read_text())
        path.write_text(path.read_text().replace(old, new))

    def test_what_was_written_is_right(self):
        self.assertIsNone(self.check())
        self.assertEqual((self.root / "build/tests/a/a.svg").read_text(), "<svg/>")
        self.assertEqual([path.name for path in self.root.glob("[dt]*/**/*.svg")], [])
        self.assertEqual((self.root / "build/tests/a/a.csv").read_text(), (self.root / "tests/a/a.csv").read_text())

    def test_a_row_that_the_page_does_not_show(self):
        self.rows[1][1] = 6
        self.assertIn("-ring,5\n+ring,6", self.check())
        self.assertEqual((self.root / "build/tests/a/a.csv").read_text(), pages.csv_text(COLUMNS, self.rows))
        self.rows[1][1] = 5
        self.change("tests/a/a.csv", "ring,5", "ring,4")
        self.assertIn("-ring,4\n+ring,5", self.check())

    def test_a_row_less(self):
        self.rows.pop()
        self.assertIn("-ring,5", self.check())

    def test_the_page(self):
        self.change("docs/results/a.md", "3", "2")
        self.assertIn("docs/results/a.md (-)", self.check())
        self.page.main(["--page"])
        self.assertIsNone(self.check())

    def test_other_words(self):
        for words in ([], ["--write"], ["--check", "a", "b"]):
            with self.assertRaises(SystemExit):
                self.page.main(words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
