#!/usr/bin/env python3
"""extracts_test.py [--write] SOURCES: a code block below the comment `<!-- FILE -->`, in README.md or a page of docs/, is that file of
the sources, whole; below `<!-- FILE: NAME -->` it is the function NAME of that file. --write: puts it there."""
import pathlib
import re
import sys

writes = sys.argv[1:2] == ["--write"]
sources = pathlib.Path(sys.argv[1 + writes])
bad, count = [], 0


def code_of(file, name):
    """The file, or its function `name`: from the line that begins with its type to the next line `}`."""
    text = (sources / file).read_text()
    if not name:
        return text
    found = re.findall(rf"^\w[^\n;]*\b{name}\([^\n]*\{{\n.*?^\}}\n", text, re.M | re.S)
    if len(found) != 1:
        sys.exit(f"extracts_test.py: {file} defines {name}() {len(found)} times, expected once")
    return found[0]


for page in [sources / "README.md", *sorted((sources / "docs").rglob("*.md"))]:
    text = page.read_text()
    for file, name, kind, block in re.findall(r"<!-- ([^\s:]+/[^\s:]+)(?:: (\w+))? -->\n```(\w*)\n(.*?)```", text, re.DOTALL):
        count += 1
        expected = code_of(file, name)
        if block != expected:
            what = f"{name}() of {file}" if name else file
            mark = f"<!-- {file}: {name} -->" if name else f"<!-- {file} -->"
            bad.append(f"{page} has another text than {what}; extracts_test.py --write {sources} copies it")
            text = text.replace(f"{mark}\n```{kind}\n{block}```", f"{mark}\n```{kind}\n{expected}```")
    if writes:
        page.write_text(text)
if count < 4:
    bad.append(f"{count} extracts found, at least 4 expected")
if not writes:
    print("\n".join(bad) or f"{count} files and functions are in the pages as they are")
sys.exit(bool(bad) and not writes)
