#!/usr/bin/python3
"""readme_test.py ESPALIER README: each command of the table in "Five minutes" runs, one after the other in one folder, and prints the
words that the table quotes first."""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

program, readme = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
section = re.search(r"^## Five minutes\n(.*?)^## ", readme.read_text(), re.M | re.S).group(1)
rows = re.findall(r"^\| `espalier ([^`]+)` \| `([^`]+)`", section, re.M)
bad = [] if len(rows) == 6 else [f"{len(rows)} commands found, not 6"]
with tempfile.TemporaryDirectory() as folder:
    for command, words in rows:
        done = subprocess.run([program, *shlex.split(command)], cwd=folder, capture_output=True, text=True)
        # Columns are padded.
        if done.returncode != 0 or " ".join(words.split()) not in " ".join(done.stdout.split()):
            bad.append(f"espalier {command}\nends with status {done.returncode}, expected 0 and '{words}'; prints\n"
                       f"{done.stdout}{done.stderr}")
print("\n".join(bad) or f"{len(rows)} commands print what the README quotes")
sys.exit(1 if bad else 0)
