#!/bin/sh
# Makes a folder with Debian's packages of another architecture, against which a Linux board's node is cross-compiled, and in which
# qemu-user finds its libraries. dpkg does not know of them: they may have other versions than this machine's packages, which Debian
# updates for longer than those of some architectures.
#   boards/linux/root.sh ARCHITECTURE FOLDER PACKAGE...   needs apt-get and dpkg-deb, and no rights
# FOLDER gets the contents of the packages and of all that they depend on, and root.ini: a second cross file, which says where it is.
set -eu
[ $# -ge 3 ] || { echo 'root.sh: expected ARCHITECTURE FOLDER PACKAGE...' >&2; exit 2; }
architecture=$1
mkdir -p "$2"
root=$(readlink -f "$2")
shift 2
wanted="$architecture $*"
[ "$(cat "$root/packages" 2>/dev/null)" != "$wanted" ] || [ ! -f "$root/root.ini" ] || exit 0
rm -rf "$root"
mkdir -p "$root/apt/state/lists/partial" "$root/apt/cache/archives/partial"
: >"$root/apt/status"
log=$root/apt/log
apt() {
  apt-get -q -y -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::State="$root/apt/state" \
    -o Dir::State::status="$root/apt/status" -o Dir::Cache="$root/apt/cache" -o APT::Sandbox::User= -o Acquire::Retries=5 \
    -o Acquire::Languages=none -o Debug::NoLocking=1 "$@" >>"$log" 2>&1
}
# A source without this architecture is apt-get's warning; what is missing then shows in the download.
apt update || true
apt install --download-only --no-install-recommends "$@" || {
  tail -n 20 "$log" >&2
  echo "root.sh: apt-get could not download the packages for $architecture" >&2
  exit 2
}
for package in "$root"/apt/cache/archives/*.deb; do
  dpkg-deb -x "$package" "$root"
done
rm -rf "$root/apt/cache" "$root/apt/state"
printf "[constants]\nroot = '%s'\n" "$root" >"$root/root.ini"
echo "$wanted" >"$root/packages"
