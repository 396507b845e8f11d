#!/usr/bin/env python3
"""An MPI program gives the same results with Espalier's library in front as without it.

bridge_test.py LIBRARY PROGRAM BRIDGE FOLDER
LIBRARY: openmpi or mpich, whose launcher runs PROGRAM (every_collective.c), once alone and once with BRIDGE in LD_PRELOAD. Each result
is compared bit by bit. Prints how many calls Espalier took, and the share of the pairs of operator and type.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.hydra"}
RANKS = 4


def fail(text):
    sys.exit(f"bridge_test.py: {text}")


def run(library, program, bridge, folder, ranks, *arguments):
    """Returns the results of all ranks, and what the program prints on stderr."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "OMPI", "SLURM"))}
    env |= {"ESPALIER_MPI_COUNTS": "1", "IPATH_NO_BACKTRACE": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_mpi_yield_when_idle": "1"}
    command = [shutil.which(LAUNCHERS[library]), "-n", str(ranks)]
    if library == "openmpi":
        command += ["--oversubscribe", "-x", "ESPALIER_MPI_COUNTS"] + (["-x", f"LD_PRELOAD={bridge}"] if bridge else [])
    elif bridge:
        command += ["-genv", "LD_PRELOAD", bridge]
    done = subprocess.run([*command, program, str(folder), *arguments], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{library}, {'with' if bridge else 'without'} the library: status {done.returncode}\n{done.stdout}{done.stderr}")
    return [(folder / str(rank)).read_text().splitlines() for rank in range(ranks)], done.stderr


def compare(library, program, bridge, folder, ranks, *arguments, only_without=()):
    """Returns the counts {function: (by Espalier, by MPI)}. only_without: more arguments of the program without the bridge."""
    without, _ = run(library, program, "", folder / "without", ranks, *arguments, *only_without)
    results, printed = run(library, program, bridge, folder / "with", ranks, *arguments)
    different = [f"rank {rank}: {b}\n        expected {a}" for rank in range(ranks) for a, b in zip(without[rank], results[rank]) if a != b]
    if different or [len(lines) for lines in without] != [len(lines) for lines in results]:
        fail(f"{library}: {len(different)} results differ, the first are\n" + "\n".join(different[:10]))
    counts = {name: (int(ours), int(theirs)) for name, ours, theirs in re.findall(r"^MPI_(\S+).*?(\d+) +(\d+)$", printed, re.M)}
    if not counts:
        fail(f"{library}: no counts were printed:\n{printed}")
    print(f"{library}, {ranks} ranks: {sum(map(len, results))} results are the same")
    return counts, printed


def main(library, program, bridge, folder):
    if not shutil.which(LAUNCHERS[library]):
        print(f"skipped: {LAUNCHERS[library]} is not installed")
        sys.exit(77)
    folder = pathlib.Path(folder)
    counts, _ = compare(library, program, bridge, folder, RANKS, "pairs")
    ours, theirs = counts["Allreduce"]
    print(f"{ours // RANKS} of {(ours + theirs) // RANKS} pairs of operator and type by Espalier: {100 * ours / (ours + theirs):.0f} %")
    if ours < 0.9 * (ours + theirs):
        fail("less than 90 % of the pairs")
    if library == "mpich" and not os.environ.get("ESPALIER_WHOLE"):
        print("mpich: skipped, every other call: its processes spin while they wait, which takes minutes on few cores; ESPALIER_WHOLE=1 runs it")
        return
    print(compare(library, program, bridge, folder, RANKS)[1])


if __name__ == "__main__":
    main(*sys.argv[1:])
