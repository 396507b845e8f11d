#!/usr/bin/python3
"""verifier_test.py BROKEN_SCHEDULES PROOF_PICTURES DOC: the document quotes the output of both programs, line for line, and
its picture is the one that the first program writes."""
import pathlib
import subprocess
import sys
import tempfile

broken, pictures, document = sys.argv[1:]
page = pathlib.Path(document)
text = " ".join(page.read_text().split())
with tempfile.TemporaryDirectory() as directory:
    lines = subprocess.run([broken, directory], check=True, capture_output=True, text=True).stdout.splitlines()
    drawn = (pathlib.Path(directory) / "small-window.svg").read_bytes()
bad = [f"not in the document: {line}" for line in lines if " ".join(line.split()) not in text]
if len(lines) != 20:
    bad.append(f"{len(lines)} lines printed by broken-schedules, not 20")
kept = page.parent / "pictures/broken-small-window.svg"
if kept.read_bytes() != drawn:
    bad.append(f"{kept} is not what broken-schedules writes as small-window.svg")
# Drawings in text: their columns matter too.
output = subprocess.run([pictures], check=True, capture_output=True, text=True).stdout.strip("\n")
drawings = output.split("\n\n")
if len(drawings) != 2:
    bad.append(f"{len(drawings)} drawings printed by proof-pictures, not 2")
for drawing in drawings:
    if "".join(f"    {line}\n" for line in drawing.splitlines()) not in page.read_text():
        bad.append(f"not in the document:\n{drawing}")
print("\n".join(bad) or "the document has every line and drawing")
sys.exit(1 if bad else 0)
