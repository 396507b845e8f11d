#!/usr/bin/env python3
"""The bridge of another MPI library ends the program with one line that names the right one.

wrong_bridge_test.py LIBRARY PROGRAM BRIDGE EXPECTED     LIBRARY: see launch.py; EXPECTED: the name of the right bridge
"""

import re
import sys

from launch import Library


def main(library, program, bridge, expected):
    done = Library(library).run(bridge, 2, [program, "."])
    line = re.search(r"^espalier: libespalier-mpi-\w+\.so does not serve this program's MPI library, '.+'; expected (\S+)$", done.stderr, re.M)
    if done.returncode == 0 or not line or line[1] != expected:
        sys.exit(f"wrong_bridge_test.py: status {done.returncode}; expected another, and a line that names {expected}:\n{done.stdout}{done.stderr}")
    print(line[0])


main(*sys.argv[1:])
