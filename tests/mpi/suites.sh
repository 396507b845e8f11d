#!/bin/sh
# Runs the collectives of MPI's public test suites, plain and with Espalier's library in front: see suites.py.
exec nice python3 "$(dirname "$0")/suites.py" "$@"
