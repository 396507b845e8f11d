#!/bin/sh
# Fuzzes the loader, the verifier, the image check, selections and framed links: tests/fuzz/run.sh SECONDS
# Each of the five targets gets a fifth of the time. Builds build-fuzz/ with clang,
# libFuzzer, ASan and UBSan (./setup.sh campaign installs them). Failing inputs stay in build-fuzz/found/.
# New inputs that reach new code are minimised and added to the
# target's archive, tests/fuzz/corpus/TARGET.tar. Exit status 0: no input failed.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

fail() {
  echo "run.sh: $1" >&2
  exit 2
}
case "${1-}" in
  '' | *[!0-9]* | 0*) fail "the first argument is '${1-}'; it must be a number of seconds" ;;
esac
fifth=$((($1 + 4) / 5))
command -v clang++ >/dev/null || fail 'clang++ is missing; ./setup.sh campaign installs it'

# Limits, stated in docs/verifier.md: one allocation, the whole process, one input's time.
limits='-malloc_limit_mb=64 -rss_limit_mb=1024 -timeout=20'

if ! [ -f build-fuzz/build.ninja ]; then
  # Without werror: clang gives other warnings than g++, which builds everything else.
  CC=clang CXX=clang++ meson setup build-fuzz -Dfuzz=true -Dtools=false -Dofi=false -Dbuildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=false -Dc_args=-fsanitize=fuzzer-no-link \
    -Dcpp_args='-fsanitize=fuzzer-no-link -Wno-unknown-warning-option' >/dev/null || fail 'build-fuzz cannot be set up'
fi
targets='loader schedule image selection frames'
for target in $targets; do
  ninja -C build-fuzz --quiet tests/fuzz/fuzz-$target || fail "the target $target cannot be built"
done
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export UBSAN_OPTIONS

status=0
for target in $targets; do
  fuzzer=build-fuzz/tests/fuzz/fuzz-$target
  kept=build-fuzz/kept-$target
  work=build-fuzz/corpus-$target
  found=build-fuzz/found/$target
  rm -rf "$kept"
  mkdir -p "$work" "$found" "$kept"
  tar -xf tests/fuzz/corpus/$target.tar -C "$kept" || fail "tests/fuzz/corpus/$target.tar cannot be unpacked"
  case $target in
    loader | selection) length=16384 ;;
    schedule) length=96 ;;
    image) length=8192 ;;
    frames) length=4096 ;;
  esac
  echo "== $target: $fifth s"
  "$fuzzer" $limits -max_len=$length -max_total_time="$fifth" -print_final_stats=1 \
    -artifact_prefix="$found/" "$work" "$kept" 2>build-fuzz/$target.log || status=1
  grep -E '^#[0-9]+: cov|SUMMARY|fuzz: |^stat::|runtime error' build-fuzz/$target.log | tail -n 12
  rm -rf "$work-small"
  mkdir "$work-small"
  "$fuzzer" $limits -max_len=$length -merge=1 "$work-small" "$kept" "$work" 2>>build-fuzz/$target.log || status=1
  # Keeps the smallest new inputs, so that each corpus stays below half a megabyte. Seeds, which have names, stay.
  find "$kept" -type f -name '[0-9a-f]*' ! -name '*-*' -delete
  find "$work-small" -type f -size -2k -printf '%s %p\n' | sort -n | head -n 250 | while read -r _ input; do
    cp "$input" "$kept/"
  done
  tests/fuzz/pack.sh $target "$kept" || fail "the inputs of $target, in $kept, cannot be packed"
  echo "   $(find "$kept" -type f | wc -l) inputs kept, $(find "$found" -type f | wc -l) findings"
done
[ -z "$(find build-fuzz/found -type f)" ] || status=1
[ $status = 0 ] || echo "run.sh: found something: see build-fuzz/found and build-fuzz/*.log" >&2
exit $status
