#!/usr/bin/python3
"""Gate: README.md, the first page, has at most 100 lines.

first_page.py ROOT
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

LINES = 100


def main(root):
    lines = len(tree.read(root, "README.md").splitlines())
    print(f"README.md has {lines} lines")
    return tree.report([f"README.md:{LINES + 1}: {lines} lines, at most {LINES} are allowed"] if lines > LINES else [],
                       "a page of docs/ has room for more")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
