#!/bin/sh
# make.sh ESPALIER: writes this folder anew with that espalier command. Per node of 4 it makes one image with a selection
# of allreduces, for boards/mps2-an385 with room for a selection, signed by a key of which only the public half is kept;
# and digests.h, from the simulation of a message below and of one above the crossover of operators that commute.
set -eu
espalier=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
sed 's/^limits {/limits { selections: 1/' ../../../../boards/mps2-an385/board.textproto >"$made/board.textproto"
"$espalier" compile --topology complete:4 --collective allreduce --board "$made/board.textproto" -o "$made/s.esp"
for bytes in 8444 8448; do
  "$espalier" simulate "$made/s.esp" --bytes $bytes --output "$made/$bytes" --events "$made/$bytes"
done
"$espalier" image keygen -o "$made/key"
"$espalier" image build "$made/s.esp" --board "$made/board.textproto" --release 1.2.3 --key "$made/key" -o node-%r.img
# The last 32 bytes of its DER form.
sed '/^-/d' "$made/key.pub" | base64 -d | tail -c 32 >key.pub
../digests.py "$made/8444" "$made/8448" >digests.h
