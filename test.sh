#!/bin/sh
# Installs and builds what is needed, runs every test, then those of the descriptor, the image, the machine and the simulated and
# faulty networks once more under ASan and UBSan, and builds examples/subproject against this tree. The last line
# says how many cases passed, failed and were skipped; exit status 1 if any failed.
set -u
cd "$(dirname "$(readlink -f "$0")")" || exit 2
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
sanitized='collectives/schedule collectives/machine firmware/image firmware/boot hal/sim hal/fault hal/conformance'

give_up() {
  echo "test.sh: $1"
  echo '0 passed, 1 failed'
  exit 1
}

./setup.sh || give_up 'setup.sh failed'
echo '== build'
ninja -C build --quiet || give_up 'the build failed'
rm -f build/*.xml build-sanitize/*.xml build*/meson-logs/testlog*  # of earlier runs

if ! [ -f build-sanitize/build.ninja ] || ! grep -qF "\"source\": \"$PWD\"" build-sanitize/meson-info/meson-info.json; then
  rm -rf build-sanitize
  # -O2 and -g would more than double the time of compiling; -g1 is enough for the lines of a report.
  meson setup build-sanitize -Dbuildtype=debug -Doptimization=1 -Dcpp_args=-g1 -Db_sanitize=address,undefined \
    -Dtools=false -Dofi=false >build/setup-sanitize.log ||
    { cat build/setup-sanitize.log; give_up 'the sanitizers cannot be set up'; }
fi
names=$(/usr/bin/python3 tests/summary.py --names build-sanitize $sanitized) || give_up 'no tests to sanitize'
# In the time that the other tests spend waiting for processes and deadlines.
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
  nice -n 19 meson test -C build-sanitize --print-errorlogs $names >build/sanitized.log 2>&1 &
trap 'kill $!; exit 130' INT TERM

echo '== tests'
meson test -C build --no-rebuild --print-errorlogs

echo '== ASan and UBSan'
wait
cat build/sanitized.log

echo '== summary'
exec /usr/bin/python3 tests/summary.py build build-sanitize
