#!/usr/bin/python3
"""docs/results/simulate.md has the present output of its command.

simulate_test.py ESPALIER PAGE      ESPALIER_WHOLE=1: also the rows of the page that take longer
"""
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

import simulate_page
from pages import tables  # simulate_page adds its folder to the path

PROGRAM, PAGE = sys.argv[1:3]
WHOLE = os.environ.get("ESPALIER_WHOLE") == "1"


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.printed = tables(pathlib.Path(PAGE).read_text())
        cls.rows = [(cells, case) for title, cases in simulate_page.SECTIONS
                    for cells, case in zip(cls.printed[title], cases)]

    def test_has_every_row(self):
        self.assertEqual(list(self.printed), [title for title, _ in simulate_page.SECTIONS])
        for title, cases in simulate_page.SECTIONS:
            self.assertEqual([cells[:5] for cells in self.printed[title]], [case.key() for case in cases])
            self.assertTrue(all(len(cells) == len(simulate_page.COLUMNS) for cells in self.printed[title]))

    def test_messages(self):
        """Rows that are not run here too: two trees bring each rank but the root 2N blocks, a ring p - 1 to each."""
        for cells, case in self.rows:
            if case in simulate_page.TWO_TREE + simulate_page.RING:
                ranks = int(case.topology.removeprefix("complete:"))
                each = 2 * 64 if case in simulate_page.TWO_TREE else ranks
                self.assertEqual(cells[6], f"{(ranks - 1) * each:,}", case)
        self.assertTrue(all(cells[5] == "64" for cells, case in self.rows if case in simulate_page.TWO_TREE))

    def test_data_change_nothing(self):
        for title, cases in simulate_page.SECTIONS:
            by_case = dict(zip(cases, self.printed[title]))
            for case, cells in by_case.items():
                other = simulate_page.dataclasses.replace(case, data=not case.data)
                if other in by_case:
                    self.assertEqual(cells[5:simulate_page.EXACT], by_case[other][5:simulate_page.EXACT], case)

    def test_figures(self):
        compared = 0
        for cells, case in self.rows:
            if float(cells[simulate_page.EXACT]) >= simulate_page.AFFORDABLE_SECONDS and not WHOLE:
                continue
            self.assertEqual(simulate_page.simulate(PROGRAM, case).exact(), cells[5:simulate_page.EXACT],
                             f"{case}: write the page anew")
            compared += 1
        self.assertGreaterEqual(compared, 4)


class Bar(unittest.TestCase):
    def test_is_drawn_on_a_terminal_and_cleared(self):
        """A run of some seconds: the bar is drawn after the first. proofs.run() sees that a file gets none."""
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "schedule.esp")
            subprocess.run([PROGRAM, "compile", "--no-verify", "--topology", "complete:30000", "--collective", "broadcast",
                            "--algorithm", "two-tree", "-o", file], check=True, stdout=subprocess.DEVNULL)
            parent, child = pty.openpty()
            with subprocess.Popen([PROGRAM, "simulate", file, "--bytes", "512KiB", "--no-data"], stdout=subprocess.DEVNULL,
                                  stderr=child) as process:
                os.close(child)
                drawn = b""
                try:
                    while chunk := os.read(parent, 4096):
                        drawn += chunk
                except OSError:  # the terminal's other end is closed
                    pass
            os.close(parent)
        self.assertEqual(process.returncode, 0, drawn)
        self.assertRegex(drawn, rb"\rsimulating \[[#.]*\] +\d+%")
        self.assertTrue(drawn.endswith(b"\r\x1b[K"), drawn[-80:])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
