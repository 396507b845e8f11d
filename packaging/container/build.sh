#!/bin/sh
# build.sh [NAME]: makes the container image NAME (default: espalier) of Debian 13 with the commands, manual pages and the C library of these
# sources, by debootstrap and buildah (packages debootstrap, buildah), as root, with a network; no image registry is asked. Then runs
# `espalier doctor` and two ranks in it. About 15 minutes. Packages come from DEBIAN_MIRROR (a URL) or from the mirror that apt uses.
# Variables of buildah count, where its defaults do not work: inside of a container, BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs.
# Exit status: 0 the image is in buildah's storage (buildah push, podman run); 1 something failed; 2 bad input. Only after 0 is there an image,
# and nothing else is left.
set -eu
fail() {
  echo "build.sh: $1" >&2
  exit "${2-1}"
}
[ $# -le 1 ] || fail "takes at most one NAME, not $# arguments" 2
name=${1-espalier}
# The first part may be a registry with a port; then come folders, the name, and perhaps a tag.
part='[a-z0-9]+([._-][a-z0-9]+)*'
echo "$name" | grep -qE "^($part(:[0-9]+)?/)?($part/)*$part(:$part)?\$" ||
  fail "'$name' is no name of an image; expected lower-case letters, digits, and . _ / - between them, and perhaps :TAG" 2
[ "$(id -u)" = 0 ] || fail 'debootstrap needs root' 2
for program in debootstrap buildah; do
  command -v $program >/dev/null || fail "$program is missing; ./setup.sh container installs it" 2
done
sources=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(COMPONENT) $(LABEL)' 'Created-By: Packages' 2>/dev/null |
  awk '$2 == "main" && $3 == "Debian" { print $1; exit }')}
[ -n "$mirror" ] || fail 'apt names no mirror of Debian; expected DEBIAN_MIRROR=URL' 2

work=$(mktemp -d "${TMPDIR:-/var/tmp}/espalier-container-XXXXXX")
log=$work/log
# Storage of its own: what an interrupted step leaves there goes with the folder.
in_work() { buildah --root "$work/storage" --runroot "$work/run" "$@"; }
end() {
  awk -v folder="$work/" 'index($2, folder) == 1 { print $2 }' /proc/mounts | sort -r | while read -r point; do umount "$point" || true; done
  rm -rf --one-file-system "$work"
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
step() { echo "== $1"; }
quietly() {
  "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "failed: $*"; }
}

step 'debootstrap: Debian 13'
quietly debootstrap --variant=minbase trixie "$work/root" "$mirror"
rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
mkdir "$work/context"
tar -C "$work/root" --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -cf "$work/context/debian.tar" .
rm -rf "$work/root"
# Without build folders and repositories.
mkdir "$work/context/espalier"
tar -C "$sources" --exclude=./.git --exclude='./build*' -cf - . | tar -C "$work/context/espalier" -xf -

step 'buildah: packages, then the image'
quietly in_work bud --no-cache --force-rm --iidfile "$work/image" --file "$sources/packaging/container/Containerfile" "$work/context"
image=$(cat "$work/image")

step 'two ranks in it'
container=$(in_work from --pull-never "$image")
in_image() { quietly in_work run "$container" -- "$@"; }
in_image espalier doctor
in_image espalier run --topology complete:2 --collective allreduce --algorithm two-tree --provider tcp --bytes 65536 --op sum --type f32
in_image espalier launch -n 2 espalier-bench --collective allreduce --provider tcp --bytes 8,64KiB --repeat 5
tail -n 3 "$log"
in_image sh -c '! command -v g++ && ! ls /espalier /packages 2>/dev/null'
quietly in_work push "$image" "oci-archive:$work/image.tar"
image=$(buildah pull --quiet "oci-archive:$work/image.tar" 2>"$log") || { cat "$log" >&2; fail 'failed: buildah pull'; }
buildah tag "$image" "$name"
buildah images --format '{{.Name}}:{{.Tag}} {{.Size}}' "$image"
