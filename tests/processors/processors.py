#!/usr/bin/python3
"""Nodes of other processors (boards/linux-armhf, boards/linux-s390x) under qemu-user, alone and in one cluster with others:
docs/results/processors.md. Needs ./setup.sh aarch64, armhf and s390x, and the build of this machine.

processors.py [PROCESSOR...]   builds and runs everything (armhf, s390x), prints the page; exit status 1 if anything failed
processors.py --page PAGE      writes the page, too
processors.py --check PAGE     whether PAGE has the form that this program prints, and nothing failed
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMULATORS = {"armhf": "qemu-arm-static", "s390x": "qemu-s390x-static"}
# As test.sh has them for aarch64: what runs on nodes.
ON_NODES = "base collectives/machine collectives/schedule firmware hal tests/golden".split()
TESTS = "unit, golden and conformance tests of what runs on nodes"
SKIPPED = "of them skipped"
MIXED = "collectives of four such nodes and four x86-64 ones over {}"
GATEWAY = "collectives of four such bare-metal nodes, as processes behind x86-64 gateways, and four x86-64 nodes"
FAILED = "failed"
ROWS = [TESTS, SKIPPED, MIXED.format("tcp"), MIXED.format("mem"), GATEWAY, FAILED]
RIG = "cases of the rig `tests/hil/processors.textproto`"
HEAD = """# Other processors

What `tests/processors/processors.py --page docs/results/processors.md` found, under qemu-user: on armhf, which has 32 bits
([linux-armhf](../../boards/linux-armhf/README.md)), and on s390x, which is big-endian ([linux-s390x](../../boards/linux-s390x/README.md)).
The tests take smaller samples under an emulator, as on aarch64. In a cluster every rank's result and every node's log must equal the
simulation on x86-64, byte by byte.

"""
TAIL = """
The rig has two nodes each of armhf, s390x, aarch64 and x86-64 in one cluster ([hil.md](../hil.md)). Every node boots a signed image from its
flash. One node of each kind is killed, and refuses each kind of bad image.
"""


def run(words, **more):
    """Runs a command whose output also goes to stderr: (exit status, output)."""
    print("==", " ".join(map(shlex.quote, words)), file=sys.stderr, flush=True)
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more})
    print(done.stdout, file=sys.stderr, flush=True)
    return done.returncode, done.stdout


def number(pattern, text):
    found = re.findall(pattern, text, re.M)
    return int(found[-1]) if found else 0


def test(processor):
    """Returns the processor's column: row -> number."""
    build = f"build-{processor}"
    status, names = run(["tests/summary.py", "--names", build, *ON_NODES])
    if status != 0:
        sys.exit(f"processors.py: no tests in {build}: ./setup.sh {processor}")
    failed = run(["meson", "test", "-C", build, "--print-errorlogs", "--quiet", *names.split()])[0] != 0
    _, counted = run(["tests/summary.py", build])
    found = {TESTS: number(r"^(\d+) passed", counted), SKIPPED: number(r"(\d+) skipped", counted),
             FAILED: max(number(r"(\d+) failed", counted), failed)}
    status, told = run(["tests/run/mixed_test.py", processor, "--whole"])
    found[FAILED] += status != 0
    for provider in ("tcp", "mem"):
        found[MIXED.format(provider)] = number(rf"^(\d+) runs over {provider} ", told)
    hosted = ROOT / build / "firmware/bare/espalier-bare-hosted"
    found[FAILED] += run(["ninja", "-C", build, "--quiet", str(hosted.relative_to(ROOT / build))])[0] != 0
    with tempfile.TemporaryDirectory() as folder:
        board = pathlib.Path(folder) / "board"
        board.write_text(f"#!/bin/sh\nexec {EMULATORS[processor]} -L '{ROOT}/build-root-{processor}' '{hosted}' \"$@\"\n")
        board.chmod(0o755)
        status, told = run(["tests/run/gateway_test.py", "-v", "Boards.test_every_collective"], ESPALIER_BARE_HOSTED=str(board))
    found[GATEWAY] = 0 if status != 0 else number(r"^(\d+) collectives over gateways", told)
    found[FAILED] += status != 0
    return found


def page(columns, rig):
    """columns: processor -> row -> number; rig: passed, failed."""
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    lines += [f"| {row} | " + " | ".join(str(column[row]) for column in columns.values()) + " |" for row in ROWS]
    lines += ["", "| all in one cluster | |", "| --- | ---: |", f"| {RIG} | {rig[0]} |", f"| {FAILED} | {rig[1]} |"]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def check(path):
    """Whether the page at `path` has the form of page(), and nothing failed."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    empty = page({processor: dict.fromkeys(ROWS, 0) for processor in EMULATORS}, (0, 0))

    def form(some):
        return re.sub(r"\| \d+ ", "| 0 ", some)
    if form(text) != form(empty):
        sys.exit(f"processors.py: {path} is old; expected the form of\n{empty}")
    numbers = [row for row in text.splitlines() if re.search(r"\| \d+ \|$", row)]
    for row in numbers:
        may_be_zero = row.startswith((f"| {FAILED} ", f"| {SKIPPED} "))
        if row.startswith(f"| {FAILED} ") and re.search(r"\| [1-9]", row) or not may_be_zero and "| 0 |" in row:
            sys.exit(f"processors.py: {path} has the row {row}")
    print(f"{len(numbers)} rows of {path}")


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("processors", nargs="*", metavar="PROCESSOR")
    parser.add_argument("--page")
    parser.add_argument("--check")
    options = parser.parse_args()
    for name in options.processors:
        if name not in EMULATORS:
            parser.error(f"unknown processor '{name}'; expected {' or '.join(EMULATORS)}")
    if options.check:
        if options.processors or options.page:
            parser.error("--check takes neither processors nor --page")
        return check(options.check)
    if options.page and options.processors:
        parser.error("--page takes no processors: the page has all")
    columns = {processor: test(processor) for processor in options.processors or EMULATORS}
    _, told = run(["tests/hil/hil.py", "tests/hil/processors.textproto"])
    passed = number(r"^rig processors: (\d+) passed", told)
    rig = passed, number(r"^rig processors: .* (\d+) failed", told) if passed else 1
    text = page(columns, rig)
    print(text)
    if options.page:
        pathlib.Path(options.page).write_text(text, encoding="utf-8")
    return 1 if rig[1] or any(column[FAILED] for column in columns.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
