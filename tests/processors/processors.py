#!/usr/bin/python3
"""Tests of other processors under qemu-user, alone and in one cluster with x86-64 nodes. Needs the build of this
machine, ./setup.sh armhf and ./setup.sh s390x.

processors.py [PROCESSOR...]               builds and runs the tests (of all: armhf, s390x), prints the page; exit status 1 if
                                           anything failed or did not run
processors.py [PROCESSOR...] --page PAGE   also writes these columns of PAGE; if anything failed, --check refuses it
processors.py --check PAGE                 whether PAGE has the form that this program prints, and nothing failed
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
sys.path.insert(0, str(ROOT / "tests"))
import summary

# Folders of everything that runs on nodes.
ON_NODES = ["base", "collectives/machine", "collectives/schedule", "firmware", "hal", "tests/golden"]
EMULATORS = {"armhf": "qemu-arm", "s390x": "qemu-s390x"}
# Row of the page -> what begins "TEST CASE". A case belongs to the first row that fits.
SUITES = {
    "descriptors, frames and packets, bit for bit (`tests/golden`)": r"golden ",
    "images, boot, power cuts, updates": r"(image|boot|update-states) ",
    "conformance over tcp": r"ofi-conformance .*/tcp",
    "conformance over mem": r"(ofi|mem)[a-z-]* \w+/Conformance",
    "conformance over framed links": r"serial[a-z-]* \w+/Conformance",
    "conformance of the simulated network, also with faults": r"(sim|fault) \w+/Conformance",
    "unit tests": r"",
}
MIXED = "collectives on four nodes beside four x86-64 nodes, over {}"
GATEWAYS = "collectives on four bare-metal nodes, as processes behind x86-64 gateways, beside four x86-64 nodes"
SKIPPED, FAILED = "skipped", "failed"
ROWS = [*SUITES, MIXED.format("tcp"), MIXED.format("mem"), GATEWAYS, SKIPPED, FAILED]
SKIPS = "Skipped cases, with their reasons:"
TEXT = """# Other processors

Written by `tests/processors/processors.py --page docs/results/processors.md`. It runs the tests of everything that runs on nodes under
qemu-user: on armhf, a processor of 32 bits ([linux-armhf](../../boards/linux-armhf/README.md)), and on s390x, a big-endian one
([linux-s390x](../../boards/linux-s390x/README.md)). The tests take the smaller samples that they also take on aarch64. In a cluster of two
processors, every rank's result and every node's log must equal the simulation on x86-64, byte by byte. Debian 12 has every library that
the node and these tests need for both; `boards/linux/root.sh` installs them.

"""


def run(words, **more):
    """Runs a command, whose output also goes to stderr. Returns the exit status and the output."""
    print("==", shlex.join(words), file=sys.stderr, flush=True)
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more})
    print(done.stdout, file=sys.stderr, flush=True)
    return done.returncode, done.stdout


def first_number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def count_cases(build, column, skips):
    """Adds the cases of the build's last run to the column, and those that were skipped to `skips`, with their reasons."""
    gtest = summary.read_cases(build)
    for test in summary.read_runs(build):
        name = test["name"].split(" / ")[-1].split(":")[-1]
        for case, state, message in summary.judge(test, name, gtest):
            if state == "passed":
                column[next(row for row, pattern in SUITES.items() if re.match(pattern, f"{name} {case}"))] += 1
            else:
                column[state] += 1
                if state == SKIPPED:
                    skips.append(f"`{name}`: `{case}`: {re.sub(r'^/[^ ]*:[0-9]+ ', '', message)}")  # without file and line
                print(f"{state}: {build.name}: {name}: {case}: {message}", file=sys.stderr)


def test(processor):
    """Returns the processor's column, row -> number, and the skipped cases with their reasons."""
    build = ROOT / f"build-{processor}"
    if not (build / "build.ninja").exists():
        sys.exit(f"processors.py: {build.name} is not configured; expected ./setup.sh {processor} before")
    column, skips = dict.fromkeys(ROWS, 0), []
    status, _ = run(["meson", "test", "-C", build.name, "--print-errorlogs", *summary.names(build, ON_NODES)])
    count_cases(build, column, skips)
    if status and not column[FAILED]:
        sys.exit(f"processors.py: {build.name}: the build failed")

    hosted = "firmware/bare/espalier-bare-hosted"
    for folder, *programs in (("build", "tools/espalier", "firmware/node/espalier-node", "firmware/gateway/espalier-gateway", hosted),
                              (build.name, "firmware/node/espalier-node", hosted)):
        if run(["ninja", "-C", folder, *programs])[0]:
            sys.exit(f"processors.py: the build of the nodes in {folder} failed")
    status, output = run(["tests/run/mixed_test.py", processor])
    column[FAILED] += status != 0
    for provider in ("tcp", "mem"):
        column[MIXED.format(provider)] = first_number(rf"\b(\d+) runs over {provider} ", output)
    with tempfile.TemporaryDirectory() as folder:
        board = pathlib.Path(folder) / "board"
        board.write_text(f"#!/bin/sh\nexec {EMULATORS[processor]} -L '{ROOT}/build-root-{processor}' '{build / hosted}' \"$@\"\n")
        board.chmod(0o755)
        status, output = run(["tests/run/gateway_test.py", "-v", "Boards.test_every_collective"], ESPALIER_BARE_HOSTED=str(board))
    column[FAILED] += status != 0
    column[GATEWAYS] = first_number(r"\b(\d+) collectives over gateways", output)
    return column, skips


def page(columns, skips):
    """Returns the page of columns, processor -> row -> number, and of skipped cases, processor -> cases."""
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    lines += [f"| {row} | " + " | ".join(str(column[row]) for column in columns.values()) + " |" for row in ROWS]
    cases = [f"- {processor}, {case}" for processor in columns for case in skips[processor]]
    if cases:
        lines += ["", SKIPS, "", *cases]
    return TEXT + "\n".join(lines) + "\n"


def read(text):
    """Returns the columns and the skipped cases of a page, which may be of another form."""
    cells = [re.split(r" \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
    names = next((row for row in cells if row[0] in EMULATORS), [])
    rows = {row[0]: row[1:] for row in cells if row[0] in ROWS and all(map(str.isdigit, row[1:]))}
    columns = {processor: {row: int(numbers[at]) for row, numbers in rows.items() if at < len(numbers)} for at, processor in enumerate(names)}
    skips = {processor: re.findall(rf"^- {processor}, (.*)$", text, re.M) for processor in EMULATORS}
    return columns, skips


def wrong_rows(columns):
    """Returns the rows that say that something failed or did not run."""
    return [f"{processor}: {row}: {number}" for processor, column in columns.items() for row, number in column.items()
            if row != SKIPPED and (number != 0) == (row == FAILED)]


def problems(text):
    """Returns what is wrong with the text of a page."""
    columns, skips = read(text)
    if list(columns) != list(EMULATORS) or any(list(column) != ROWS for column in columns.values()) or text != page(columns, skips):
        return ["the page is old; expected the form of\n" + page({processor: dict.fromkeys(ROWS, 0) for processor in EMULATORS},
                                                                  dict.fromkeys(EMULATORS, []))]
    return wrong_rows(columns) + [f"{processor}: {column[SKIPPED]} skipped, {len(skips[processor])} of them with a reason"
                    for processor, column in columns.items() if column[SKIPPED] != len(skips[processor])]


def check(path):
    """Whether problems() finds those of made-up pages, and none of the page at `path`. Returns the exit status."""
    column = {**dict.fromkeys(ROWS, 3), SKIPPED: 1, FAILED: 0}
    good = page(dict.fromkeys(EMULATORS, column), dict.fromkeys(EMULATORS, ["`a`: `B.C`: why"]))
    bad = [good.replace("| 0 | 0 |", "| 0 | 1 |"), good.replace("| 3 | 3 |", "| 3 | 0 |", 1), good.replace("s390x |", "s390 |"),
           good.replace("- armhf, `a`: `B.C`: why\n", ""), good + "\n"]
    if problems(good) or not all(map(problems, bad)):
        sys.exit("processors.py: a made-up page is judged wrongly")
    found = problems(path.read_text())
    for each in found:
        print(f"processors.py: {path}: {each}")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("processors", nargs="*", metavar="PROCESSOR")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--page", type=pathlib.Path)
    what.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    for name in options.processors:
        if name not in EMULATORS:
            parser.error(f"unknown processor '{name}'; expected {' or '.join(EMULATORS)}")
    if options.processors and options.check:
        parser.error("--check is for the whole page; expected no processor")
    if options.check:
        return check(options.check)
    columns, skips = {}, {}
    for processor in options.processors or EMULATORS:
        columns[processor], skips[processor] = test(processor)
    print(page(columns, skips))
    if options.page:
        kept, kept_skips = read(options.page.read_text() if options.page.exists() else "")
        none = dict.fromkeys(ROWS, 0)
        options.page.write_text(page({each: none | (columns.get(each) or kept.get(each, {})) for each in EMULATORS}, kept_skips | skips))
    return 1 if wrong_rows(columns) else 0


if __name__ == "__main__":
    sys.exit(main())
