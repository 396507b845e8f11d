#!/bin/bash
# Espalier and Open MPI on 8 hosts with shaped 100 Mbit/s links, interleaved in one run; every result is checked.
#   net100.sh [ROUNDS]      default 5 rounds, about four minutes; root
# Exit status 0 if every result was correct and the medians kept three limits. At 8 MiB, broadcast may take at most
# 1.08 times the bound (bytes / goodput of a raw TCP ring of this run), and reduce at most 1.12 times. At 8 B,
# broadcast may take at most 1.5 times as long as Open MPI.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
[ "$(id -u)" = 0 ] || { echo 'net100.sh: network namespaces need root' >&2; exit 2; }
rounds=${1:-5}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "net100.sh: '$rounds' is no number of rounds; say 1 or more" >&2; exit 2; }
exec 9>/run/lock/espalier-lab # the laboratory's names exist once per machine
flock -n 9 || { echo 'net100.sh: another run has the laboratory; wait for its end' >&2; exit 2; }
./setup.sh bench
ninja -C build --quiet tools/espalier firmware/node/espalier-node
mkdir -p build/bench
gcc -O2 -Wall -Wextra -Werror tests/bench/ring.c -o build/bench/ring
mpicc.openmpi -O2 -Wall -Wextra -Werror tests/bench/mpi_collective.c -o build/bench/mpi_collective
ESPALIER_LAB=$PWD/build/bench/lab
export ESPALIER_LAB
trap 'tests/bench/lab.sh down' EXIT
tests/bench/lab.sh down # left by a killed run
tests/bench/lab.sh up 8 100
/usr/bin/python3 tests/bench/net100.py "$rounds"
