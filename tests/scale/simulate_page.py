#!/usr/bin/python3
"""The time and memory of `espalier simulate`, by algorithm and ranks.

simulate_page.py build/tools/espalier >docs/results/simulate.md     1,000,000 ranks take some GB of memory
"""
import dataclasses
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import proofs
from pages import row

MB = 1_000_000
HEAD = """# What a simulation takes

Written by `tests/scale/simulate_page.py build/tools/espalier >docs/results/simulate.md`. Each row is a process of its own:

    espalier simulate FILE --bytes ... [--no-data]

`espalier compile --no-verify` has written the file before. The process reads the file, decodes all programs and runs them twice:
in lock step, and freely. Both runs use the real machines. With `--no-data` every message is posted, routed, received
and matched, but it has no bytes ([simulator.md](../simulator.md)).

- *bytes*: of the message; for allgather and all-to-all of one rank's part. *data*: "no" means `--no-data`.
- *N*: blocks per segment. *messages*: block messages of one run. Both runs send the same.
- *steps*: steps of the run in lock step. *lock step*, *freely*: virtual time of the two runs.
- *s*: processor time of the process (user and system), on one core. *messages/s*: the messages of both runs divided by *s*.
- *MB*: its largest memory. *bytes/node*: that memory divided by the nodes (ranks and routers with programs). {floor} MB means at most
  {floor}: the script that starts the process takes that itself.

A test compares every column up to *freely*: rows of less than {affordable} s always, the others with `ESPALIER_WHOLE=1`. The other columns
are of the machine that wrote the page. It has {cores} cores, and its load from other processes was {load:.1f} at the start."""
COLUMNS = ("collective", "algorithm", "topology", "bytes", "data", "N", "messages", "steps", "lock step, ms", "freely, ms",
           "s", "messages/s", "MB", "bytes/node")
EXACT = COLUMNS.index("s")
AFFORDABLE_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Case:
    collective: str
    algorithm: str
    topology: str
    bytes: int
    data: bool = False

    def key(self):
        return [self.collective, self.algorithm, self.topology, f"{self.bytes:,}", "yes" if self.data else "no"]


# The default table cuts 512 KiB in two segments of 64 blocks, and 64 bytes per rank in one block each.
TWO_TREE = [Case("broadcast", "two-tree", f"complete:{10**power}", 64 * 2 * 4096) for power in range(3, 7)]
RING = [Case("allgather", "ring", f"complete:{10**power}", 64) for power in (3, 4)]
BESIDE_DATA = [Case(*schedule, data) for schedule in (("allreduce", "two-tree", "complete:1024", 1 << 20),
                                                      ("all-to-all", "leaf", "fattree:k=4,h=3,c=1", 1 << 20))
               for data in (False, True)]
SECTIONS = (("Without data", TWO_TREE + RING), ("With and without data", BESIDE_DATA))


@dataclasses.dataclass(frozen=True)
class Simulation:
    report: dict    # the numbers that `espalier simulate --format json` prints, without its lists
    nodes: int      # with programs
    seconds: float  # of processor time
    memory: int     # bytes, at most

    def exact(self):
        """The cells of the page that are the same on every machine, after the case's own."""
        report = self.report
        assert report["simulated_steps"] == report["predicted_steps"], report
        assert report["messages"] == report["free_running_messages"], report
        return [str(report["blocks"]), f"{report['messages']:,}", f"{report['simulated_steps']:,}",
                f"{report['lock_step_seconds'] * 1e3:.3f}", f"{report['simulated_seconds'] * 1e3:.3f}"]

    def measured(self):
        return [f"{self.seconds:.2f}", f"{2 * self.report['messages'] / self.seconds:,.0f}", f"{self.memory / MB:,.0f}",
                f"{self.memory / self.nodes:,.0f}"]


def simulate(program, case):
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / "schedule.esp")
        refusal = proofs.run([program, "compile", "--no-verify", "--topology", case.topology, "--collective", case.collective,
                              "--algorithm", case.algorithm, "-o", file])[1]
        assert not refusal, refusal
        printed, refusal, seconds, memory = proofs.run([program, "simulate", file, "--bytes", str(case.bytes), "--format", "json",
                                                        *([] if case.data else ["--no-data"])])
        assert not refusal, refusal
    report = {name: value for name, value in json.loads(printed).items() if not isinstance(value, (dict, list))}
    return Simulation(report, report["nodes"], seconds, memory)


def in_a_small_process(function, *arguments):
    """A process counts the memory of the one that started it: this one grows as it reads reports."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main():
    program = sys.argv[1]
    floor = in_a_small_process(proofs.run, ["true"])[3]
    print(HEAD.format(affordable=AFFORDABLE_SECONDS, floor=f"{floor / MB:.0f}", cores=os.cpu_count(), load=os.getloadavg()[0]))
    for title, cases in SECTIONS:
        print(f"\n## {title}\n\n{row(COLUMNS)}\n|{5 * ' --- |'}{9 * ' ---: |'}", flush=True)
        for case in cases:
            found = in_a_small_process(simulate, program, case)
            print(row([*case.key(), *found.exact(), *found.measured()]), flush=True)


if __name__ == "__main__":
    main()
