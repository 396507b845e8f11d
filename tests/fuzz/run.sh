#!/bin/sh
# Fuzzes every parser: tests/fuzz/run.sh SECONDS [TARGET...]
# Each target (all, or the named ones) runs until it has found no new edge of the program for SECONDS. Prints a table, and
# what it does on stderr. Builds build-fuzz/ with clang, libFuzzer, ASan and UBSan (./setup.sh campaign installs them). Failing inputs
# stay in build-fuzz/found/. New inputs that reach new code are minimised and added to the target's archive,
# tests/fuzz/corpus/TARGET.tar. Exit status: 0 no input failed; 1 some did; 2 bad input.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../.."
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

fail() {
  echo "run.sh: $1" >&2
  exit 2
}
all=$(cd tests/fuzz/corpus && ls -- *.tar | sed 's/\.tar$//')
case "${1-}" in
  '' | *[!0-9]* | 0*) fail "the first argument is '${1-}'; it must be a number of seconds" ;;
esac
seconds=$1
shift
targets=${*:-$all}
for target in $targets; do
  [ -f "tests/fuzz/corpus/$target.tar" ] || fail "no target '$target'; expected some of: $(echo $all)"
done
command -v clang++ >/dev/null || fail 'clang++ is missing; ./setup.sh campaign installs it'

# Limits, stated in docs/verifier.md: one allocation, the whole process, one input's time.
limits='-malloc_limit_mb=64 -rss_limit_mb=1024 -timeout=20'

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
export UBSAN_OPTIONS

# The largest input of a target, in bytes.
largest() {
  case $1 in
    loader | selection) echo 16384 ;;
    schedule) echo 96 ;;
    image) echo 8192 ;;
    bootstrap | control | key) echo 512 ;;
    *) echo 4096 ;;
  esac
}
stat_of() {  # NAME LOG: the last value of a libFuzzer statistic
  sed -n "s/^stat::$1: *//p" "$2" | tail -n 1
}

cat <<END
# Fuzzing

What \`tests/fuzz/run.sh $seconds\` printed: each target ran, with ASan and UBSan, until it had found no new edge of the program for $seconds
seconds. The sources of the targets, tests/fuzz/TARGET.cc, say what each feeds and what it expects. Edges are those that the inputs reach
together. \`./test.sh\` replays the kept inputs.

| target | executions | per second | edges | inputs kept | failures |
| --- | ---: | ---: | ---: | ---: | ---: |
END
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
  executions=0 time=0 edges=-1
  while :; do
    before=$edges
    begin=$(date +%s)
    "$fuzzer" $limits "-max_len=$length" "-max_total_time=$seconds" -print_final_stats=1 "-artifact_prefix=$found/" \
      "$work" "$kept" >"$log" 2>&1 && ended=0 || ended=$?
    time=$((time + $(date +%s) - begin))
    done_now=$(stat_of number_of_executed_units "$log")
    executions=$((executions + ${done_now:-0}))
    edges=$(sed -n 's/^#[0-9]*.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    edges=${edges:-0}
    echo "$target: $executions executions, $edges edges" >&2
    [ $ended = 0 ] || status=1
    [ $ended = 0 ] && [ "$edges" != "$before" ] || break
  done
  [ "$(find "$found" -type f | wc -l)" = 0 ] || grep -E 'SUMMARY|fuzz: |runtime error' "$log" >&2 || true
  rm -rf "$work-small"
  mkdir "$work-small"
  "$fuzzer" $limits "-max_len=$length" -merge=1 "$work-small" "$kept" "$work" >>"$log" 2>&1 || status=1
  # Keeps the smallest new inputs, so that each corpus stays below half a megabyte. Seeds, which have names, stay.
  find "$kept" -type f -name '[0-9a-f]*' ! -name '*-*' -delete
  find "$work-small" -type f -size -2k -printf '%s %p\n' | sort -n | head -n 250 | while read -r _ input; do
    cp "$input" "$kept/"
  done
  tests/fuzz/pack.sh "$target" "$kept" || fail "the inputs of $target, in $kept, cannot be packed"
  echo "| $target | $executions | $((executions / (time > 0 ? time : 1))) | $edges | $(find "$kept" -type f | wc -l) | $(find "$found" -type f | wc -l) |"
done
[ -z "$(find build-fuzz/found -type f)" ] || status=1
[ $status = 0 ] || echo "run.sh: found something: see build-fuzz/found and build-fuzz/*.log" >&2
exit $status
