#!/usr/bin/env python3
"""Every environment variable that a program of ours reads, with wrong values: one line that names it, quoted, and status 2.

variables_test.py SOURCE ESPALIER JOINED
The table is that of base/process/variables.cc. Only that file calls getenv(), so a variable outside the table does not exist.
"""

import os
import pathlib
import re
import subprocess
import sys

from launchers import environment, free_port

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "gates"))
import tree  # noqa: E402

READS = re.compile(r"\b(?:secure_)?getenv\s*\(")
ROW = re.compile(r'^    \{"(\w+)", (k\w+), "(.*)"\},$', re.MULTILINE)
BY_HAND = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
PMI = {"PMI_FD": "99", "PMI_RANK": "0", "PMI_SIZE": "1", "MPI_LOCALNRANKS": "1", "SLURM_STEP_NUM_NODES": "1"}
WRONG = ["", "\n", "3\n4", "\x1b[2J", "\t", "\x7f"]


def is_shipped(path):
    """Whether the file is part of a library or a program, not of a test."""
    folders = path.split(os.sep)
    return not path.endswith("_test.cc") and not {"tests", "testing"} & set(folders)


def check_reads(root):
    shipped = [path for path in tree.files(root, ".cc", ".h", ".c") if is_shipped(path)]
    if len(shipped) < 500:
        sys.exit(f"{len(shipped)} sources in {root}; expected those of the whole tree")
    for path in shipped:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if READS.search(line) and path != os.path.join("base", "process", "variables.cc"):
                    sys.exit(f"{path}:{number}: reads the environment; expected a row and a function of base/process/variables.h")


def context(name, value):
    """The other variables with which `name` is read."""
    base = PMI if name in PMI else {} if name == "PMIX_NAMESPACE" else dict(BY_HAND, MASTER_PORT=str(free_port()))
    return environment(**dict(base, **{name: value}))


def quoted(value):
    return "".join(f"\\x{ord(each):02x}" if ord(each) < 32 or ord(each) == 127 else each for each in value)


def check_line(command, name, value, done):
    lines = done.stderr.split("\n")
    raw = [each for each in done.stderr + done.stdout if ord(each) < 32 and each != "\n" or ord(each) == 127]
    if len(lines) > 2 or raw or done.returncode not in (0, 1, 2):
        sys.exit(f"{name}={value!r} {command}: status {done.returncode}, {raw}, expected one line at most:\n{done.stderr}")


def check_value(name, kind, expected, value, joined, espalier):
    done = subprocess.run([joined, "2000"], env=context(name, value), capture_output=True, text=True)
    check_line("joined", name, value, done)
    if kind in ("kNumber", "kText"):
        line = f"{name}='{quoted(value)}'; expected {expected or 'a whole number from '}"
        if done.returncode != 2 or line not in done.stderr:
            sys.exit(f"{name}={value!r}: status {done.returncode}, expected 2 and {line}:\n{done.stderr}")
    elif done.returncode != 0:
        sys.exit(f"{name}={value!r}: status {done.returncode}, expected 0:\n{done.stderr}")
    if name == "FI_PROVIDER":
        for command in (["doctor"], ["run", "--topology", "ring:2", "--collective", "barrier"]):
            done = subprocess.run([espalier, *command], env=environment(**{name: value}), capture_output=True, text=True)
            check_line(command, name, value, done)
            if done.returncode != 2 or f"{name}='{quoted(value)}'; expected" not in done.stderr:
                sys.exit(f"{name}={value!r} {command}: status {done.returncode}:\n{done.stderr}")


def main():
    root, espalier, joined = (os.path.abspath(each) for each in sys.argv[1:4])
    check_reads(root)
    with open(os.path.join(root, "base", "process", "variables.cc"), encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    with open(os.path.join(root, "docs", "cluster.md"), encoding="utf-8") as file:
        page = file.read()
    if len(rows) < 20:
        sys.exit(f"{len(rows)} rows in base/process/variables.cc; expected its table")
    for name, kind, expected in rows:
        if f"`{name}`" not in page:
            sys.exit(f"docs/cluster.md has no `{name}`; expected every variable of base/process/variables.cc")
        for value in WRONG + (["3 ", "-1", "99999999999"] if kind == "kNumber" else []):
            check_value(name, kind, expected, value, joined, espalier)
    print(f"{len(rows)} variables with wrong values")


main()
