#!/usr/bin/python3
"""communicator_symbols_test.py ARCHIVE PAGE: a program that joins a job gets what plans schedules, and nothing of the commands. ARCHIVE,
libespalier-communicator.a, neither defines nor needs a symbol of the option parser, of the JSON library, of tools/ or of espalier-node, and has no text of
PAGE, the script of the pages that `espalier draw` writes."""
import pathlib
import re
import subprocess
import sys
import unittest

ARCHIVE, PAGE = sys.argv[1], sys.argv[2]
OF_THE_COMMAND = {"the option parser": r"\bCLI::", "the JSON library": r"\bnlohmann\b", "tools/": r"\bespalier::tools::",
                  "espalier-node": r"\bespalier::node::(usage|parse_options)\b"}


class Symbols(unittest.TestCase):
    def test_none_is_of_the_command(self):
        names = subprocess.run(["nm", "-C", ARCHIVE], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertTrue(any("espalier::planner::" in name for name in names), "the archive has the planner")
        for what, pattern in OF_THE_COMMAND.items():
            found = [name for name in names if re.search(pattern, name)]
            self.assertEqual(found[:5], [], f"{len(found)} symbols of {what}")

    def test_no_text_is_of_the_page(self):
        lines = [line.strip() for line in pathlib.Path(PAGE).read_text().splitlines()]
        line = max((line for line in lines if not line.startswith("//") and '"' not in line), key=len)
        self.assertNotIn(line.encode(), pathlib.Path(ARCHIVE).read_bytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
