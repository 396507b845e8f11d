#!/bin/sh
# run.sh RELEASE [--failed | --sample [--units]]: runs the README's two commands in a bare root of a release of Debian (12, 13 or unstable), on a clone of
# this folder's last commit, with nothing installed by hand. As root, with a network. Packages come from DEBIAN_MIRROR (a URL) or from the
# mirror that apt uses. Logs and roots are in build-releases/RELEASE/.
#   run.sh RELEASE            ./run.sh and ./test.sh in a new root, about two hours. What came of it goes into tests/releases/runs.json
#                             and is printed; page.py --write then writes docs/results/releases.md.
#   run.sh RELEASE --failed   in the root that the last whole run left: ./run.sh and the tests that failed there, at the last commit;
#                             runs.json says which of them pass since
#   run.sh RELEASE --sample   ./run.sh, in the root that an earlier sample kept, or else in a new one
#   run.sh RELEASE --sample --units
#                             also ./test.sh quick
# Exit status: 0 every command ended well; 1 one failed; 2 bad input; 77 with --sample: no root privileges, debootstrap or network (a line
# says which).
set -eu
usage() {
  echo "run.sh: $1; expected 12, 13 or unstable, then nothing, --failed, --sample, or --sample --units" >&2
  exit 2
}
sample=no
units=no
failed=no
case "${1-}" in
  12) name=bookworm ;;
  13) name=trixie ;;
  unstable) name=sid ;;
  '') usage 'no release' ;;
  *) usage "unknown release '$1'" ;;
esac
release=$1
case "$*" in
  "$release") ;;
  "$release --failed") failed=yes ;;
  "$release --sample") sample=yes ;;
  "$release --sample --units") sample=yes units=yes ;;
  *) usage "unknown arguments '$*'" ;;
esac
# cannot STATUS REASON: a sample that cannot be made is no fault of the sources.
cannot() {
  echo "run.sh: $1" >&2
  [ $sample = no ] || exit 77
  exit 2
}
[ "$(id -u)" = 0 ] || cannot 'no root privileges, which debootstrap and chroot need'
command -v debootstrap >/dev/null || cannot 'no debootstrap; ./setup.sh package installs it'
sources=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
commit=$(git -C "$sources" rev-parse HEAD 2>/dev/null) || { echo "run.sh: '$sources' is no git clone; expected one" >&2; exit 2; }
folder=$sources/build-releases/$release
mkdir -p "$folder"
mirror=$(apt-get indextargets --format '$(SITE) $(LABEL) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
  awk '$2 == "Debian" && $3 == "main" { print $1; exit }')
mirror=${DEBIAN_MIRROR:-$mirror}
[ -n "$mirror" ] || cannot 'apt names no mirror of Debian; expected DEBIAN_MIRROR=URL'

step() { echo "== Debian $release: $1"; }
step_failed() {
  tail -n 30 "$2" >&2
  echo "run.sh: Debian $release: $1 failed; its whole output: $2" >&2
  exit 1
}
# apart COMMAND...: what it mounts and starts ends with it, and it ends with this script.
apart() { setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$@"; }
make_base() {
  [ ! -f "$folder/base/complete" ] || return 0
  step "debootstrap $name"
  rm -rf "$folder/base"
  apart debootstrap --variant=minbase "$name" "$folder/base" "$mirror" >"$folder/debootstrap.log" 2>&1 || {
    tail -n 3 "$folder/debootstrap.log" >&2
    rm -rf "$folder/base"
    cannot "debootstrap made no root of $name from $mirror"
  }
  # No service starts in a chroot.
  printf '#!/bin/sh\nexit 101\n' >"$folder/base/usr/sbin/policy-rc.d"
  chmod 755 "$folder/base/usr/sbin/policy-rc.d"
  : >"$folder/base/complete"
}
make_root() {
  [ $failed = no ] || [ ! -x "$folder/root/root/espalier/build/tools/espalier" ] || return 0
  [ $failed = no ] || cannot "no root of a whole run in $folder; expected run.sh $release"
  [ $sample = no ] || [ ! -f "$folder/root/complete" ] || return 0
  make_base
  rm -rf "$folder/root"
  cp -a "$folder/base" "$folder/root"
  rm -f "$folder/root/complete"  # that of the base; a sample sets the root's
  # As Debian's installer writes it: Open MPI's mpirun waits for a name server that does not know this host, at each start.
  printf '127.0.0.1\tlocalhost\n127.0.1.1\t%s\n' "$(hostname)" >"$folder/root/etc/hosts"
  # A mirror may keep the state of a few weeks ago, whose lists apt calls expired.
  echo 'Acquire::Check-Valid-Until "false";' >"$folder/root/etc/apt/apt.conf.d/99mirror"
}
# in_root COMMAND...: in the root's copy of the sources.
in_root() {
  [ ! -f /etc/resolv.conf ] || cp -L /etc/resolv.conf "$folder/root/etc/resolv.conf"
  apart sh -eu -c '
    root=$1
    shift
    # A root that is a mount lets the tests have mount namespaces of their own.
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    exec chroot "$root" /usr/bin/env -i -C /root/espalier PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
  ' sh "$folder/root" "$@"
}

# timed NAME COMMAND...: in_root, with output in NAME.log and, in NAME.times, seconds: what processors worked, then what a clock showed.
timed() {
  log=$folder/$1
  shift
  begin=$(date +%s)
  times >"$log.before"
  ended=0
  in_root "$@" >"$log.log" 2>&1 || ended=$?
  end=$(date +%s)
  times >"$log.after"
  awk -v wall=$((end - begin)) '
    FNR == 2 {
      for (k = 1; k <= 2; k++) { split($k, part, "[ms]"); sum += (FILENAME ~ /before$/ ? -1 : 1) * (part[1] * 60 + part[2]) }
    }
    END { printf "%.0f %d\n", sum, wall }
  ' "$log.before" "$log.after" >"$log.times"
  return $ended
}

make_root
# One that was kept still has what was built.
if [ ! -d "$folder/root/root/espalier" ]; then
  git init -q "$folder/root/root/espalier"
fi
git -C "$folder/root/root/espalier" fetch -q --depth 1 "file://$sources" "$commit"
git -C "$folder/root/root/espalier" reset -q --hard FETCH_HEAD

step './run.sh'
timed run ./run.sh || step_failed ./run.sh "$folder/run.log"
tail -n 1 "$folder/run.log"
if [ $sample = yes ]; then
  : >"$folder/root/complete"
  [ $units = no ] || { step './test.sh quick'; in_root ./test.sh quick >"$folder/quick.log" 2>&1 || step_failed './test.sh quick' "$folder/quick.log"; }
  [ $units = no ] || tail -n 1 "$folder/quick.log"
  exit 0
fi
status=0
if [ $failed = yes ]; then
  /usr/bin/python3 "$sources/tests/releases/page.py" --failed "$release" >"$folder/failed.log"
  : >"$folder/passed.log"
  # A mend may need a package more.
  in_root ./setup.sh >"$folder/setup.log" 2>&1 || step_failed ./setup.sh "$folder/setup.log"
  while read -r build test; do
    step "$build: $test"
    # As ./test.sh runs them.
    small=''
    [ "$build" = build ] || small=ESPALIER_SMALL_SAMPLE=1
    if in_root ${small:+"$small"} meson test -C "$build" --print-errorlogs "$test" >"$folder/$build-$test.log" 2>&1 </dev/null; then
      echo "$build $test" >>"$folder/passed.log"
    else
      status=1
      tail -n 30 "$folder/$build-$test.log" >&2
    fi
  done <"$folder/failed.log"
  /usr/bin/python3 "$sources/tests/releases/page.py" --record-passed "$release" "$folder"
  exit $status
fi
step './test.sh'
timed test ./test.sh || status=1
tail -n 1 "$folder/test.log"
cp "$folder/root/root/espalier/build/meson-logs/testlog.json" "$folder/testlog.json"
in_root dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' >"$folder/packages.log"
/usr/bin/python3 "$sources/tests/releases/page.py" --record "$release" "$folder"
exit $status
