#!/usr/bin/python3
"""descriptor_test.py PROTO DOC: each field of Program and Action stands in the document with its number, once."""
import pathlib
import re
import sys

proto, document = (pathlib.Path(name).read_text() for name in sys.argv[1:])
bad = []
for message in ("Program", "Action"):
    body = re.search(rf"^message {message} \{{(.*?)^\}}", proto, re.M | re.S).group(1)
    fields = re.findall(r"^\s*(?:repeated\s+)?\w+\s+(\w+)\s*=\s*(\d+);", body, re.M)
    section = re.search(rf"^## {message}\n(.*?)^## ", document, re.M | re.S).group(1)
    told = []
    for names, numbers in re.findall(r"^\| (`[^|]+`) \| ([\d, ]+) \|", section, re.M):
        told += zip(re.findall(r"`(\w+)`", names), re.findall(r"\d+", numbers), strict=True)
    bad += [f"{message}.{name} = {number}: not in the document" for name, number in fields if (name, number) not in told]
    bad += [f"{message}.{name} = {number}: only in the document" for name, number in told if (name, number) not in fields]
    if not fields or len(told) != len(set(told)):
        bad.append(f"{message}: no fields, or one told twice")
print("\n".join(bad) or "the document has every field")
sys.exit(1 if bad else 0)
