#!/bin/sh
# Measures how much of collectives/verify is reached by its tests: the verifier's own tests, the replay of the fuzz
# corpora, and a sample of the mutation campaign (with 3 timing skews; 100 reach no more lines). Builds
# build-coverage/. Prints one line per file; exit status 1 if a test fails or less than 95 % of the lines were
# reached. ./setup.sh campaign installs gcovr.
set -u
cd "$(dirname "$(readlink -f "$0")")/.." || exit 2
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

fail() {
  echo "coverage.sh: $1" >&2
  exit "$2"
}
[ $# = 0 ] || fail "unknown argument '$1'; it takes none" 2
command -v gcovr >/dev/null || fail 'gcovr is missing; ./setup.sh campaign installs it' 2

if ! grep -qF "\"source\": \"$PWD\"" build-coverage/meson-info/meson-info.json 2>/dev/null; then
  rm -rf build-coverage
  meson setup build-coverage -Db_coverage=true -Dbuildtype=debug -Doptimization=1 -Dtools=false -Dofi=false \
    -Dcpp_args=-fprofile-update=atomic >/dev/null || fail 'build-coverage cannot be set up' 2
fi
find build-coverage -name '*.gcda' -delete  # left by earlier runs
names=$(/usr/bin/python3 tests/summary.py --names build-coverage collectives/verify tests/mutation tests/fuzz) ||
  fail 'no tests' 2
meson test -C build-coverage --print-errorlogs $names || fail 'a test failed' 1
gcovr --root . --filter 'collectives/verify/' --exclude '.*_test\.cc' --exclude '.*/testing/.*' \
  --fail-under-line 95 build-coverage || fail 'less than 95 % of the lines were reached' 1
