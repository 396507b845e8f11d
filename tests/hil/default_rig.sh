#!/bin/sh
# default_rig.sh ESPALIER OUTPUT: runs the default rig's sample with the programs of the builds beside build/.
set -eu
cd "$1"
for made in build-aarch64/firmware/node/espalier-node build-m3/firmware/bare/espalier-bare.elf; do
  [ -f $made ] || { echo "no $made: ./setup.sh aarch64 configures ${made%%/*}, ninja -C ${made%%/*} makes it"; exit 77; }
done
exec /usr/bin/python3 tests/hil/hil.py tests/hil/default.textproto --tests tests/hil/sample.textproto --output "$2"
