#!/bin/sh
# clean_root.sh FOLDER [12|13 [amd64|arm64 [MIRROR]]]: tries the Debian packages in clean roots of that release (default: 12) and for that
# architecture (default: amd64), as root, with a network, on an amd64 machine. FOLDER/RELEASE is a minimal root by debootstrap (made if it is
# not there). In a copy of it the sources become packages (dpkg-buildpackage; nothing is fetched while it builds). In another copy,
# which never had a package of the build, the packages are installed, and from them alone both examples are built and run, the commands, a
# manual page and completion are tried, and the packages are removed again. arm64: cross-built, installed as packages of a foreign
# architecture, and tried under qemu-user. Takes about 20 minutes. Prints a row for each package, and keeps it in
# tests/releases/debs.json; tests/releases/page.py --write then writes docs/results/releases.md. The packages stay in
# FOLDER/RELEASE-ARCHITECTURE.
# MIRROR: Debian's packages; default: the one that apt uses here. Exit status: 0 all held; 1 something failed; 2 bad input.
set -eu
fail() {
  echo "clean_root.sh: $1" >&2
  exit "${2-1}"
}
[ $# -ge 1 ] && [ $# -le 4 ] || fail 'expected FOLDER [12|13 [amd64|arm64 [MIRROR]]]' 2
release=${2-12}
architecture=${3-amd64}
case "$release" in
  12) name=bookworm ;;
  13) name=trixie ;;
  *) fail "unknown release '$release'; expected 12 or 13" 2 ;;
esac
case "$architecture" in
  amd64) profile='' crossed='' suffix='' compiler=g++ run='' ;;
  arm64)
    profile=cross,nocheck crossed="-a arm64" suffix=:arm64 compiler=g++-aarch64-linux-gnu
    run='qemu-aarch64 -L /'
    ;;
  *) fail "unknown architecture '$architecture'; expected amd64 or arm64" 2 ;;
esac
sources=$(dirname "$(readlink -f "$0")")/../..
sources=$(readlink -f "$sources")
[ -n "$1" ] || fail 'FOLDER is empty; expected the name of a folder' 2
parent=$(readlink -m -- "$1")
case "$parent" in *[!a-zA-Z0-9/._-]*) fail "'$parent' has unusual characters; expected letters, digits and / . _ -" 2 ;; esac
base=$parent/$release
folder=$parent/$release-$architecture
# One mirror has all releases.
mirror=${4-$(apt-get indextargets --format '$(SITE) $(COMPONENT) $(LABEL)' 'Created-By: Packages' |
  awk '$2 == "main" && $3 == "Debian" { print $1; exit }')}
[ -n "$mirror" ] || fail 'apt names no mirror of Debian; expected MIRROR' 2
[ "$(id -u)" = 0 ] || fail 'debootstrap and chroot need root' 2
command -v debootstrap >/dev/null || fail 'debootstrap is missing; ./setup.sh package installs it' 2
[ "$(dpkg --print-architecture)" = amd64 ] || fail "this machine is $(dpkg --print-architecture); expected amd64" 2
mkdir -p "$folder" || fail "cannot make '$folder'" 2

step() { echo "== Debian $release, $architecture: $1"; }
quietly() {  # LOG COMMAND...
  log=$folder/$1.log
  shift
  "$@" >"$log" 2>&1 &
  job=$!
  wait $job || { job=''; tail -n 20 "$log" >&2; fail "failed: $*"; }
  job=''
}
in_root() {  # ROOT COMMAND...
  root=$1
  shift
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
# A signal also ends what a step has started in a root. What is mounted there is this machine's own /dev.
mounted=''
job=''
unmount() {
  for point in $mounted; do umount "$point" || umount --lazy "$point" || true; done
  mounted=''
}
end() {
  [ -z "$job" ] || kill "$job" 2>/dev/null || true
  for process in /proc/[0-9]*; do
    case "$(readlink "$process/root" 2>/dev/null)" in
      "$base" | "$folder"/*) kill -KILL "${process#/proc/}" 2>/dev/null || true ;;
    esac
  done
  unmount
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
new_root() {
  # What an interrupted run left mounted is this machine's own /dev.
  ! grep -q " $folder/$1/" /proc/mounts || fail "'$folder/$1' has mounts; expected none: umount $folder/$1/proc $folder/$1/dev"
  rm -rf "$folder/$1"
  cp -a "$base" "$folder/$1"
  # dh, mpirun and libfabric expect these.
  mount -t proc proc "$folder/$1/proc" && mounted="$folder/$1/proc $mounted"
  mount --bind /dev "$folder/$1/dev" && mounted="$folder/$1/dev $mounted"
  [ ! -f /etc/resolv.conf ] || cp -L /etc/resolv.conf "$folder/$1/etc/resolv.conf"
  printf 'deb %s %s main\n' "$mirror" "$name" >"$folder/$1/etc/apt/sources.list"
  [ $architecture = amd64 ] || in_root "$folder/$1" dpkg --add-architecture $architecture
}
apt='apt-get -q -y --no-install-recommends -o Acquire::Retries=5 -o Dpkg::Use-Pty=0'

if [ ! -f "$base/complete" ]; then
  step 'debootstrap'
  ! grep -q " $base/" /proc/mounts || fail "'$base' has mounts; expected none: umount $base/proc"
  rm -rf "$base"
  quietly debootstrap debootstrap --variant=minbase $name "$base" "$mirror"
  : >"$base/complete"
fi

step 'build: what debian/control names, and dpkg-buildpackage'
new_root build
mkdir "$folder/build/espalier"
# Without build folders and repositories.
tar -C "$sources" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$folder/build/espalier" -xf -
quietly build-update in_root "$folder/build" $apt update
quietly build-install in_root "$folder/build" $apt install dpkg-dev ${run:+cross}build-essential${run:+-$architecture}
quietly build-dependencies in_root "$folder/build" sh -c "cd /espalier && $apt build-dep $crossed ${profile:+-P $profile} ./"
# Without a network: it has a namespace of its own that has none.
quietly dpkg-buildpackage unshare --net chroot "$folder/build" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LC_ALL=C.UTF-8 sh -c "cd /espalier && dpkg-buildpackage -us -uc -b $crossed ${profile:+-P$profile}"
packages=$(cd "$folder/build" && ls *.deb | grep -v dbgsym)
echo "$packages"
names=$(echo "$packages" | sed "s/_.*/$suffix/")

step 'use: apt-get install'
new_root use
for package in $packages; do
  cp "$folder/build/$package" "$folder/use/root/"
  mv "$folder/build/$package" "$folder/"
done
quietly use-update in_root "$folder/use" $apt update
quietly use-install in_root "$folder/use" sh -c "$apt install /root/*.deb"
quietly use-tools in_root "$folder/use" $apt install $compiler make cmake meson man-db pkg-config${run:+ qemu-user}
in_root "$folder/use" dpkg-query -W -f '${Package} ${Version} ${Architecture} ${Installed-Size}\n' $names >"$folder/debs.log"

step 'use: the commands'
# The commands start the node, which the kernel cannot if it is another processor's.
printf '#!/bin/sh\nexec %s /usr/bin/espalier-node "$@"\n' "$run" >"$folder/use/root/node"
chmod 755 "$folder/use/root/node"
quietly use-commands in_root "$folder/use" sh -ec "cd /root
  $run /usr/bin/espalier doctor ${run:+--node-binary /root/node}
  $run /usr/bin/espalier compile --topology complete:4 --collective allreduce --algorithm two-tree -o a.esp
  $run /usr/bin/espalier run a.esp --provider tcp --bytes 65536 --op sum --type f32 ${run:+--node-binary /root/node}"'
  man espalier-compile | grep -q -- --topology
  bash -c "espalier() { '"$run"' /usr/bin/espalier \"\$@\"; }; source /usr/share/bash-completion/completions/espalier;
    COMP_WORDS=(espalier com) COMP_CWORD=1; _espalier espalier
    [[ \" \${COMPREPLY[*]} \" == *\" compile \"* ]]"'

step 'use: examples/pkg-config and examples/cmake'
cp -r "$sources/examples" "$folder/use/root/examples"
quietly use-pkg-config in_root "$folder/use" sh -ec "cd /root/examples/pkg-config
  meson setup ${run:+--cross-file aarch64.ini} /root/build-pkg-config . && ninja -C /root/build-pkg-config && meson test -C /root/build-pkg-config -v"
quietly use-cmake in_root "$folder/use" sh -ec "${run:+export PKG_CONFIG=aarch64-linux-gnu-pkg-config}
  cmake -S /root/examples/cmake -B /root/build-cmake ${run:+-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ '-DCMAKE_CROSSCOMPILING_EMULATOR=$(echo "$run" | tr ' ' ';')'}
  cmake --build /root/build-cmake
  cd /root/build-cmake && ctest --verbose"
for log in use-pkg-config use-cmake; do
  grep -q 'same correct sum' "$folder/$log.log" || fail "$log.log has no correct sum"
done

step 'use: removed again'
quietly use-remove in_root "$folder/use" $apt purge $names
[ -z "$(find "$folder/use/usr" -name '*espalier*' -not -path '*/doc/*')" ] || fail 'files of the packages are left'
unmount
rm -rf "$folder/build" "$folder/use"
/usr/bin/python3 "$sources/tests/releases/page.py" --record-debs "$release" "$architecture" "$folder"
echo 'every check held'
