#!/usr/bin/python3
"""The suppressions of tests/sanitizers.sh name shared libraries of others, and nothing else.

suppressions_test.py FOLDER
"""
import pathlib
import re
import sys

OTHERS = r"(libfabric)\.so\*?"
ALLOWED = {
    ".supp": re.compile(rf"#.*|(leak|called_from_lib):{OTHERS}|mutex:ld-linux"),
    "valgrind.supp": re.compile(rf"[{{}}]|   ([a-z-]+|Memcheck:Leak|\.\.\.|obj:\*/{OTHERS})"),
}


def wrong_lines(name, text):
    allowed = ALLOWED.get(name, ALLOWED[".supp"])
    return [line for line in text.splitlines() if not allowed.fullmatch(line)]


def refuses(name, line):
    if not wrong_lines(name, line):
        sys.exit(f"suppressions_test.py: does not refuse '{line}'")


for line in ("leak:espalier", "race:libfabric.so", "leak:libespalier.so", "mutex:*", "leak:main"):
    refuses("leaks.supp", line)
for line in ("   obj:*", "   fun:main", "   obj:*/libespalier.so", "   Memcheck:Cond"):
    refuses("valgrind.supp", line)
files = sorted(pathlib.Path(sys.argv[1]).glob("*.supp"))
found = [f"{file.name}: {line}" for file in files for line in wrong_lines(file.name, file.read_text())]
if found or len(files) != 3:
    sys.exit("\n".join(["suppressions_test.py: expected three files that name libraries of others only", *found]))
print(", ".join(file.name for file in files))
