#!/bin/sh
# make.sh ESPALIER: writes the images of this folder anew, with that espalier command: one a node of 4, a program of each
# collective, signed by a key of which only the public half is kept.
set -eu
espalier=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
schedules=''
for pair in broadcast/two-tree reduce/two-tree allreduce/two-tree scan/two-tree exscan/chain scatter/binomial gather/binomial \
    allgather/ring reduce-scatter/ring all-to-all/pairwise barrier/dissemination; do
  file=$made/${pair%/*}.esp
  "$espalier" compile --topology complete:4 --collective "${pair%/*}" --algorithm "${pair#*/}" -o "$file"
  schedules="$schedules $file"
done
"$espalier" image keygen -o "$made/key"
"$espalier" image build $schedules --board ../../../boards/mps2-an385 --release 1.2.3 --counter 4 --key "$made/key" \
  -o node-%r.img
# The last 32 bytes of its DER form.
sed '/^-/d' "$made/key.pub" | base64 -d | tail -c 32 >key.pub
