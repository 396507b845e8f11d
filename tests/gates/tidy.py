#!/usr/bin/python3
"""clang-tidy, with the checks of .clang-tidy, on the sources that a build compiles: all of them, or the changed ones.

tidy.py ROOT BUILD [--base BASE] [--count] [FILE...]
  --base BASE  only sources that differ from the git revision BASE, or that include a header that differs
  --count      prints how often each check found something instead of the findings
  FILE...      only these
Exit status 1 if anything was found. Needs some seconds per file (./test.sh tidy [BASE] does all of it).
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import arrows
import tree

FINDING = re.compile(r"^(/\S+?):(\d+):\d+: (?:warning|error): (.*) \[([\w.,-]+)\]$", re.MULTILINE)
# The commands are for g++. clang does not know all of g++'s warnings, which only g++ must report.
ARGUMENTS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-error", "--extra-arg=-w"]


def changed(root, base):
    """Returns the sources to check: those that differ from `base`, and those that include such a header, directly or not."""
    listed = subprocess.run(["git", "-C", str(root), "diff", "--name-only", base, "--"], capture_output=True, text=True)
    if listed.returncode:
        sys.exit(f"tidy.py: git cannot compare with '{base}': {listed.stderr.strip()}")
    sources = tree.files(root, ".h", ".cc")
    present = set(sources)
    users = collections.defaultdict(set)
    for file in sources:
        for _, name, quoted in arrows.includes(root, file):
            target = arrows.resolve(file, name, present) if quoted else None
            users[target].add(file)
    found, todo = set(), [file for file in listed.stdout.splitlines() if file in present]
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += users[file]
    return found


def findings_of(root, build, source):
    result = subprocess.run(["clang-tidy", "-p", str(build), *ARGUMENTS, str(source)], cwd=root, capture_output=True, text=True)
    found = {(pathlib.Path(os.path.normpath(file)), int(line), check, text) for file, line, text, check in FINDING.findall(result.stdout)}
    if result.returncode and not found:
        found.add((source, 1, "clang-tidy", (result.stderr.strip().splitlines() or ["it failed"])[-1]))
    return found


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("build")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--base")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args(arguments)
    if not shutil.which("clang-tidy"):
        print("tidy.py: clang-tidy is missing; ./setup.sh tidy installs it", file=sys.stderr)
        return 1
    wanted = set(options.files) or (changed(options.root, options.base) if options.base else None)
    present = set(tree.files(options.root, ".cc"))
    compiled = {source for source, _ in tree.compiled(options.root, pathlib.Path(options.build) / "compile_commands.json")}
    sources = [options.root / name for name in compiled & present if wanted is None or name in wanted]
    unknown = set(options.files) - {str(source.relative_to(options.root)) for source in sources}
    if unknown:
        print(f"tidy.py: {options.build} does not compile {', '.join(sorted(unknown))}", file=sys.stderr)
        return 1
    in_tree = {options.root / name for name in tree.files(options.root, ".h", ".cc")}  # without files that the build makes
    found = set()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(lambda source: findings_of(options.root, options.build, source), sorted(sources)):
            found |= {finding for finding in done if finding[0] in in_tree}
    print(f"{len(sources)} sources")
    if options.count:
        for check, count in collections.Counter(check for _, _, check, _ in found).most_common():
            print(f"{count:6} {check}")
        return 1 if found else 0
    return tree.report([f"{file.relative_to(options.root) if file.is_relative_to(options.root) else file}:{line}: {text} [{check}]"
                        for file, line, check, text in sorted(found, key=str)],
                       "change the code; where a check is wrong here, add NOLINT(check) and the reason")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
