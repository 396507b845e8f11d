#!/usr/bin/python3
"""Prints what each of our headers costs the compiler.

headers.py BUILD             compiles each public and internal header alone, with the flags of BUILD, writes the processor time and
                             the lines of each into BUILD/headers.tsv, and prints the fifteen that take longest
headers.py BUILD --check     counts the lines of the public headers only, against tests/bench/headers.tsv: of our headers and of the
                             standard library at most a tenth more, and no other library
headers.py BUILD --write     writes that table

The lines are those that the preprocessor leaves, without empty ones. Those of the standard library are compared only if the compiler is
of the version that the table names.
"""
import argparse
import collections
import json
import pathlib
import re
import resource
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/bench/headers.tsv"
UNIT = "communicator/"  # a source of this folder has the flags: it sees all libraries that headers include
LIBRARIES = {"tl": "/tl/", "nanopb": "/pb(_[a-z]+)?.h$", "protobuf": "/google/", "libfabric": "/rdma/", "json": "/nlohmann/", "CLI11": "/CLI/"}
RATIO = 1.1


def command(build):
    """Returns the compiler's words without input and output."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["output"].startswith(UNIT + "libespalier-communicator"):
            words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
            return words[:words.index("-MD")]
    sys.exit(f"headers.py: {build} does not build {UNIT}; expected a build with ofi and tools")


def headers(*folders):
    found = subprocess.run(["git", "ls-files", *(f"{folder}*.h" for folder in folders)], cwd=ROOT, capture_output=True, text=True).stdout.split()
    return sorted(found or (str(file.relative_to(ROOT)) for file in ROOT.glob("include/espalier/**/*.h")))


def is_public(header):
    return header.startswith("include/espalier/") and not header.startswith("include/espalier/internal/")


def compile_alone(words, build, header, *options):
    """Returns what the compiler prints for a source that includes only this header, or None if it refuses it."""
    text = f'#include "{header.removeprefix("include/")}"\n'
    done = subprocess.run([*words, *options, "-w", "-x", "c++", "-", "-o", "-"], input=text, cwd=build, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def seconds(words, build, header):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    compile_alone(words, build, header, "-S")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def count(words, build, header):
    """Returns the lines of our headers, of the standard library and the system, and the names of other libraries."""
    text = compile_alone(words, build, header, "-E")
    if text is None:
        return None
    lines, others, file = collections.Counter(), set(), ""
    for line in text.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            file = marker.group(1)
            others |= {name for name, path in LIBRARIES.items() if re.search(path, file)}
        elif line.strip():
            lines["own" if "espalier" in file else "std"] += 1
    return lines["own"], lines["std"], " ".join(sorted(others)) or "-"


def version(words):
    return subprocess.run([*words[:1], "-dumpversion"], capture_output=True, text=True).stdout.strip().split(".")[0]


def rows_of(words, build, chosen):
    return {header.removeprefix("include/"): found for header in chosen if (found := count(words, build, header))}


def check(words, build):
    first, _, *lines = TABLE.read_text().splitlines()
    kept = {name: (int(own), int(std), others) for name, own, std, others in (line.split("\t") for line in lines)}
    is_same = first.split()[-1] == version(words)
    wrong = []
    found = rows_of(words, build, filter(is_public, headers("include/espalier/")))
    for name in sorted(set(found) ^ set(kept)):
        wrong.append(f"{name}: only in {'the tree' if name in found else TABLE.name}")
    for name in sorted(set(found) & set(kept)):
        (own, std, others), (most_own, most_std, allowed) = found[name], kept[name]
        if own > most_own * RATIO:
            wrong.append(f"{name}: {own} lines of our headers; expected at most a tenth above {most_own}")
        if is_same and std > most_std * RATIO:
            wrong.append(f"{name}: {std} lines of the standard library; expected at most a tenth above {most_std}")
        if not set(others.split()) <= set(allowed.split()):
            wrong.append(f"{name}: includes {others}; expected {allowed}")
    print(*wrong, f"{len(found)} public headers compared", sep="\n")
    if wrong:
        print("tests/bench/headers.py BUILD --write writes the table anew")
    return 1 if wrong else 0


def write(words, build):
    rows = rows_of(words, build, filter(is_public, headers("include/espalier/")))
    TABLE.write_text(f"lines of public headers, standard library of compiler {version(words)}\nheader\town\tstandard\tothers\n" +
                     "".join("\t".join(map(str, (name, *row))) + "\n" for name, row in rows.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    words = command(args.build)
    if args.check:
        return check(words, args.build)
    if args.write:
        return write(words, args.build)
    rows = []
    for header in headers(""):
        if found := count(words, args.build, header):
            rows.append((seconds(words, args.build, header), header, *found))
    rows.sort(reverse=True)
    lines = [f"{time:.2f}\t{header}\t{own}\t{std}\t{others}" for time, header, own, std, others in rows]
    (args.build / "headers.tsv").write_text("\n".join(["seconds\theader\town\tstandard\tothers", *lines]) + "\n")
    print(f"{len(rows)} headers, {sum(row[0] for row in rows):.1f} s of processor time; all are in {args.build / 'headers.tsv'}", *lines[:15], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
