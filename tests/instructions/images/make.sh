#!/bin/sh
# make.sh ESPALIER: writes this folder anew with that espalier command: for each number of ranks the unsigned image of a node in the
# middle of the trees, the same programs in each.
set -eu
espalier=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for ranks in 8 64 1024; do
  schedules=''
  for pair in broadcast/chain broadcast/two-tree reduce/two-tree allreduce/two-tree scan/two-tree allgather/ring \
      reduce-scatter/ring; do
    file="$made/$(echo "$pair" | tr / -)-$ranks.esp"
    "$espalier" compile --topology complete:$ranks --collective "${pair%/*}" --algorithm "${pair#*/}" --window 2 -o "$file"
    schedules="$schedules $file"
  done
  "$espalier" image build $schedules --board ../../../boards/mps2-an385 --node 3 --release 1.0.0 -o ranks-$ranks.img
done
