#!/usr/bin/env python3
"""An MPI program gives the same results with Espalier's library in front as without it.

bridge_test.py LIBRARY PROGRAM BRIDGE FOLDER
LIBRARY: see launch.py; its launcher runs PROGRAM (every_collective.c), once alone and once with BRIDGE in LD_PRELOAD. Each result is compared
bit by bit. Prints how many calls Espalier took, and the share of the pairs of operator and type.
"""

import os
import pathlib
import re
import shutil
import sys

from launch import Library

RANKS = 4


def fail(text):
    sys.exit(f"bridge_test.py: {text}")


def run(library, program, bridge, folder, ranks, *arguments):
    """Returns the results of all ranks, and what the program prints on stderr."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = library.run(bridge, ranks, [program, str(folder), *arguments], {"ESPALIER_MPI_COUNTS": "1"})
    if done.returncode != 0:
        fail(f"{library.label}, {'with' if bridge else 'without'} the library: status {done.returncode}\n{done.stdout}{done.stderr}")
    return [(folder / str(rank)).read_text().splitlines() for rank in range(ranks)], done.stderr


def compare(library, program, bridge, folder, ranks, *arguments, only_without=()):
    """Returns the counts {function: (by Espalier, by MPI)}. only_without: more arguments of the program without the bridge."""
    without, _ = run(library, program, "", folder / "without", ranks, *arguments, *only_without)
    results, printed = run(library, program, bridge, folder / "with", ranks, *arguments)
    different = [f"rank {rank}: {b}\n        expected {a}" for rank in range(ranks) for a, b in zip(without[rank], results[rank]) if a != b]
    if different or [len(lines) for lines in without] != [len(lines) for lines in results]:
        fail(f"{library.label}: {len(different)} results differ, the first are\n" + "\n".join(different[:10]))
    counts = {name: (int(ours), int(theirs)) for name, ours, theirs in re.findall(r"^MPI_(\S+).*?(\d+) +(\d+)$", printed, re.M)}
    if not counts:
        fail(f"{library.label}: no counts were printed:\n{printed}")
    print(f"{library.label}, {ranks} ranks: {sum(map(len, results))} results are the same")
    return counts, printed


def main(library, program, bridge, folder):
    library = Library(library)
    folder = pathlib.Path(folder)
    counts, _ = compare(library, program, bridge, folder, RANKS, "pairs")
    ours, theirs = counts["Allreduce"]
    print(f"{ours // RANKS} of {(ours + theirs) // RANKS} pairs of operator and type by Espalier: {100 * ours / (ours + theirs):.0f} %")
    if ours < 0.9 * (ours + theirs):
        fail("less than 90 % of the pairs")
    if library.name == "mpich" and not os.environ.get("ESPALIER_WHOLE"):
        print(f"{library.label}: skipped, every other call: its processes spin while they wait, which takes minutes on few cores; ESPALIER_WHOLE=1 runs it")
        return
    print(compare(library, program, bridge, folder, RANKS)[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
