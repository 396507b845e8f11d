#!/bin/sh
# Installs what is missing of packages.txt through apt, fetches the libraries' sources that bare metal compiles, and
# configures build/ and build-m3/ (boards/mps2-an385). Works from any directory, as root on a bare Debian 12.
#   ./setup.sh          what building, testing and running need
#   ./setup.sh aarch64  also what boards/linux-aarch64 needs; configures build-aarch64/
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

sections='build tests'
case "${1-}" in
  '') ;;
  aarch64 | bench | campaign) sections="$sections $1" ;;
  *) fail "unknown argument '$1'; give none, 'aarch64', 'bench' or 'campaign'" ;;
esac
native=$(dpkg --print-architecture)
if [ "${1-}" = aarch64 ] && [ "$native" = arm64 ]; then
  fail 'this machine is aarch64 itself: build/ is what it runs, and nothing is crossed'
fi

wanted=$(awk -v sections=" $sections " '/^#/ { on = index(sections, " " $2 " "); next } on' packages.txt)
installed=$(dpkg-query -W -f '${Package}:${Architecture} ${db:Status-Status}\n' | sed -n 's/ installed$//p')
# Whether package $1 is there, for this machine's architecture if it names none.
is_installed() {
  case "$1" in
    *:*) echo "$installed" | grep -qxF "$1" ;;
    *) echo "$installed" | grep -qxF -e "$1:$native" -e "$1:all" ;;
  esac
}
missing=''
for package in $wanted; do
  is_installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] || fail "not root, and these packages are missing:$missing"
  echo "setup.sh: installing$missing"
  apt='apt-get -q -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0'
  log=$(mktemp)
  # A foreign source that cannot be reached is apt-get's warning, not ours; what is missing then shows in the install.
  install_missing() {
    case "$missing" in *:arm64*) dpkg --add-architecture arm64 ;; esac
    $apt update || true
    $apt install --no-install-recommends $missing
  }
  install_missing >"$log" 2>&1 || { sleep 5; install_missing; } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    fail "apt-get could not install:$missing (its whole output: $log)"
  }
  rm -f "$log"
fi

# configure DIRECTORY [ARGUMENT...]: one that is not configured, or that belongs to another copy of the sources, is of no use.
configure() {
  if [ -f "$1/build.ninja" ] && grep -qF "\"source\": \"$PWD\"" "$1/meson-info/meson-info.json" 2>/dev/null; then
    return
  fi
  echo "setup.sh: configuring $1/"
  log=$(mktemp)
  rm -rf "$1"
  meson setup "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    fail "meson could not configure $1/"
  }
  rm -f "$log"
}
configure build
if [ "${1-}" = aarch64 ]; then
  configure build-aarch64 --cross-file boards/linux-aarch64/cross.ini
fi

bare=yes
for library in nanopb mbedtls libsodium; do
  firmware/bare/libraries/fetch.sh $library build/$library || {
    echo "setup.sh: no $library sources: nothing is built for bare metal, and its tests are skipped" >&2
    bare=no
  }
done
if [ $bare = yes ]; then
  configure build-m3 --cross-file boards/mps2-an385/cross.ini
fi
