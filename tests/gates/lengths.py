#!/usr/bin/python3
"""Gate: no function of the C++ sources has more than 70 lines, from the first line of its head to its closing brace.

lengths.py ROOT            prints "file:line: name has N lines" for each longer one; exit status 1 if there is any
lengths.py ROOT --table N  prints the N longest functions
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

LIMIT = 70


def functions(root):
    """Yields (lines, file, line, name) of every function with a body."""
    for file in tree.files(root, ".h", ".cc"):
        found, _, _ = tree.tokens(tree.read(root, file))
        for item in tree.declarations(found):
            if item.kind == "function" and item.body:
                yield item.last - item.line + 1, file, item.line, "::".join((*item.scope, item.name))


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
