#!/usr/bin/python3
"""quotes_test.py [--write] ESPALIER DOC: below each line of commands in the document stands what the last of them prints. --write: puts
it there, long lines wrapped."""
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

writes = sys.argv[1:2] == ["--write"]
program, document = (pathlib.Path(path).resolve() for path in sys.argv[1 + writes:])
text = document.read_text()
quotes = re.findall(r"```\n\$ (.*?)\n((?:(?!```).*\n)*)```", text)
bad = [] if len(quotes) >= 2 else [f"{len(quotes)} quotes found, at least 2 expected"]
with tempfile.TemporaryDirectory() as directory:
    for command, quoted in quotes:
        steps = [step.split() for step in command.split(" && ")]
        for step in steps:
            done = subprocess.run([program, *step[1:]], cwd=directory, check=True, capture_output=True, text=True)
        # Long lines are wrapped in the document.
        if done.stdout.split() != quoted.split():
            bad.append(f"{command}\nprints\n{done.stdout}\nthe document says\n{quoted}")
            lines = [textwrap.fill(line, 130, subsequent_indent=" " * 13, drop_whitespace=True, replace_whitespace=False, break_on_hyphens=False)
                     if len(line) > 130 else line for line in done.stdout.rstrip("\n").split("\n")]
            text = text.replace(f"$ {command}\n{quoted}```", f"$ {command}\n" + "\n".join(lines) + "\n```")
if writes:
    document.write_text(text)
    sys.exit(0)
print("\n".join(bad) or f"the document quotes {len(quotes)} commands as they print")
sys.exit(1 if bad else 0)
