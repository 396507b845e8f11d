#!/bin/sh
# joining.sh [RANKS]: prints docs/results/joining.md: the time to join a job of RANKS processes (64) on this machine, next to MPI_Init
# under the same launchers.
# Needs a build with both MPI libraries: ninja -C build tests/bench/joining tests/bench/joining-mpi-openmpi tests/bench/joining-mpi-mpich
set -eu
ranks=${1:-64}
build=$(dirname "$(readlink -f "$0")")/../../build
bench=$build/tests/bench
export IPATH_NO_BACKTRACE=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for program in joining joining-mpi-openmpi joining-mpi-mpich; do
  [ -x "$bench/$program" ] || { echo "joining.sh: no $program; expected: ninja -C build tests/bench/$program" >&2; exit 2; }
done
row() {  # NAME COMMAND...
  name=$1
  shift
  printf -- '- %s: %s\n' "$name" "$("$@" | sed 's/^\[0\] //')"
}
cat <<END
# Time to join a job

Written by \`tests/bench/joining.sh >docs/results/joining.md\`.
$ranks processes on one machine with $(nproc) processors, over tcp. \`espalier::join\` finds the launcher, opens the fabric and connects each rank to
those at distance 1, 2, 4, ... Open MPI's launcher is found by PMIx: that time is libpmix's own. The time in \`fi_getinfo\` is libfabric's
own search for providers.

END
row 'espalier launch' "$build/tools/espalier" launch -n "$ranks" "$bench/joining"
row 'mpirun of Open MPI' mpirun.openmpi --oversubscribe -n "$ranks" "$bench/joining"
row 'mpirun of Open MPI' mpirun.openmpi --oversubscribe -n "$ranks" "$bench/joining-mpi-openmpi"
row 'mpiexec of MPICH' mpiexec.hydra -n "$ranks" "$bench/joining"
row 'mpiexec of MPICH' mpiexec.hydra -n "$ranks" "$bench/joining-mpi-mpich"
