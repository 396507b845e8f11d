#!/usr/bin/python3
"""The record of docs/results/verify.md has what is proven now, the page is made of it, and proofs grow no faster than the schedule.

verify_test.py ESPALIER      one row in SAMPLE of those of less than half a second, in turn; ESPALIER_WHOLE=1: all rows
"""
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import pages
import proofs
import verify_page
from sample import sampled

PROGRAM = sys.argv[1]
WHOLE = os.environ.get("ESPALIER_WHOLE") == "1"
SAMPLE = 4


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.record = pages.read(verify_page.RECORD)
        cls.sections = proofs.sections(PROGRAM)

    def test_is_made_of_the_record(self):
        self.assertEqual(verify_page.PAGE.read_text(), verify_page.page_from_record(), "verify_page.py --page writes it anew")

    def test_has_every_row(self):
        by_title = verify_page.sections(self.record)
        self.assertEqual(list(by_title), [title for title, _ in self.sections])
        for title, cases in self.sections:
            with self.subTest(title):
                self.assertEqual([verify_page.key_of(row) for row in by_title[title]], [verify_page.key(case) for case in cases])

    def test_every_row_is_for_every_block_count_or_says_why_not(self):
        for row in self.record:
            self.assertRegex(row["proven for"], r"^(every N( = \d+ mod \d+)?$|N = 1, the only one |refused: .*(expected |"
                                                r"cannot be lowered: |are more than can be checked; ))", row)

    def test_figures(self):
        compared = 0
        rows = zip(self.record, (case for _, cases in self.sections for case in cases))
        for number, (row, case) in enumerate(rows):
            if not WHOLE and (float(row["s"]) >= verify_page.AFFORDABLE_SECONDS or not sampled(number, SAMPLE)):
                continue
            with self.subTest(number):
                self.assertEqual(proofs.prove(PROGRAM, case).exact(), verify_page.exact_of(row),
                                 f"{row['ranks']} ranks, {case}: verify_page.py --write writes the record anew")
            compared += 1
        self.assertGreater(compared, 100)


class Scale(unittest.TestCase):
    """Counts, not times: a proof that expands more than necessary fails on every machine."""
    # Operations for each progression read; two-tree allreduce of 1,024 ranks takes 4, all-to-all by leaf 5.
    MOST_PER_PROGRESSION = 8
    TWO_TREE_MOST_GROWTH = 1.1  # of operations per rank
    LEAF_MOST_GROWTH = 4 / 3    # of operations per message: the longest way has 8 links for h = 4, and 6 for h = 3

    def operations(self, case):
        proof = proofs.prove(PROGRAM, case)
        self.assertTrue(proof.verdict["for_all"], proof.verdict)
        self.assertLessEqual(proof.operations(), self.MOST_PER_PROGRESSION * proof.verdict["progressions"], case)
        return proof.operations()

    @staticmethod
    def two_tree(ranks):
        return proofs.Case("allreduce", "two-tree", f"complete:{ranks}")

    def test_allreduce_by_two_trees(self):
        few, many = (self.operations(self.two_tree(ranks)) / ranks for ranks in (1024, 16384))
        self.assertLessEqual(many / few, self.TWO_TREE_MOST_GROWTH)

    def test_all_to_all_by_leaf(self):
        few, many = (self.operations(proofs.Case("all-to-all", "leaf", f"fattree:k=4,h={height},c=1")) /
                     (4**height * (4**height - 1)) for height in (3, 4))
        self.assertLessEqual(many / few, self.LEAF_MOST_GROWTH)

    def test_the_limits_see_an_expansion(self):
        """Where every N is expanded on all ranks, as is done with schedules that are not periodic."""
        periodic = proofs.prove(PROGRAM, self.two_tree(256))
        expanded = proofs.prove(PROGRAM, self.two_tree(256), "--blocks", str(periodic.verdict["proven_blocks"]))
        self.assertFalse(expanded.verdict["for_all"])
        self.assertEqual(expanded.verdict["progressions"], 0)
        self.assertGreater(expanded.operations(), self.MOST_PER_PROGRESSION * periodic.verdict["progressions"])
        self.assertGreater(expanded.operations() / periodic.operations(), 5 * self.TWO_TREE_MOST_GROWTH)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
