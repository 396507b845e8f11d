#!/usr/bin/python3
"""embed.py HEADER PAGE STYLE SCRIPT...: the page of `espalier draw`, style and scripts put in, as a C++ header."""
import pathlib
import sys

header, page, style, *scripts = map(pathlib.Path, sys.argv[1:])
text = page.read_text().replace("@STYLE@", style.read_text().rstrip())
script = "\n".join(part.read_text().replace("'use strict';\n", "", 1) for part in scripts)
text = text.replace("@SCRIPT@", "'use strict';\n" + script.rstrip())
for mark in ("@TITLE@", "@DATA@"):
    if text.count(mark) != 1:
        sys.exit(f"embed.py: the page must have {mark} once, and has it {text.count(mark)} times")
size = 8000  # of a literal; the compiler joins them
pieces = "\n".join(f'R"~page~({text[at:at + size]})~page~"' for at in range(0, len(text), size))
header.write_text(f"#pragma once\nnamespace espalier::tools {{\ninline constexpr char kPage[] =\n{pieces};\n}}\n")
