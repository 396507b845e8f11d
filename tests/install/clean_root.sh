#!/bin/sh
# clean_root.sh FOLDER [MIRROR]: tries the Debian packages in clean roots, as root, with a network: FOLDER/base is a minimal Debian 12 by
# debootstrap (made if it is not there). In a copy of it the sources become packages (dpkg-buildpackage; nothing is fetched while
# it builds). In another copy, which never had a package of the build, the packages are installed, and from them alone both examples are
# built and run, the commands, a manual page and completion are tried, and the packages are removed again. Takes about 20 minutes.
# MIRROR: Debian's packages; default: the one that apt uses here. Exit status: 0 all held; 1 something failed; 2 bad input.
set -eu
fail() {
  echo "clean_root.sh: $1" >&2
  exit "${2-1}"
}
[ $# = 1 ] || [ $# = 2 ] || fail 'expected FOLDER [MIRROR]' 2
[ "$(id -u)" = 0 ] || fail 'debootstrap and chroot need root' 2
command -v debootstrap >/dev/null || fail 'debootstrap is missing; ./setup.sh package installs it' 2
sources=$(dirname "$(readlink -f "$0")")/../..
sources=$(readlink -f "$sources")
mkdir -p "$1" || fail "cannot make '$1'" 2
folder=$(readlink -f "$1")
case "$folder" in *[!a-zA-Z0-9/._-]*) fail "'$folder' has unusual characters; expected letters, digits and / . _ -" 2 ;; esac
mirror=${2-$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT) $(LABEL)' 'Created-By: Packages' |
  awk '$2 == "bookworm" && $3 == "main" && $4 == "Debian" { print $1; exit }')}
[ -n "$mirror" ] || fail 'apt names no mirror of Debian 12; expected MIRROR' 2

step() { echo "== $1"; }
quietly() {  # LOG COMMAND...
  log=$folder/$1.log
  shift
  "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "failed: $*"; }
}
in_root() {  # ROOT COMMAND...
  root=$1
  shift
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
mounted=''
unmount() {
  for point in $mounted; do umount "$point" || true; done
}
trap unmount EXIT
new_root() {
  # What an interrupted run left mounted is this machine's own /dev.
  ! grep -q " $folder/$1/" /proc/mounts || fail "'$folder/$1' has mounts; expected none: umount $folder/$1/proc $folder/$1/dev"
  rm -rf "$folder/$1"
  cp -a "$folder/base" "$folder/$1"
  # dh, mpirun and libfabric expect these.
  mount -t proc proc "$folder/$1/proc" && mounted="$folder/$1/proc $mounted"
  mount --bind /dev "$folder/$1/dev" && mounted="$folder/$1/dev $mounted"
  [ ! -f /etc/resolv.conf ] || cp -L /etc/resolv.conf "$folder/$1/etc/resolv.conf"
  printf 'deb %s bookworm main\n' "$mirror" >"$folder/$1/etc/apt/sources.list"
}
apt='apt-get -q -y --no-install-recommends -o Acquire::Retries=5 -o Dpkg::Use-Pty=0'

if [ ! -f "$folder/base/etc/debian_version" ]; then
  step 'base: debootstrap'
  rm -rf "$folder/base"
  quietly debootstrap debootstrap --variant=minbase bookworm "$folder/base" "$mirror"
fi

step 'build: what debian/control names, and dpkg-buildpackage'
new_root build
mkdir "$folder/build/espalier"
# Without build folders and repositories.
tar -C "$sources" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$folder/build/espalier" -xf -
quietly build-update in_root "$folder/build" $apt update
quietly build-install in_root "$folder/build" $apt install dpkg-dev build-essential
quietly build-dependencies in_root "$folder/build" sh -c "cd /espalier && $apt build-dep ./"
# Without a network: it has a namespace of its own that has none.
quietly dpkg-buildpackage unshare --net chroot "$folder/build" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LC_ALL=C.UTF-8 sh -c 'cd /espalier && dpkg-buildpackage -us -uc -b'
packages=$(cd "$folder/build" && ls *.deb | grep -v dbgsym)
echo "$packages"

step 'use: dpkg -i'
new_root use
for package in $packages; do cp "$folder/build/$package" "$folder/use/root/"; done
quietly use-update in_root "$folder/use" $apt update
quietly use-install in_root "$folder/use" sh -c "$apt install /root/*.deb"
quietly use-tools in_root "$folder/use" $apt install g++ make cmake meson man-db
in_root "$folder/use" dpkg-query -W -f '${Package} ${Version} ${Installed-Size} kB\n' $(echo "$packages" | sed 's/_.*//')

step 'use: the commands'
quietly use-commands in_root "$folder/use" sh -ec 'cd /root
  espalier compile --topology complete:4 --collective allreduce --algorithm two-tree -o a.esp
  espalier run a.esp --provider tcp --bytes 65536 --op sum --type f32
  man espalier-compile | grep -q -- --topology
  bash -c "source /usr/share/bash-completion/completions/espalier; COMP_WORDS=(espalier com) COMP_CWORD=1; _espalier espalier
    [[ \" \${COMPREPLY[*]} \" == *\" compile \"* ]]"'

step 'use: examples/pkg-config and examples/cmake'
cp -r "$sources/examples" "$folder/use/root/examples"
quietly use-pkg-config in_root "$folder/use" sh -ec 'cd /root/examples/pkg-config
  meson setup /root/build-pkg-config . && ninja -C /root/build-pkg-config && meson test -C /root/build-pkg-config -v'
quietly use-cmake in_root "$folder/use" sh -ec 'cmake -S /root/examples/cmake -B /root/build-cmake && cmake --build /root/build-cmake
  cd /root/build-cmake && ctest --verbose'
for log in use-pkg-config use-cmake; do
  grep -q 'same correct sum' "$folder/$log.log" || fail "$log.log has no correct sum"
done

step 'use: removed again'
quietly use-remove in_root "$folder/use" $apt purge $(echo "$packages" | sed 's/_.*//')
[ -z "$(find "$folder/use/usr" -name '*espalier*' -not -path '*/doc/*')" ] || fail 'files of the packages are left'
echo 'every check held'
