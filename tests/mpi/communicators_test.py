#!/usr/bin/env python3
"""Many communicators of MPI with Espalier's library in front, freed in any order, and used by several threads.

communicators_test.py LIBRARY PROGRAM BRIDGE
LIBRARY: see launch.py; its launcher runs PROGRAM (communicators.c) with BRIDGE in LD_PRELOAD over shared memory, with at most 1,024 open files.
Checks the memory, threads and descriptors per communicator against limits. The memory is what the library in front adds to the MPI library's.
"""

import os
import re
import resource
import sys

from launch import Library

# Of resident memory for each communicator beside the MPI library's, by the number of ranks: when it was made, and after a short collective.
MAX_KB = {2: (128, 256), 8: (128, 256)}


def fail(text):
    sys.exit(f"communicators_test.py: {text}")


def run(library, program, bridge, ranks, *arguments):
    """Returns what the program prints."""
    done = library.run(bridge, ranks, [program, *arguments],
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))
    if done.returncode != 0 or f"{arguments[0]} ok" not in done.stdout:
        fail(f"{library.label}, {ranks} ranks, {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    print(done.stdout, end="")
    return done.stdout


def check_many(library, program, bridge, ranks, number):
    def numbers(in_front):
        printed = run(library, program, in_front, ranks, "many", str(number))
        return list(map(int, re.search(r"communicators (\d+) made_kb (-?\d+) used_kb (-?\d+) threads (-?\d+) files (-?\d+)", printed).groups()))

    max_made, max_used = MAX_KB[ranks]
    # MPICH 5 has 47 KB for each of the first 40.
    _, mpi_made, mpi_used, _, _ = numbers("")
    count, made, used, threads, files = numbers(bridge)
    made -= mpi_made
    used -= mpi_used
    if made > max_made or used > max_used:
        fail(f"{count} communicators: {made} KB each when made, expected at most {max_made}; {used} KB after a short collective, "
             f"expected at most {max_used}")
    if threads > 0 or files > 32:
        fail(f"{count} communicators: {threads} threads and {files} files more; expected 0, and at most 32 files of the MPI library")


def main(library, program, bridge):
    library = Library(library)
    check_many(library, program, bridge, 2, 40)
    check_many(library, program, bridge, 2, 1000)
    run(library, program, bridge, 2, "frees")
    run(library, program, bridge, 2, "churn", "200")
    run(library, program, bridge, 2, "threads")
    run(library, program, bridge, 2, "starts")
    run(library, program, bridge, 3, "persistent", "200")
    if library.name == "openmpi" or os.environ.get("ESPALIER_WHOLE"):
        check_many(library, program, bridge, 8, 40)
    else:
        print(f"{library.label}: skipped, 8 ranks: they spin while they wait; ESPALIER_WHOLE=1 runs them")
    if library.name == "openmpi" and os.environ.get("ESPALIER_WHOLE"):
        run(library, program, bridge, 130, "routines")  # a rank has at most 128 links
    else:
        print(f"{library.label}: skipped, 130 ranks: they take minutes on few cores; ESPALIER_WHOLE=1 runs them under Open MPI")


if __name__ == "__main__":
    main(*sys.argv[1:])
