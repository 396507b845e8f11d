#!/usr/bin/python3
"""How many block messages `espalier simulate --no-data` simulates in a second of processor time, and in how much memory.

page.py ESPALIER >docs/results/simulate.md    about ten minutes, and 6 GB; best on a quiet machine
page.py ESPALIER --check PAGE                 runs what takes seconds; what does not depend on the machine must be as in PAGE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Bytes: with the default block table two segments of 64 blocks; one block per rank.
CASES = [("broadcast", "two-tree", 10**power, 64 * 2 * 4096) for power in range(3, 7)]
CASES += [("allgather", "ring", 10**power, 64) for power in (3, 4)]
MOST_CHECKED = 3_000_000  # messages of a case that the test runs


def simulate(espalier, collective, algorithm, ranks, size):
    """The report, the processor time in seconds and the peak memory in bytes of one command."""
    with tempfile.TemporaryDirectory() as folder:
        schedule, report = pathlib.Path(folder, "schedule.esp"), pathlib.Path(folder, "report.json")
        subprocess.run([espalier, "compile", "--topology", f"complete:{ranks}", "--collective", collective, "--algorithm",
                        algorithm, "-o", schedule], check=True, stdout=subprocess.DEVNULL)
        with report.open("wb") as out:
            command = [espalier, "simulate", schedule, "--bytes", str(size), "--no-data", "--format", "json"]
            process = subprocess.Popen(command, stdout=out)
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{collective} by {algorithm} on {ranks} ranks: exit status {process.returncode}")
        found = json.loads(report.read_text())
    return found, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def exact(case, found):
    """The columns that are the same on every machine."""
    collective, algorithm, ranks, _ = case
    assert found["simulated_steps"] == found["predicted_steps"] and found["contention_free"]
    assert found["messages"] == found["free_running_messages"]
    return [f"{collective} by {algorithm}", ranks, found["blocks"], found["messages"], found["simulated_steps"],
            f"{found['lock_step_seconds'] * 1e3:.3f}", f"{found['simulated_seconds'] * 1e3:.3f}"]


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def write(espalier):
    print("""# Simulating very many ranks

Written by `tests/simulate/page.py build/tools/espalier >docs/results/simulate.md`; a test compares the columns up to *freely* for
the rows that take seconds. Each row is one `espalier simulate --no-data` of a schedule for a complete graph: the file is read
and decoded, and the nodes' machines run it twice, in lock step and freely. Every message is sent, routed, received and
matched; only its bytes are not there. *Messages* are those of one run, *per second* those of both by the processor time of the
whole command on one core, memory is the most that it held.

| schedule | ranks | N | messages | steps | lock step, ms | freely, ms | processor time, s | messages per second | memory, MB | bytes per rank |
|---|---|---|---|---|---|---|---|---|---|---|""", flush=True)
    for case in CASES:
        found, seconds, memory = simulate(espalier, *case)
        print(row(exact(case, found) + [f"{seconds:.1f}", f"{2 * found['messages'] / seconds:.0f}", f"{memory / 1e6:.0f}",
                                        f"{memory / case[2]:.0f}"]), flush=True)


def check(espalier, page):
    lines = pathlib.Path(page).read_text().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    bad = [] if len(table) == len(CASES) else [f"{len(table)} rows, expected {len(CASES)}"]
    checked = 0
    for case, cells in zip(CASES, table):
        if cells[:2] != [f"{case[0]} by {case[1]}", str(case[2])]:
            bad.append(f"expected a row for {case}, found {row(cells)}")
        elif int(cells[3]) <= MOST_CHECKED:
            found, _, _ = simulate(espalier, *case)
            wanted = [str(cell) for cell in exact(case, found)]
            checked += 1
            if cells[:len(wanted)] != wanted:
                bad.append(f"the page says {row(cells)}, now it is {row(wanted)}")
    if checked < 3:
        bad.append(f"only {checked} rows were compared")
    print("\n".join(bad) or f"{checked} of {len(table)} rows run, as on the page")
    sys.exit(1 if bad else 0)


if len(sys.argv) == 2:
    write(sys.argv[1])
elif len(sys.argv) == 4 and sys.argv[2] == "--check":
    check(sys.argv[1], sys.argv[3])
else:
    sys.exit(__doc__)
