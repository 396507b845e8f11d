#!/usr/bin/python3
"""images_test.py STATUS_H STATUS_CC IMAGE_H DOC: statuses stand in the document with their names and numbers, each that an
image can be refused with is there, and so are the header's fields where image.h has them."""
import pathlib
import re
import sys

header, names, layout, document = (pathlib.Path(name).read_text() for name in sys.argv[1:])
numbers = dict(re.findall(r"^\s*(k\w+) =\s*(\d+),", header, re.M))
name_of = dict(re.findall(r"case Status::(k\w+): return \"([^\"]+)\";", names))
known = {name_of[code]: number for code, number in numbers.items()}
told = re.findall(r"^\| \d+ \| ([a-z ]+) \| (\d+) \|", document, re.M)
told += re.findall(r"\*([a-z ]+)\*[^()*]*\((?:status )?(\d+)\)", document)
bad = [f"'{name}' is {known.get(name, 'no status')}, not {number}" for name, number in told if known.get(name) != number]
check = layout[layout.index("// Checks the image that"):layout.index("[[nodiscard]] Status check_image(")]
for code in set(re.findall(r"\bk[A-Z]\w+", check)) & numbers.keys() - {"kBadArgument"}:
    if name_of[code] not in dict(told):
        bad.append(f"not in the document: {name_of[code]}")
fields = {(at, size) for at, size in re.findall(r"(?:^// +| {2,})(\d+) +(\d+) {2}\S", layout, re.M)}
for at, size in fields:
    if not re.search(rf"^\| {at} \| {size} \|", document, re.M):
        bad.append(f"field at {at} of {size} bytes: not in the document")
if len(told) < 15 or len(fields) < 15:
    bad.append(f"{len(told)} statuses and {len(fields)} fields found; this test reads them wrongly")
print("\n".join(bad) or f"the document has {len(told)} statuses and {len(fields)} fields as they are")
sys.exit(1 if bad else 0)
