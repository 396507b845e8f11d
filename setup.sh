#!/bin/sh
# Installs what is missing of packages.txt through apt and configures the build folders. Works from any directory, as root on a
# bare Debian (12, 13 or unstable); with nothing missing, as any user. Without apt it says what to install.
#   ./setup.sh build    what building and running need; configures build/, without tests if it is new
#   ./setup.sh boards   also what firmware needs: fetches the libraries' sources that bare metal compiles, and configures build-m3/
#                       (boards/mps2-an385), build-m4/ (mps2-an386), build-m7/ (mps2-an500), build-m0/ (microbit) and build-rv32/ (virt-rv32)
#   ./setup.sh          all this, and what testing needs; configures build/ with tests
#   ./setup.sh aarch64  also what boards/linux-aarch64 needs; configures build-aarch64/
#   ./setup.sh armhf    also what boards/linux-armhf needs; configures build-armhf/. Its libraries are in build-root-armhf/.
#   ./setup.sh s390x    the same for boards/linux-s390x
#   ./setup.sh bench    also what tests/bench needs
#   ./setup.sh campaign also what tests/fuzz/run.sh and tests/coverage.sh need
#   ./setup.sh valgrind also what tests/sanitizers.sh valgrind needs
#   ./setup.sh tidy     also what ./test.sh tidy needs
#   ./setup.sh package  what building, dpkg-buildpackage and tests/install/clean_root.sh need
#   ./setup.sh container  what building and packaging/container/build.sh need
#   ./setup.sh docs     what building and the API reference (meson compile -C build docs) need
# With ESPALIER_WERROR=true, as ./test.sh has it, a warning is an error in the folders that it configures.
set -eu
cd "$(dirname "$(readlink -f "$0")")"
# Debian's own python3 and meson, whatever else is first in the caller's PATH.
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH DEBIAN_FRONTEND=noninteractive

fail() {
  echo "setup.sh: $1" >&2
  exit 2
}

[ $# -le 1 ] || fail "takes at most one argument, not $#"
with_tests=true
case "${1-}" in
  '') sections='build boards tests' ;;
  aarch64 | armhf | bench | campaign | s390x | tidy | valgrind) sections="build boards tests $1" ;;
  build) sections='build' with_tests=false ;;
  boards | container | docs | package) sections="build $1" with_tests=false ;;
  *) fail "unknown argument '$1'; expected none, 'build', 'boards', 'aarch64', 'armhf', 'bench', 'campaign', 's390x', 'tidy',
    'valgrind', 'package', 'container' or 'docs'" ;;
esac
werror=${ESPALIER_WERROR:-false}
[ -w . ] || fail "cannot write in $PWD, where the build folders go; expected a folder of your own"

# The lowest versions are those of the meson.build files.
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  lowest=$(find . -path './build*' -prune -o -name meson.build -exec grep -ho "dependency('[^)]*version : '>=[0-9.]*'" {} + |
    sed "s/dependency('\([^']*\)'.*>=\(.*\)'/\1 \2/" | sort -u | paste -sd, | sed 's/,/, /g')
  meson=$(sed -n "s/.*meson_version : '>=\([0-9.]*\)'.*/\1/p" meson.build)
  fail "this system has no apt. Install g++ 12 or clang++ 14, Meson $meson, ninja, pkg-config, protoc, nanopb, tl::expected, and
    $lowest,
    or newer ones (benchmark and gtest only for tests; clp and pmix may be missing).
    Then run: meson setup build -Dtests=false && ninja -C build"
fi
native=$(dpkg --print-architecture)
if [ "${1-}" = aarch64 ] && [ "$native" = arm64 ]; then
  fail 'this machine is aarch64 itself: build/ is what it runs, and nothing is crossed'
fi

# Prints the packages of these sections, alternatives as a|b.
packages() { awk -v sections=" $1 " '/^#/ { on = index(sections, " " $2 " "); next } on { sub(/ *#.*/, ""); gsub(/ /, ""); print }' packages.txt; }
wanted=$(packages "$sections")
installed=$(dpkg-query -W -f '${Package}:${Architecture} ${db:Status-Status}\n' | sed -n 's/ installed$//p')
# Whether package $1 is there, for this machine's architecture if it names none.
is_installed() {
  case "$1" in
    *:*) echo "$installed" | grep -qxF "$1" ;;
    *) echo "$installed" | grep -qxF -e "$1:$native" -e "$1:all" ;;
  esac
}
# Prints the alternatives $1, one a line.
alternatives() { echo "$1" | tr '|' '\n'; }
missing=''
for package in $wanted; do
  found=no
  for alternative in $(alternatives "$package"); do
    is_installed "$alternative" && found=yes && break
  done
  [ $found = yes ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] || fail "not root, and these packages are missing:$missing"
  release=$(. /etc/os-release && echo "$PRETTY_NAME")
  case "$(. /etc/os-release && echo "$ID ${VERSION_ID:-unstable}")" in
    'debian 12' | 'debian 13' | 'debian unstable') ;;
    *) release="$release (expected Debian 12, 13 or unstable)" ;;
  esac
  echo "setup.sh: installing on $release:$missing"
  apt='apt-get -q -y -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0'
  log=$(mktemp)
  # Whether apt can install $1. For a name that other packages only refer to, `apt-cache show` prints nothing and succeeds.
  has_candidate() { apt-cache show --no-all-versions "$1" 2>/dev/null | grep -q .; }
  # A foreign source that cannot be reached is apt-get's warning, not ours; what is missing then shows in the install.
  install_missing() {
    case "$missing" in *:arm64*) dpkg --add-architecture arm64 ;; esac
    $apt update || true
    # Of alternatives the first that can be installed; with none apt-get says so of the first.
    chosen=''
    for package in $missing; do
      choice=${package%%|*}
      for alternative in $(alternatives "$package"); do
        has_candidate "$alternative" && choice=$alternative && break
      done
      chosen="$chosen $choice"
    done
    $apt install --no-install-recommends $chosen
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
  rm -rf "$1"
  logged "meson could not configure $1/" meson setup "$@" -Dwerror="$werror"
}
# logged FAILURE COMMAND...: shows what the command printed if it fails.
logged() {
  failure=$1
  shift
  log=$(mktemp) || fail 'no temporary file: TMPDIR names a folder that one cannot write to'
  "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    rm -f "$log"
    fail "$failure"
  }
  rm -f "$log"
}
configure build -Dtests=$with_tests
if [ $with_tests = false ] && [ "${1-}" != boards ]; then
  exit 0
fi
# ./setup.sh build may have configured it before. Meson writes one line, or indented ones since some version.
if [ $with_tests = true ] && tr -d ' \n' <build/meson-info/intro-buildoptions.json | grep -qF '"name":"tests","value":false'; then
  echo 'setup.sh: adding the tests to build/'
  logged 'meson could not configure build/ with tests' meson setup --reconfigure build -Dtests=true -Dwerror="$werror"
fi
if [ "${1-}" = aarch64 ]; then
  configure build-aarch64 --cross-file boards/linux-aarch64/cross.ini
fi
case "${1-}" in
  armhf | s390x)
    boards/linux/root.sh "$1" "build-root-$1" $(packages root) || fail "no libraries for $1"
    configure "build-$1" --cross-file "boards/linux-$1/cross.ini" --cross-file "build-root-$1/root.ini"
    ;;
esac

bare=yes
for library in nanopb mbedtls libsodium; do
  firmware/bare/libraries/fetch.sh $library build/$library || {
    echo "setup.sh: no $library sources: nothing is built for bare metal, and its tests are skipped" >&2
    bare=no
  }
done
if [ $bare = yes ]; then
  for board in m3:mps2-an385 m4:mps2-an386 m7:mps2-an500 m0:microbit rv32:virt-rv32; do
    configure build-${board%%:*} --cross-file boards/${board#*:}/cross.ini
  done
fi
