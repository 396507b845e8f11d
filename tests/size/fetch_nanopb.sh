#!/bin/sh
# fetch_nanopb.sh DIRECTORY: puts nanopb's C sources there. Debian packages nanopb's library for the host only;
# bare metal compiles the same version from Debian's source package, fetched by apt from where apt gets libnanopb-dev.
set -eu
directory=$1
version=0.4.7
sha256=e1d89b166367a3c42d42311bdc2ed57ff78f86aede9a66828516e45490d48c81

[ ! -f "$directory/.complete" ] || exit 0
uri=$(apt-get --print-uris download libnanopb-dev | sed -n "s/^'\(.*\)\/libnanopb-dev_.*/\1/p" | head -n 1)
if [ -z "$uri" ]; then # apt's lists are gone, as in a slim image
  apt-get -q update >/dev/null
  uri=$(apt-get --print-uris download libnanopb-dev | sed -n "s/^'\(.*\)\/libnanopb-dev_.*/\1/p" | head -n 1)
fi
[ -n "$uri" ] || { echo "fetch_nanopb.sh: apt does not know where libnanopb-dev comes from" >&2; exit 1; }
archive=$(mktemp)
trap 'rm -f "$archive"' EXIT
/usr/lib/apt/apt-helper -q -o Acquire::Retries=5 -o APT::Sandbox::User=root download-file \
  "$uri/nanopb_$version.orig.tar.gz" "$archive" "SHA256:$sha256" >/dev/null
mkdir -p "$directory"
for file in pb.h pb_common.h pb_common.c pb_decode.h pb_decode.c pb_encode.h pb_encode.c; do
  tar -xzf "$archive" -C "$directory" --no-same-owner --strip-components=1 "nanopb-$version/$file"
done
: >"$directory/.complete"
