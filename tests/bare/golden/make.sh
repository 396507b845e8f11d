#!/bin/sh
# make.sh ESPALIER: writes this folder anew with that espalier command. Per node of 4 it makes one image with one
# program of each collective, signed by a key of which only the public half is kept; and digests.h, from the simulation
# of these programs.
set -eu
espalier=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
schedules=''
for pair in broadcast/two-tree reduce/two-tree allreduce/two-tree scan/two-tree exscan/chain scatter/binomial gather/binomial \
    allgather/ring reduce-scatter/ring all-to-all/pairwise barrier/dissemination; do
  name=${pair%/*}
  "$espalier" compile --topology complete:4 --collective "$name" --algorithm "${pair#*/}" -o "$made/$name.esp"
  schedules="$schedules $made/$name.esp"
  case $name in
    scatter|gather|allgather|reduce-scatter|all-to-all) bytes=6000 ;;
    barrier) bytes=0 ;;
    *) bytes=24000 ;;
  esac
  "$espalier" simulate "$made/$name.esp" --bytes $bytes --output "$made/$name" --events "$made/$name"
done
"$espalier" image keygen -o "$made/key"
"$espalier" image build $schedules --board ../../../boards/mps2-an385 --release 1.2.3 --counter 4 --key "$made/key" \
  -o node-%r.img
# The last 32 bytes of its DER form.
sed '/^-/d' "$made/key.pub" | base64 -d | tail -c 32 >key.pub
./digests.py $schedules >digests.h
