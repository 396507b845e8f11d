#!/usr/bin/env python3
"""Programs at the edges of MPI give the same results with Espalier's library in front as without it, and Espalier takes their calls.

programs_test.py LIBRARY BRIDGE FOLDER PROGRAM...
LIBRARY: see launch.py. PROGRAM: those of this folder, compiled for it.
"""

import pathlib
import sys

from bridge_test import compare, fail
from launch import Library

# MPICH's processes spin while they wait.
RANKS = {"openmpi": 4, "mpich": 3}
# Calls of each rank that are for the MPI library: its errors of operators and types that do not match, and reduce-scatters in the order of
# ranks with unequal counts.
FOR_MPI = {"wrong_arguments": 5, "in_order": 2}
# These call MPI_Dist_graph_create().
HAS_GRAPHS = ("makers", "fortran_mpif_h", "fortran_mpi", "fortran_f08")
# The MPI libraries have wrong results for what this program starts, so it runs something else without the bridge.
ONLY_WITHOUT = {"later": ["blocking"]}


def main(library, bridge, folder, programs):
    library = Library(library)
    ranks = RANKS[library.name]
    bridge, *programs = (str(pathlib.Path(path).resolve()) for path in (bridge, *programs))
    for program in programs:
        name = pathlib.Path(program).name.split(".")[0]
        counts, printed = compare(library, program, bridge, pathlib.Path(folder) / name, ranks,
                                  only_without=ONLY_WITHOUT.get(name, []))
        ours, theirs = counts.pop("*")
        is_without = library.label == "openmpi" and name in HAS_GRAPHS
        without = ", without MPI_Dist_graph_create(), in which Open MPI 4.1.4 sometimes waits for ever" if is_without else ""
        print(f"{name}: {ours} calls by Espalier, {theirs} by MPI{without}")
        if ours == 0 or theirs != ranks * FOR_MPI.get(name, 0):
            fail(f"{library.label}: {name} has {theirs} calls that Espalier does not take\n{printed}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
