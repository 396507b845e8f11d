#!/bin/sh
# Installs and builds what is needed and runs every test: all of this machine's build and, beside them, in the time that those
# spend waiting for processes and deadlines,
#   - the tests of descriptors, images, bootstrap, the machine, the verifier, the simulated and faulty networks, serial links, shared
#     memory (hal/mem), the tools, and random programs under ASan and UBSan (the tools and random programs run a sample, which they
#     print),
#   - those of the Cortex-M3 (boards/mps2-an385) under qemu-system-arm, and of the Cortex-M4F and M7 (mps2-an386, mps2-an500) those that
#     depend on the processor; of the Cortex-M0 (microbit) what its firmware takes; of RISC-V (virt-rv32) under qemu-system-riscv32
#     those that depend on the processor,
#   - of aarch64 (boards/linux-aarch64) under qemu-user those that depend on the processor.
# The last line says how many cases passed, failed and were skipped; exit status 1 if any failed.
#   ./test.sh [--without-aarch64]
#   ./test.sh quick          only the unit tests, with smaller samples and without the slow ones, and one collective run on eight
#                            node processes
#   ./test.sh tidy [BASE]    only clang-tidy: all sources, or those that differ from the git revision BASE and their users
# More than ./test.sh runs, by hand: ESPALIER_WHOLE=1 meson test -C build (what the samples are of; hours),
# meson test -C build-aarch64 (all of its tests), tests/fuzz/run.sh, tests/coverage.sh.
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 2
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
# A newer compiler has other warnings: they are errors here only, never for who builds Espalier to use it.
export ESPALIER_WERROR=true
# libfabric's verbs provider looks for a symbol in /proc/kallsyms whenever a process starts: 0.1 s of processor time, and the tests
# start thousands. Root's tests see an empty one, in a mount namespace of their own.
hide_symbols='mount --bind /dev/null /proc/kallsyms'
if [ -z "${ESPALIER_SYMBOLS_HIDDEN-}" ] && [ "$(id -u)" = 0 ] && unshare --mount $hide_symbols 2>/dev/null; then
  export ESPALIER_SYMBOLS_HIDDEN=1
  exec unshare --mount sh -c "$hide_symbols && exec \"\$0\" \"\$@\"" ./test.sh "$@"
fi
# The tests write many small files, which a disk makes them wait for.
if [ -z "${TMPDIR-}" ] && [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null; then
  TMPDIR=$(mktemp -d /dev/shm/espalier-tests-XXXXXX) && export TMPDIR && trap 'rm -rf "$TMPDIR"' EXIT
fi
sanitized='base bootstrap collectives/schedule collectives/machine collectives/verify firmware/image firmware/boot firmware/update hal/sim collectives/simulation hal/serial hal/mem hal/fault
  hal/conformance tools tests/compile tests/simulate tests/random tests/graphs tests/spares tests/storm'
# -g1 is enough for the lines of a report, and compiles in half the time of -g. meson.build says what is optimized all the same.
# A program with a fixed address starts in half the time: its tables of types and variables need no relocation.
sanitizers='-Dwerror=true -Dbuildtype=debug -Doptimization=0 -Dcpp_args=-g1 -Dc_link_args=-no-pie -Dcpp_link_args=-no-pie
  -Db_staticpic=false -Db_sanitize=address,undefined -Dofi=false'
# What depends on the processor: operators, atomics, alignment, the order of bytes, codes and signatures, libfabric of its own.
on_aarch64='base boot fault golden image machine mem node ofi ofi-authentication ofi-heap schedule
  serial'
# On bare metal: of all boards of a family but one, this is a sample.
on_processors='bare-operators bare-memory bare-startup bare-fault bare-collectives instructions footprint'

usage() {
  echo "test.sh: $1; expected nothing, --without-aarch64, quick, or tidy [BASE]" >&2
  exit 2
}
give_up() {
  echo "test.sh: $1"
  echo '0 passed, 1 failed'
  exit 1
}

quick() {
  ./setup.sh || give_up 'setup.sh failed'
  names=$(/usr/bin/python3 tests/summary.py --units build) || give_up 'no unit tests'
  rm -f build/*.xml build/meson-logs/testlog*  # of earlier runs
  ninja -C build --quiet tools/espalier firmware/node/espalier-node || give_up 'the build failed'
  echo '== one run: two-tree allreduce, 8 node processes over libfabric (tcp)'
  { build/tools/espalier compile --topology complete:8 --collective allreduce --algorithm two-tree -o build/quick.esp &&
    build/tools/espalier verify build/quick.esp &&
    build/tools/espalier run build/quick.esp --provider tcp --bytes 65536 --op sum --type f32; } || give_up 'the run failed'
  echo '== unit tests'
  ESPALIER_SMALL_SAMPLE=1 meson test -C build --print-errorlogs --quiet $names
  /usr/bin/python3 tests/summary.py build
  exit
}

tidy() {
  ./setup.sh tidy || give_up 'setup.sh failed'
  # A folder of its own, with a command per source; of the build only the headers that it makes are needed.
  if ! [ -f build-tidy/build.ninja ] || ! grep -qF "\"source\": \"$PWD\"" build-tidy/meson-info/meson-info.json; then
    rm -rf build-tidy
    meson setup build-tidy -Dunity=off >build/setup-tidy.log || { cat build/setup-tidy.log; give_up 'build-tidy cannot be set up'; }
  fi
  ninja -C build-tidy --quiet $(/usr/bin/python3 tests/summary.py --generated build-tidy) || give_up 'the build failed'
  /usr/bin/python3 tests/gates/tidy.py . build-tidy ${1:+--base "$1"}
  exit
}

case "${1-}" in
  '') ;;
  --without-aarch64) [ $# = 1 ] || usage "unknown argument '$2'" ;;
  quick) [ $# = 1 ] || usage "unknown argument '$2'"; quick ;;
  tidy) [ $# -le 2 ] || usage "unknown argument '$3'"; shift; tidy "$@" ;;
  *) usage "unknown argument '$1'" ;;
esac

emulated='build-m3 build-m4 build-m7 build-m0 build-rv32 build-aarch64'
skipped=''
without() {  # BUILD REASON
  emulated=$(echo "$emulated" | sed "s/$1//")
  skipped="$skipped${skipped:+
}$1: $2"
}
if [ "$(uname -m)" = aarch64 ]; then
  without build-aarch64 'this machine is aarch64 itself, and build/ is that suite'
elif [ $# = 1 ]; then
  without build-aarch64 'the aarch64 suite, by --without-aarch64'
fi

case "$emulated" in
  *aarch64*) ./setup.sh aarch64 || give_up 'setup.sh failed' ;;
  *) ./setup.sh || give_up 'setup.sh failed' ;;
esac
[ -f build-m3/build.ninja ] || without build-m3 'the Cortex-M3 suite, for it was not configured (see above)'
[ -f build-m4/build.ninja ] || without build-m4 'the Cortex-M4F suite, for it was not configured (see above)'
[ -f build-m0/build.ninja ] || without build-m0 'the Cortex-M0 suite, for it was not configured (see above)'
[ -f build-rv32/build.ninja ] || without build-rv32 'the RISC-V suite, for it was not configured (see above)'
[ -f build-m7/build.ninja ] || without build-m7 'the Cortex-M7 suite, for it was not configured (see above)'
echo '== build'
# Since Meson 1.7, 'all' does not have what only tests need.
ninja -C build --quiet all meson-test-prereq || give_up 'the build failed'
# What the tests of clusters of several kinds of board start.
for build in $emulated; do
  case $build in
    build-aarch64) target=firmware/node/espalier-node ;;
    build-m0 | build-m4 | build-m7 | build-rv32) target=firmware/bare/espalier-bare.elf ;;
    *) target=all ;;
  esac
  ninja -C $build --quiet $target || give_up "$build: the build failed"
done
rm -f build/*.xml build-*/*.xml build*/meson-logs/testlog*  # of earlier runs

if ! [ -f build-sanitize/build.ninja ] || ! grep -qF "\"source\": \"$PWD\"" build-sanitize/meson-info/meson-info.json ||
  [ "$(cat build-sanitize/options 2>/dev/null)" != "$sanitizers" ]; then
  rm -rf build-sanitize
  meson setup build-sanitize $sanitizers >build/setup-sanitize.log ||
    { cat build/setup-sanitize.log; give_up 'the sanitizers cannot be set up'; }
  echo "$sanitizers" >build-sanitize/options
fi
# chosen BUILD: prints the names of those of its tests that are run; nothing: all.
chosen() {
  case $1 in
    build-sanitize) /usr/bin/python3 tests/summary.py --names $1 $sanitized ;;
    build-aarch64) /usr/bin/python3 tests/summary.py --tests $1 $on_aarch64 ;;
    build-m4 | build-m7 | build-rv32) /usr/bin/python3 tests/summary.py --tests $1 $on_processors ;;
  esac
}
for build in build-sanitize $emulated; do
  chosen $build >build/$build.names || give_up "$build: there is no such test"
done

# suite BUILD: becomes the process that builds and runs what is chosen of the BUILD's tests. It gives way to the tests of build/.
suite() {
  # ASan stores the stack of every allocation: with all 30 frames a tenth of the time goes into that, and a report needs few.
  export ESPALIER_SMALL_SAMPLE=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=malloc_context_size=5
  exec nice -n 19 meson test -C $1 --print-errorlogs $(cat build/$1.names) >build/$1.log 2>&1
}
# In the time that the other tests spend waiting.
beside() {
  trap 'kill $!; exit 1' TERM
  for build in build-sanitize $emulated; do
    suite $build &
    wait $!
  done
}
beside &
trap 'kill $!; exit 130' INT TERM

# One more at a time than processors: most of these tests wait, for processes, deadlines and emulators.
echo '== tests'
meson test -C build --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 1))
wait
for build in build-sanitize $emulated; do
  echo "== $build$(/usr/bin/python3 tests/summary.py --share $build)"
  cat build/$build.log
done

echo '== summary'
/usr/bin/python3 tests/summary.py build build-sanitize $emulated --skipped "$skipped"
