#!/bin/sh
# Fuzzes every parser: tests/fuzz/run.sh [--at-most SECONDS] SECONDS [TARGET...]
# Each target (all, or the named ones) runs until it has found no new edge of the program for SECONDS, or --at-most seconds in all.
# Builds build-fuzz/ with clang, libFuzzer, ASan and UBSan (./setup.sh campaign installs them), and a dictionary for each target from
# the sources (dictionary.py). Failing inputs stay in build-fuzz/found/. New inputs that reach new code are minimised and added to
# the target's archive, tests/fuzz/corpus/TARGET.tar. Then tests/fuzz/page.py --write docs/results/fuzz.md has the figures.
# Exit status: 0 no input failed; 1 some did; 2 bad input.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

fail() {
  echo "run.sh: $1" >&2
  exit 2
}
all=$(cd tests/fuzz/corpus && ls -- *.tar | sed 's/\.tar$//')
number() {  # WHAT VALUE
  case "$2" in
    '' | *[!0-9]* | 0*) fail "$1 is '$2'; it must be a number of seconds" ;;
  esac
}
at_most=''
if [ "${1-}" = --at-most ]; then
  number --at-most "${2-}"
  at_most="--at-most $2"
  shift 2
fi
number 'the first argument' "${1-}"
seconds=$1
shift
targets=${*:-$all}
for target in $targets; do
  [ -f "tests/fuzz/corpus/$target.tar" ] || fail "no target '$target'; expected some of: $(echo $all)"
done
command -v clang++ >/dev/null || fail 'clang++ is missing; ./setup.sh campaign installs it'

if ! [ -f build-fuzz/build.ninja ]; then
  # Without werror: clang gives other warnings than g++, which builds everything else.
  CC=clang CXX=clang++ meson setup build-fuzz -Dfuzz=true -Dbuildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=false -Dc_args=-fsanitize=fuzzer-no-link \
    -Dcpp_args='-fsanitize=fuzzer-no-link -Wno-unknown-warning-option' >/dev/null || fail 'build-fuzz cannot be set up'
fi
for target in $targets; do
  ninja -C build-fuzz --quiet "tests/fuzz/fuzz-$target" >&2 || fail "the target $target cannot be built"
done
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
IPATH_NO_BACKTRACE=1
export UBSAN_OPTIONS IPATH_NO_BACKTRACE

# The largest input of a target, in bytes.
largest() {
  case $1 in
    loader | selection) echo 16384 ;;
    draw) echo 2048 ;;
    schedule) echo 96 ;;
    image) echo 8192 ;;
    agent | bootstrap | control | gateway | key | log) echo 512 ;;
    *) echo 4096 ;;
  esac
}
status=0
for target in $targets; do
  fuzzer=build-fuzz/tests/fuzz/fuzz-$target
  kept=build-fuzz/kept-$target
  work=build-fuzz/corpus-$target
  found=build-fuzz/found/$target
  log=build-fuzz/$target.log
  rm -rf "$kept"
  mkdir -p "$work" "$found" "$kept"
  tar -xf "tests/fuzz/corpus/$target.tar" -C "$kept" || fail "tests/fuzz/corpus/$target.tar cannot be unpacked"
  length=$(largest "$target")
  tests/fuzz/dictionary.py "$target" >"build-fuzz/$target.dict" || fail "the target $target has no dictionary"
  tests/fuzz/campaign.py "$target" "$seconds" --build build-fuzz --largest "$length" $at_most || status=1
  [ "$(find "$found" -type f | wc -l)" = 0 ] || grep -E 'SUMMARY|fuzz: |runtime error' "$log" >&2 || true
  rm -rf "$work-small"
  mkdir "$work-small"
  # Without counters only edges count: the smallest set of inputs that reach them all.
  "$fuzzer" -timeout=20 "-max_len=$length" -set_cover_merge=1 -use_counters=0 "$work-small" "$kept" "$work" >>"$log" 2>&1 ||
    status=1
  # Inputs of more than 2 KiB are left out, so that the archives stay small. Inputs with names stay: seeds, and what once failed.
  find "$kept" -type f -name '[0-9a-f]*' ! -name '*-*' -delete
  find "$work-small" -type f -name '[0-9a-f]*' ! -name '*-*' -size -2049c -exec cp {} "$kept/" \;
  tests/fuzz/pack.sh "$target" "$kept" || fail "the inputs of $target, in $kept, cannot be packed"
done
[ -z "$(find build-fuzz/found -type f)" ] || status=1
[ $status = 0 ] || echo "run.sh: found something: see build-fuzz/found and build-fuzz/*.log" >&2
exit $status
