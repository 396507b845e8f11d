#!/bin/sh
# Installs what is missing of packages.txt through apt, fetches the libraries' sources that bare metal compiles, and
# configures build/. Works from any directory, as root on a bare Debian 12.
#   ./setup.sh          what building, testing and running need
#   ./setup.sh bench    also what tests/bench needs
#   ./setup.sh campaign also what tests/fuzz/run.sh and tests/coverage.sh need
set -eu
cd "$(dirname "$(readlink -f "$0")")"
# Debian's own python3 and meson, whatever else is first in the caller's PATH.
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH DEBIAN_FRONTEND=noninteractive

fail() {
  echo "setup.sh: $1" >&2
  exit 2
}

case "${1-}" in
  '') wanted=$(sed -e '/^# bench/,$d' -e '/^#/d' packages.txt) ;;
  bench) wanted=$(sed -e '/^# campaign/,$d' -e '/^#/d' packages.txt) ;;
  campaign) wanted=$(sed -e '/^# bench/,/^# campaign/d' -e '/^#/d' packages.txt) ;;
  *) fail "unknown argument '$1'; give none, 'bench' or 'campaign'" ;;
esac

missing=''
for package in $wanted; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] || fail "not root, and these packages are missing:$missing"
  echo "setup.sh: installing$missing"
  apt='apt-get -q -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0'
  log=$(mktemp)
  # A foreign source that cannot be reached is apt-get's warning, not ours; what is missing then shows in the install.
  install_missing() {
    $apt update || true
    $apt install --no-install-recommends $missing
  }
  install_missing >"$log" 2>&1 || { sleep 5; install_missing; } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    fail "apt-get could not install:$missing (its whole output: $log)"
  }
  rm -f "$log"
fi

# A build directory that is not configured, or that belongs to another copy of the sources, is of no use.
info=build/meson-info/meson-info.json
if ! [ -f build/build.ninja ] || ! grep -qF "\"source\": \"$PWD\"" "$info" 2>/dev/null; then
  echo 'setup.sh: configuring build/'
  log=$(mktemp)
  rm -rf build
  meson setup build >"$log" 2>&1 || {
    cat "$log" >&2
    fail 'meson could not configure build/'
  }
  rm -f "$log"
fi

for library in nanopb mbedtls libsodium; do
  firmware/bare/libraries/fetch.sh $library build/$library ||
    echo "setup.sh: no $library sources: nothing is built for bare metal, and its tests are skipped" >&2
done
