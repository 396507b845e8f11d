#!/usr/bin/python3
"""Gate: no function of the sources has more than 70 lines, from the first line of its head to its last: C++, C, Python, shell, JavaScript and
Fortran.

lengths.py ROOT            prints "file:line: name has N lines" for each longer one; exit status 1 if there is any
lengths.py ROOT --table N  prints the N longest functions
"""
import ast
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

LIMIT = 70
# Where a function begins and ends in languages whose functions end at the column where they begin.
SHELL = (re.compile(r"( *)(?:function +)?((?<=function )[\w-]+(?= *[({])|[\w-]+(?= *\()) *(?:\(\) *)?[{(](?: *#.*)?$"),
         lambda indent, name: (indent + "}", indent + ")"))
JAVASCRIPT = (re.compile(r"( *)(?:export )?(?:default )?(?:async )?function\*? (\w+)\("), lambda indent, name: indent + "}")
ARROW = (re.compile(r"( *)(?:const |let |var )?([\w.]+)(?: =|:) (?:async )?(?:function\*? ?\w*\(.*|(?:\(.*\)|\w+) => )\{$"),
         lambda indent, name: indent + "}")
METHOD = (re.compile(r"( +)(?!if\b|for\b|while\b|switch\b|catch\b)(?:(?:static|async|get|set) )*\*?(\w+)\(.*\) \{$"),
          lambda indent, name: indent + "}")
FORTRAN = (re.compile(r"( *)(?!end\b)(?:[\w()*=]+ +)*(?:subroutine|program|function) +(\w+)", re.I),
           lambda indent, name: (f"{indent}end ", f"{indent}contains"))


def in_braces(text):
    """Yields (name, first line, last line) of the functions of C++ and C."""
    found, _, _ = tree.tokens(text)
    for item in tree.declarations(found):
        if item.kind == "function" and item.body:
            yield "::".join((*item.scope, item.name)), item.line, item.last


def python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def by_columns(*kinds):
    """Returns a reader of functions that begin as a kind says, and end at the same column."""
    def read(text):
        lines = text.splitlines()
        for first, line in enumerate(lines):
            for begins, ends in kinds:
                head = begins.match(line)
                # A function on one line has no line of its own that ends it.
                if not head or line.rstrip().endswith(("}", "};")):
                    continue
                end = ends(*head.groups())
                last = next((k for k in range(first + 1, len(lines)) if lines[k].lower().startswith(end)), len(lines) - 1)
                yield head.group(2), first + 1, last + 1
    return read


READERS = {".h": in_braces, ".cc": in_braces, ".c": in_braces, ".py": python, ".sh": by_columns(SHELL),
           ".bash": by_columns(SHELL), ".js": by_columns(JAVASCRIPT, ARROW, METHOD), ".F90": by_columns(FORTRAN)}


def functions(root):
    """Yields (lines, file, line, name) of every function with a body."""
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
