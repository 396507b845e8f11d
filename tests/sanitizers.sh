#!/bin/sh
# Runs tests under a checker, in a build folder of its own (build-address, build-thread, build-valgrind).
#   tests/sanitizers.sh address [TEST...]    all tests of the host, those over libfabric included, under ASan and UBSan
#   tests/sanitizers.sh thread [TEST...]     the tests of what has threads, or runs in them, under TSan
#   tests/sanitizers.sh valgrind [TEST...]   the unit tests under valgrind; ./setup.sh valgrind installs it
# TEST: only these. The last lines count what ran; exit status 1 if any test failed. Tests take smaller samples (tests/whole.h).
# The suppressions in tests/sanitizers name libraries of others only, which a test checks.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

fail() {
  echo "sanitizers.sh: $1" >&2
  exit "${2-2}"
}
[ $# -ge 1 ] || fail "takes a checker; expected address, thread or valgrind"
checker=$1
shift
build=build-$checker
suppressions=$PWD/tests/sanitizers
under='' wrapper=''
# -g1 is enough for the lines of a report.
case "$checker" in
  address)
    options='-Dbuildtype=debug -Doptimization=0 -Dcpp_args=-g1 -Db_sanitize=address,undefined'
    ;;
  thread)
    options='-Dbuildtype=debug -Doptimization=1 -Dcpp_args=["-g1","-Wno-tsan"] -Db_sanitize=thread'
    folders='bootstrap communicator hal/fabric firmware/gateway firmware/node'
    also='cluster launch soak strangers survivors-mem-tcp-2 survivors-tcp'
    # The runtime of gcc 12 does not know the addresses that newer kernels draw.
    under='setarch -R'
    ;;
  valgrind)
    command -v valgrind >/dev/null || fail 'valgrind is missing; ./setup.sh valgrind installs it'
    options='-Dbuildtype=debug -Doptimization=1 -Dcpp_args=-g1'
    wrapper="valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite
      --fair-sched=yes --suppressions=$suppressions/valgrind.supp"
    ;;
  *) fail "unknown checker '$checker'; expected address, thread or valgrind" ;;
esac

if ! grep -qF "\"source\": \"$PWD\"" $build/meson-info/meson-info.json 2>/dev/null || [ "$(cat $build/options 2>/dev/null)" != "$options" ]; then
  rm -rf $build
  log=$(mktemp)
  meson setup $build $options >"$log" 2>&1 || { cat "$log" >&2; fail "$build cannot be set up"; }
  rm -f "$log"
  echo "$options" >$build/options
fi
rm -f $build/*.xml $build/meson-logs/testlog*  # of earlier runs
names=$*
if [ -z "$names" ]; then
  case "$checker" in
    thread) names="$(/usr/bin/python3 tests/summary.py --names $build $folders) $also" || fail 'no tests' ;;
    valgrind) names=$(/usr/bin/python3 tests/summary.py --units $build) || fail 'no tests' ;;
  esac
fi
export ESPALIER_SMALL_SAMPLE=1
export ASAN_OPTIONS=detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions=$suppressions/leaks.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=suppressions=$suppressions/thread.supp:halt_on_error=0:exitcode=66:second_deadlock_stack=1
status=0
$under meson test -C $build --print-errorlogs ${wrapper:+--wrapper "$(echo $wrapper)"} $names || status=1
# meson adds the wrapper's name.
[ -z "$wrapper" ] || mv $build/meson-logs/testlog-$checker.json $build/meson-logs/testlog.json
/usr/bin/python3 tests/summary.py $build
exit $status
