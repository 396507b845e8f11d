#!/usr/bin/python3
"""quotes_test.py ESPALIER DOC: below each line of commands in the document stands what the last of them prints."""
import pathlib
import re
import subprocess
import sys
import tempfile

program, document = (pathlib.Path(path).resolve() for path in sys.argv[1:])
quotes = re.findall(r"```\n\$ (.*?)\n((?:(?!```).*\n)*)```", document.read_text())
bad = [] if len(quotes) >= 2 else [f"{len(quotes)} quotes found, at least 2 expected"]
with tempfile.TemporaryDirectory() as directory:
    for command, quoted in quotes:
        steps = [step.split() for step in command.split(" && ")]
        for step in steps:
            done = subprocess.run([program, *step[1:]], cwd=directory, check=True, capture_output=True, text=True)
        # Long lines are wrapped in the document.
        if done.stdout.split() != quoted.split():
            bad.append(f"{command}\nprints\n{done.stdout}\nthe document says\n{quoted}")
print("\n".join(bad) or f"the document quotes {len(quotes)} commands as they print")
sys.exit(1 if bad else 0)
