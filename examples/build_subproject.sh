#!/bin/sh
# build_subproject.sh ESPALIER FOLDER: builds examples/subproject in FOLDER against the sources in ESPALIER, and with it the
# program in ESPALIER/docs/using.md as it is shown there. Runs both.
set -eu
rm -rf "$2"
mkdir -p "$2/source/subprojects"
cp "$1"/examples/subproject/* "$2/source/"
ln -s "$1" "$2/source/subprojects/espalier"
# The block of code after the mark, without its fences.
sed -n '/^<!-- program -->$/,/^```$/p' "$1/docs/using.md" | sed '1,2d;$d' >"$2/source/shown.cc"
lines=$(wc -l <"$2/source/shown.cc")
[ "$lines" -ge 20 ] && [ "$lines" -le 40 ] || { echo "the program in docs/using.md has $lines lines, expected 20 to 40"; exit 1; }
grep "^executable('sum'" "$1/examples/subproject/meson.build" | sed 's/sum/shown/g' >>"$2/source/meson.build"
# Without what debuggers read, and by the dozen as in ../meson.build: less than two thirds of the time.
meson setup "$2/build" "$2/source" -Ddebug=false -Dunity=subprojects -Dunity_size=45 >"$2/setup.log" 2>&1 || { cat "$2/setup.log"; exit 1; }
ninja -C "$2/build" sum shown >"$2/build.log" 2>&1 || { cat "$2/build.log"; exit 1; }
"$2/build/sum"
"$2/build/shown" >"$2/shown.log"
cat "$2/shown.log"
grep -q '^ok: ' "$2/shown.log"
