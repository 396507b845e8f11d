#!/usr/bin/env python3
"""extracts_test.py [--write] SOURCES: a code block in a page of docs/ below the comment `<!-- FILE -->` is that file of the sources,
whole. --write: puts it there."""
import pathlib
import re
import sys

writes = sys.argv[1:2] == ["--write"]
sources = pathlib.Path(sys.argv[1 + writes])
bad, count = [], 0
for page in sorted((sources / "docs").rglob("*.md")):
    text = page.read_text()
    for name, kind, block in re.findall(r"<!-- (\S+/\S+) -->\n```(\w*)\n(.*?)```", text, re.DOTALL):
        count += 1
        expected = (sources / name).read_text()
        if block != expected:
            bad.append(f"{page} has another text than {name}; extracts_test.py --write {sources} copies it")
            text = text.replace(f"<!-- {name} -->\n```{kind}\n{block}```", f"<!-- {name} -->\n```{kind}\n{expected}```")
    if writes:
        page.write_text(text)
if count < 2:
    bad.append(f"{count} extracts found, at least 2 expected")
if not writes:
    print("\n".join(bad) or f"{count} files are in the pages as they are")
sys.exit(bool(bad) and not writes)
