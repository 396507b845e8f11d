#!/usr/bin/python3
"""The memory that the 64 nodes of an 8 x 8 mesh on its own links take of one machine, and their time to start and end.

footprint.py PAGE    replaces the first part of docs/results/footprint.md; tests/bench/communicators.py writes the second one
"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import communicators  # noqa: E402
import espalier  # noqa: E402
import processes  # noqa: E402

WORDS = [espalier.COMMAND, "run", *espalier.what("mesh:8x8", "broadcast", "two-tree"), "--deadline", "60000", "--bytes", "1",
         "--node-binary", espalier.NODE]
MIB = 1 << 20


def measure(words):
    """(processes, bytes of all their memory), while they run."""
    run = subprocess.Popen([*words, "--back-to-back", "1000000000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (nodes := processes.nodes(run.pid)) or not all(map(processes.has_memory, nodes)):
        time.sleep(0.5)
    time.sleep(2)  # it is about to run
    memory = 0
    for node in nodes:
        lines = processes.read(node, "smaps_rollup").splitlines()
        memory += next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    run.terminate()
    run.wait()
    return len(nodes), memory


def part():
    yield "# 64 nodes on one machine\n"
    yield "Written by `tests/run/footprint.py docs/results/footprint.md`, the second part by `tests/bench/communicators.py`."
    yield "A broadcast of 1 byte over the links of `mesh:8x8` (`--links hop-by-hop`, 224 endpoints) and over the fabric"
    yield "(`--links routed`, 64 endpoints). Memory is what all nodes' processes have together, shared pages counted once;"
    yield "time is that of the whole command: compiling, verifying, starting, running, ending."
    yield f"{os.cpu_count()} cores.\n"
    yield "| links | provider | nodes a process | processes | memory MiB | time s |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for links, provider, together in (("hop-by-hop", "mem", 1), ("hop-by-hop", "mem", 16), ("hop-by-hop", "mem", 64),
                                      ("hop-by-hop", "tcp", 1), ("hop-by-hop", "tcp", 16), ("routed", "mem", 1),
                                      ("routed", "tcp", 1)):
        words = [*WORDS, "--links", links, "--provider", provider, "--nodes-per-process", str(together)]
        begin = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        count, memory = measure(words)
        yield f"| {links} | {provider} | {together} | {count} | {memory / MIB:.0f} | {seconds:.1f} |"


def main(page):
    _, mark, other = page.read_text(encoding="utf-8").partition(communicators.HEADING)
    lines = []
    for line in part():
        print(line, flush=True)
        lines.append(line)
    page.write_text("\n".join(lines) + "\n" + ("\n" + mark + other if mark else ""), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
