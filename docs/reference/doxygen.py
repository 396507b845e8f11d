#!/usr/bin/python3
"""Runs Doxygen on the public headers, whose comments are plain `//` comments.

doxygen.py ROOT BUILD VERSION   writes the reference to BUILD/docs/html; exit status 1 if Doxygen warns of anything
doxygen.py --filter FILE        prints a header as Doxygen wants it: `//` becomes `///`, after code `///<`. Lines stay where they are.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests/gates"))
import comments
import tree

# What Doxygen would take for a command, a link or a tag stands in code or formulas here.
SPECIAL = re.compile(r"([\\@<>#%&$])")


def filtered(text):
    lines = text.splitlines()
    _, comment_lines, trailing_lines = tree.tokens(text)
    result = []
    trailing = False  # the line above has a comment after code, which this line may go on
    column = 0
    for number, line in enumerate(lines, 1):
        if number in trailing_lines and not line.lstrip().startswith("#"):
            at = tree.comment_column(line)
            line = line[:at] + "///<" + SPECIAL.sub(r"\\\1", line[at + 2:])
            trailing, column = True, at
        elif number in comment_lines and line.lstrip().startswith("//"):
            at = len(line) - len(line.lstrip())
            goes_on = trailing and at == column
            line = line[:at] + ("///<" if goes_on else "///") + SPECIAL.sub(r"\\\1", line[at + 2:])
            trailing = goes_on
        else:
            trailing = False
        result.append(line)
    return "\n".join(["/** @file */ " + result[0], *result[1:]]) + "\n" if result else ""


def main(root, build, version):
    root, build = pathlib.Path(root).resolve(), pathlib.Path(build).resolve()
    headers = [str(root / header) for header in comments.public_headers(root)]
    output = build / "docs"
    output.mkdir(exist_ok=True)
    text = (HERE / "Doxyfile.in").read_text()
    for name, value in {"version": version, "headers": " ".join(headers), "filter": f"{HERE}/doxygen.py --filter",
                        "output": str(output), "root": str(root)}.items():
        text = text.replace(f"@{name}@", value)
    (output / "Doxyfile").write_text(text)
    print(f"{len(headers)} public headers; index: {output}/html/index.html")
    return 1 if subprocess.run(["doxygen", str(output / "Doxyfile")]).returncode else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--filter"]:
        sys.stdout.write(filtered(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")))
        sys.exit(0)
    sys.exit(main(*sys.argv[1:]))
