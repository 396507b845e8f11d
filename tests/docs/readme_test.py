#!/usr/bin/python3
"""readme_test.py ESPALIER ROOT: each command of the table in "Five minutes" runs, one after the other in
one folder, and prints the words that the table quotes first. The sentence below the plot has the ratios of what was measured.
readme_test.py --write ROOT: puts that sentence there."""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

BEGIN = "<!-- printed by tests/docs/readme_test.py --write -->\n"  # up to an empty line
PLACE, COLLECTIVE = "hosts-8", "allreduce"

program, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(root / "tests/bench"))
import peers_page  # noqa: E402


def ratios():
    """The sentence below the plot, from the measurements of docs/results/peers.md."""
    cells, *_ = peers_page.merged([json.loads((root / "tests/bench/peers_runs.json").read_text())])
    found = [(peers_page.size_text(cell.size), f"{cell.ratio():.2f}") for cell in cells
             if (cell.place, cell.collective) == (PLACE, COLLECTIVE)]
    faster, slower = ([f"{ratio} at {size}" for size, ratio in found if (float(ratio) < 1) == wanted] for wanted in (True, False))
    return textwrap.fill(
        f"Time of Espalier / time of the fastest of Open MPI and MPICH, tuned by hand or not: {', '.join(faster)}. Not faster: "
        f"{', '.join(slower)} ([all collectives](docs/results/peers.md)).",
        140, break_long_words=False, break_on_hyphens=False) + "\n"


def commands_that_fail(text):
    section = re.search(r"^## Five minutes\n(.*?)^## ", text, re.M | re.S).group(1)
    rows = re.findall(r"^\| `espalier ([^`]+)` \| `([^`]+)`", section, re.M)
    if len(rows) != 6:
        yield f"{len(rows)} commands found, not 6"
    with tempfile.TemporaryDirectory() as folder:
        for command, words in rows:
            done = subprocess.run([pathlib.Path(program).resolve(), *shlex.split(command)], cwd=folder, capture_output=True, text=True)
            # Columns are padded.
            if done.returncode != 0 or " ".join(words.split()) not in " ".join(done.stdout.split()):
                yield (f"espalier {command}\nends with status {done.returncode}, expected 0 and '{words}'; prints\n"
                       f"{done.stdout}{done.stderr}")


def main():
    readme = root / "README.md"
    text = readme.read_text()
    before, mark, rest = text.partition(BEGIN)
    kept, _, after = rest.partition("\n\n")
    if program == "--write":
        readme.write_text(f"{before}{mark}{ratios()}\n{after}")
        return []
    bad = list(commands_that_fail(text))
    if not mark or kept + "\n" != ratios():
        bad.append(f"README.md: below '{BEGIN.strip()}', expected:\n{ratios()}readme_test.py --write ROOT puts it there")
    return bad


found = main()
print("\n".join(found) or "the README is as its sources, and its commands print what it quotes")
sys.exit(1 if found else 0)
