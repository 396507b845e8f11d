#!/usr/bin/python3
"""algorithm_pages_test.py ESPALIER ROOT: what algorithm_pages.py refuses, and that it finds what was changed by hand."""
import contextlib
import io
import pathlib
import shutil
import sys
import tempfile
import unittest

import algorithm_facts as facts
import algorithm_pages

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
WORDS = algorithm_pages.WORDS.read_text()


class Refusals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.words = pathlib.Path(folder.name) / "algorithms.toml"
        self.addCleanup(setattr, algorithm_pages, "WORDS", algorithm_pages.WORDS)
        algorithm_pages.WORDS = self.words

    def refused(self, text, *expected):
        self.words.write_text(text)
        with self.assertRaises(facts.Wrong) as raised:
            algorithm_pages.Pages(PROGRAM, ROOT)
        for words in expected:
            self.assertIn(words, str(raised.exception))

    def test_words(self):
        self.refused(WORDS.replace("\n[chain]\n", "\n[chains]\n"), "tests/docs/algorithms.toml", "'chain'", "[chain]")
        self.refused(WORDS + "\n[unheard-of]\nwhat = 'x'\nfrom = 'x'\n", "tests/docs/algorithms.toml", "[unheard-of]")
        self.refused(WORDS.replace("\n[chain]\nwhat", "\n[chain]\nwhat_else"), "[chain]", "'what_else'")
        self.refused(WORDS.replace("[PY09]", "[PY99]"), "[PY99]", "docs/algorithms/README.md")

    def test_from(self):
        self.refused(WORDS.replace('from = "[Bruck97]"\n', ""), "[bruck] has no `from` for allgather and all-to-all", "[SST09], section 4.1")
        self.refused(WORDS.replace("[Bruck97]", "").replace("[HFM88]", ""), "[bruck] has no", "[dissemination] has no")
        self.refused(WORDS.replace('from = "[Bruck97]"\n', "from = 'folklore'\n"), "[bruck] has no `from`")
        self.refused(WORDS.replace('from.exscan = "[SST09], section 4.3, Fig. 4"\n', ""), "[two-tree] has no `from` for exscan")
        self.refused(WORDS.replace("from.exscan = ", "from.barrier = ''\nfrom.exscan = ", 1), "from.barrier", "expected broadcast")
        self.refused(WORDS.replace('from = "[DD96], section 3.1"', 'from = "[DD96]"'), "[leaf-multiport]", "'[DD96], section 2'")
        self.refused(WORDS.replace("; the ring: [PY09]", "; the ring: [DD96]"), "does not say where", "[DD96]")


class Changes(unittest.TestCase):
    """In a copy of what the pages are made from."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "docs/algorithms", self.root / "docs/algorithms")
        for folder in ("algorithms", "search"):
            shutil.copytree(ROOT / "collectives" / folder, self.root / "collectives" / folder)
        shutil.copy(ROOT / "README.md", self.root)
        self.folder = self.root / "docs/algorithms"
        self.pages = algorithm_pages.Pages(PROGRAM, self.root)

    def change(self, path, old, new):
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def test_strays(self):
        self.assertEqual(list(algorithm_pages.strays(self.pages)), [])
        (self.folder / "chain.md").rename(self.folder / "chains.md")
        found = "\n".join(algorithm_pages.strays(self.pages))
        for words in ("algorithms/chain.md: the algorithm has no page", "algorithms/chains.md: no algorithm"):
            self.assertIn(words, found)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(algorithm_pages.main("--check", PROGRAM, self.root), 1)
        self.assertIn("chain.md: the algorithm has no page", printed.getvalue())

    def test_rows(self):
        when = (self.folder / "when.md").read_text()
        self.assertEqual(list(algorithm_pages.difference(self.pages, algorithm_pages.indices(self.pages, when))), [])
        name = self.pages.names[0]
        self.change(self.folder / f"{name}.md", "\n## Cost\n", "\n## Costs\n")
        self.assertIn(f"{name}.md (-)", "\n".join(algorithm_pages.difference(self.pages, self.pages.page(name, when))))
        self.change(self.root / "README.md", "| [broadcast](", "| [[broadcast](")
        self.assertIn("README.md (-)", "\n".join(algorithm_pages.difference(self.pages, algorithm_pages.indices(self.pages, when))))

    def test_pictures(self):
        for name, expected in (("chain.md", "chain.md: the part 'picture'"), ("when.md", "when.md: the lines of pictures")):
            self.change(self.folder / name, ".svg", "-.svg")
            with self.assertRaisesRegex(facts.Wrong, expected):
                algorithm_pages.sampled(self.pages)

    def test_rankings(self):
        pair = next(pair for pair in algorithm_pages.sampled_pairs(self.pages) if pair[0].topology == "complete:16")
        rankings = self.pages.rank([pair])
        algorithm_pages.check_rows(rankings, (self.folder / "when.md").read_text())
        section = (self.folder / "when.md").read_text().partition(f"\n## {pair[1]}\n")[2]
        row = next(line for line in section.splitlines() if pair[0].name in line)
        for wrong in (row.replace(" | [", " | x [", 1), row.replace(pair[0].name, "`complete:15`", 1)):
            self.assertNotEqual(row, wrong)
            with self.assertRaises(facts.Wrong):
                algorithm_pages.check_rows(rankings, f"## {pair[1]}\n" + section.replace(row, wrong, 1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
