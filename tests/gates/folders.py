#!/usr/bin/python3
"""Gate: no folder has more than 40 files of sources (C++, C, Python, shell, JavaScript, Fortran) directly in it, and each language has one
suffix, which the gates read.

folders.py ROOT            prints the lines of sources, those of tests, and the assertions of each top folder; exit status 1 if a folder has
                           more than MAX_FILES
folders.py ROOT --table N  prints the N folders with the most files
folders.py ROOT --since COMMIT
                           prints by how many lines each top folder has grown since this commit of git (sources and meson.build, without
                           the lines of assertions)

An assertion is a use of ESPALIER_ASSERT (include/espalier/internal/base/assert.h)."""
import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

MAX_FILES = 40
SOURCES = (".h", ".cc", ".c", ".py", ".sh", ".js", ".F90")
OTHERS = (".hh", ".hpp", ".hxx", ".inc", ".ipp", ".cpp", ".cxx", ".C", ".ksh", ".mjs", ".cjs", ".ts", ".jsx", ".f", ".f90", ".f95", ".f03", ".f08", ".F")
ASSERTION = re.compile(r"(?<!define )\bESPALIER_ASSERT\(")


def is_test(file):
    return file.startswith("tests/") or re.search(r"(_test|_bench)\.\w+$|/(testing|conformance|simulated|bench)/", file) is not None


def git(root, *words):
    return subprocess.run(["git", "-C", str(root), *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def growth(root, commit):
    """The lines that each top folder has gained since the commit; a renamed file counts with what changed in it."""
    gained, name = collections.Counter(), ""
    for line in git(root, "diff", "-M", "--unified=0", "--no-prefix", commit, "--", *(f"*{end}" for end in (*SOURCES, "meson.build"))).splitlines():
        if line.startswith(("--- ", "+++ ")):
            name = line[4:] if line[4:] != "/dev/null" else name
            top = name.split("/")[0] if "/" in name else "."
        elif line.startswith(("+", "-")) and not ASSERTION.search(line):
            gained[top] += 1 if line[0] == "+" else -1
    return gained


def main(root, table=None, since=None):
    if since:
        gained = growth(root, since)
        for folder, lines in (*sorted(gained.items()), ("all", sum(gained.values()))):
            print(f"{folder:16} {lines:+8,}")
        return 0
    files = tree.files(root, *SOURCES)
    count = collections.Counter(str(pathlib.PurePath(file).parent) for file in files)
    if table:
        for folder, number in count.most_common(int(table)):
            print(f"{number:4} {folder}")
        return 0
    sums = {}
    for file in files:
        text = tree.read(root, file)
        row = sums.setdefault(pathlib.PurePath(file).parts[0] if "/" in file else ".", [0, 0, 0])
        row[1 if is_test(file) else 0] += text.count("\n")
        row[2] += len(ASSERTION.findall(text))
    print(f"{'':16} {'lines':>8} {'of tests':>8} {'assertions':>10}")
    for folder, row in (*sorted(sums.items()), ("all", [sum(row[k] for row in sums.values()) for k in range(3)])):
        print(f"{folder:16} {row[0]:8,} {row[1]:8,} {row[2]:10,}")
    return tree.report([f"{folder}: {number} files, at most {MAX_FILES} are allowed" for folder, number in sorted(count.items())
                        if number > MAX_FILES] +
                       [f"{file}: no gate reads this suffix; expected one of {' '.join(SOURCES)}" for file in tree.files(root, *OTHERS)], "give what belongs together a folder of its own")


if __name__ == "__main__":
    options = {"--table": "table", "--since": "since"}
    sys.exit(main(sys.argv[1], **({options[sys.argv[2]]: sys.argv[3]} if len(sys.argv) == 4 else {})))
