#!/bin/sh
# build_subproject.sh ESPALIER FOLDER: builds examples/subproject in FOLDER against the sources in ESPALIER, runs it.
set -eu
rm -rf "$2"
mkdir -p "$2/source/subprojects"
cp "$1"/examples/subproject/* "$2/source/"
ln -s "$1" "$2/source/subprojects/espalier"
meson setup "$2/build" "$2/source" >"$2/setup.log" 2>&1 || { cat "$2/setup.log"; exit 1; }
ninja -C "$2/build" sum >"$2/build.log" 2>&1 || { cat "$2/build.log"; exit 1; }
"$2/build/sum"
