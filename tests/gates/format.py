#!/usr/bin/python3
"""Gate: clang-format, with the .clang-format of the tree, leaves every C++ source as it is. No comment line has more than 100
columns: clang-format does not break comments (ReflowComments: false). Releases of clang-format write the same code in different
ways: with another than that of Debian 12 only comments are checked, and the exit status is 77.

format.py ROOT [--write]     --write: formats them instead
"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

RELEASE = 14
SKIPPED = 77
AT_ONCE = 20  # files per process
COLUMNS = 100


def run(root, arguments, sources):
    """Returns the output of clang-format on these files. clang-format fails only if it cannot read a file."""
    batches = [sources[k:k + AT_ONCE] for k in range(0, len(sources), AT_ONCE)]

    def one(batch):
        result = subprocess.run(["clang-format", *arguments, *batch], cwd=root, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"format.py: {result.stderr}")
        return result.stderr
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return "".join(pool.map(one, batches))


def long_comments(root, sources):
    """Returns "file:line: ..." for every line that is only a comment and too long."""
    return [f"{file}:{number}: a comment of {len(line)} columns, at most {COLUMNS} are allowed"
            for file in sources
            for number, line in enumerate(tree.read(root, file).split("\n"), 1)
            if len(line) > COLUMNS and line.lstrip().startswith("//")]


def installed_release():
    return int(re.search(r"version (\d+)", subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout)[1])


def main(root, mode=None):
    if not shutil.which("clang-format"):
        print("format.py: clang-format is missing; ./setup.sh installs it", file=sys.stderr)
        return 1
    if not (pathlib.Path(root) / ".clang-format").exists():
        print(f"format.py: {root} has no .clang-format", file=sys.stderr)
        return 1
    sources = tree.files(root, ".h", ".cc")
    if mode == "--write":
        run(root, ["-i"], sources)
        return 0
    print(f"{len(sources)} files")
    release = installed_release()
    if release != RELEASE:
        print(f"skipped: clang-format {release} formats otherwise than clang-format {RELEASE}")
        return tree.report(long_comments(root, sources), "break long comments by hand") or SKIPPED
    warnings = run(root, ["--dry-run"], sources)
    found = sorted({(file, int(line)) for file, line in re.findall(r"^(\S+?):(\d+):\d+: warning:", warnings, re.MULTILINE)})
    return tree.report([f"{file}:{line}: not as clang-format writes it" for file, line in found] + long_comments(root, sources),
                       "run tests/gates/format.py . --write, and break long comments by hand")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
