#!/usr/bin/python3
"""verifier_test.py BROKEN_SCHEDULES DOC: the document quotes what the program prints, line for line."""
import pathlib
import subprocess
import sys
import tempfile

program, document = sys.argv[1:]
text = " ".join(pathlib.Path(document).read_text().split())
with tempfile.TemporaryDirectory() as directory:
    lines = subprocess.run([program, directory], check=True, capture_output=True, text=True).stdout.splitlines()
bad = [f"not in the document: {line}" for line in lines if " ".join(line.split()) not in text]
if len(lines) != 20:
    bad.append(f"{len(lines)} lines printed, not 20")
print("\n".join(bad) or "the document has every line")
sys.exit(1 if bad else 0)
