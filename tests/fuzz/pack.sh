#!/bin/sh
# Packs the inputs of a fuzz target into its archive; the same inputs give the same archive: tests/fuzz/pack.sh TARGET FOLDER
# To look at them: mkdir inputs && tar -xf tests/fuzz/corpus/TARGET.tar -C inputs
set -eu
if [ $# != 2 ] || [ ! -d "$2" ]; then
  echo "pack.sh: expected the name of a target and a folder of its inputs" >&2
  exit 2
fi
archive=$(dirname "$(readlink -f "$0")")/corpus/$1.tar
(cd "$2" && find . -maxdepth 1 -type f -printf '%P\n' | LC_ALL=C sort >"$archive.names")
status=0
tar -cf "$archive.new" -C "$2" --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 \
  --no-recursion --verbatim-files-from -T "$archive.names" && mv "$archive.new" "$archive" || status=2
rm -f "$archive.names" "$archive.new"
exit $status
