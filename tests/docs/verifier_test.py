#!/usr/bin/python3
"""verifier_test.py BROKEN_SCHEDULES PROOF_PICTURES DOC: the document quotes the output of both programs, line for line; each
function that it names is in the sources, and each test in the verifier's tests."""
import pathlib
import re
import subprocess
import sys
import tempfile

broken, pictures, document = sys.argv[1:]
page = pathlib.Path(document)
text = " ".join(page.read_text().split())
with tempfile.TemporaryDirectory() as directory:
    lines = subprocess.run([broken, directory], check=True, capture_output=True, text=True).stdout.splitlines()
bad = [f"not in the document: {line}" for line in lines if " ".join(line.split()) not in text]
if len(lines) != 20:
    bad.append(f"{len(lines)} lines printed by broken-schedules, not 20")
# Drawings in text: their columns matter too.
output = subprocess.run([pictures], check=True, capture_output=True, text=True).stdout.strip("\n")
drawings = output.split("\n\n")
if len(drawings) != 2:
    bad.append(f"{len(drawings)} drawings printed by proof-pictures, not 2")
for drawing in drawings:
    if "".join(f"    {line}\n" for line in drawing.splitlines()) not in page.read_text():
        bad.append(f"not in the document:\n{drawing}")
# Functions, types and tests that the document names alone, without their file (references.py has those with a file).
root = page.resolve().parents[1]
sources = "\n".join(path.read_text() for folder in ("collectives", "include/espalier", "tests", "firmware")
                    for path in (root / folder).rglob("*") if path.suffix in (".h", ".cc"))
words = {word for code in re.findall(r"`([^`\n]+)`", page.read_text()) if re.fullmatch(r"\w+(::\w+)*(\(\))?", code)
         for word in re.findall(r"\w+", code) if "_" in word or re.fullmatch(r"(?:[A-Z][a-z]+){2,}", word)}
bad += [f"no such name in the sources: {word}" for word in sorted(words) if not re.search(rf"\b{word}\b", sources)]
tests = re.findall(r"`([A-Z]\w*)\.([A-Z]\w*|(?=\*))(\*?)`", page.read_text())
bad += [f"no such test: {suite}.{name}" for suite, name, more in tests
        if not re.search(rf"\bTEST(_F|_P)?\({suite}, {name}{'' if more else '[)]'}", sources)]
if len(words) < 20 or len(tests) < 15:
    bad.append(f"{len(words)} names and {len(tests)} tests found; this test reads the document wrongly")
print("\n".join(bad) or f"the document has every line and drawing; {len(words)} names and {len(tests)} tests exist")
sys.exit(1 if bad else 0)
