#!/usr/bin/python3
"""Gate: no function of the sources has more than 70 lines, from the first line of its head to its last: C++, C, Python, shell, JavaScript and
Fortran.

lengths.py ROOT            prints "file:line: name has N lines" for each longer one; exit status 1 if there is any
lengths.py ROOT --table N  prints the N longest functions

Universal Ctags reads C++ and C; it knows no ends in the other languages, and Python reads itself. In the rest a function ends at the column
where it begins.
"""
import ast
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

LIMIT = 70
# How a function begins, and the pattern of its end below its own indent.
SHELL = (re.compile(r"( *)(?:function +([\w-]+)(?: *\(\))?|([\w-]+) *\(\)) *(?:[{(] *)?(?:#.*)?$"), r"[})]")
JAVASCRIPT = (re.compile(r"( *)(?!(?:if|for|while|switch|catch|do|else|try|class)\b)([^/*\s}].*(?:=>|\)) )\{$"), r"\}")
FORTRAN = (re.compile(r"( *)(?!end\b)(?:[\w()*=]+ +)*(?:subroutine|program|function) +(\w+)", re.I),
           r"(?:end *(?:(?:subroutine|program|function)\b.*)?$|contains\b)")


def by_ctags(root):
    """Yields (lines, file, line, name) of the functions of C++ and C, lambdas and macros too."""
    files = tree.files(root, ".h", ".cc", ".c", ".h.in")
    command = ["ctags", "-L", "-", "--languages=C,C++", "--map-C=-.h", "--map-C++=+.h", "--kinds-C=fd", "--kinds-C++=fd", "--fields=+ne",
               "--extras=+{anonymous}", "--output-format=json", "-o", "-"]
    printed = subprocess.run(command, cwd=root, input="\n".join(files), stdout=subprocess.PIPE, text=True, check=True).stdout
    for tag in map(json.loads, printed.splitlines()):
        name = tag["name"] if "scope" not in tag else f"{tag['scope']}::{tag['name']}"
        yield tag.get("end", tag["line"]) - tag["line"] + 1, tag["path"], tag["line"], name


def python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def by_columns(kind):
    """Returns a reader of functions that begin as the kind says, and end at the same column."""
    begins, ends = kind

    def read(text):
        lines = text.splitlines()
        for first, line in enumerate(lines):
            head = begins.match(line)
            if not head:
                continue
            end = re.compile(head.group(1) + ends, re.I)
            last = next((k for k in range(first + 1, len(lines)) if end.match(lines[k])), len(lines) - 1)
            yield next(filter(None, head.groups()[1:])).strip(), first + 1, last + 1
    return read


READERS = {".py": python, ".sh": by_columns(SHELL), ".bash": by_columns(SHELL), ".js": by_columns(JAVASCRIPT),
           ".html": by_columns(JAVASCRIPT), ".F90": by_columns(FORTRAN)}


def functions(root):
    """Yields (lines, file, line, name) of every function with a body."""
    yield from by_ctags(root)
    for file in tree.files(root, *READERS):
        for name, first, last in READERS[pathlib.PurePath(file).suffix](tree.read(root, file)):
            yield last - first + 1, file, first, name


def main(root, table=None):
    all_functions = sorted(functions(root), reverse=True)
    if table:
        for lines, file, line, name in all_functions[:int(table)]:
            print(f"{lines:4} {file}:{line}: {name}")
        return 0
    print(f"{len(all_functions)} functions, the longest has {all_functions[0][0]} lines" if all_functions else "no function")
    return tree.report([f"{file}:{line}: {name} has {lines} lines, at most {LIMIT} are allowed"
                        for lines, file, line, name in all_functions if lines > LIMIT],
                       "give each part that has a purpose of its own a function of its own")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3] if sys.argv[2:3] == ["--table"] else None))
