#!/bin/sh
# build_musl.sh ESPALIER BUILD FOLDER: makes libespalier_node.a for musl of the sources in ESPALIER (boards/linux-x86_64/musl.ini), and with
# musl-gcc a static program of it, examples/firmware/superloop.c. Four of its processes sum, with the espalier command of BUILD
# (tests/embedded/embedded_test.py). Exit status 77: another processor, no musl-gcc, or no sources of the libraries that bare metal compiles.
set -eu
sources=$1 build=$2 folder=$3
fail() {
  echo "$1"
  exit "${2-1}"
}
[ "$(uname -m)" = x86_64 ] || fail "this machine is $(uname -m); musl.ini is for x86_64" 77
command -v musl-gcc >/dev/null || fail 'no musl-gcc; the package musl-tools has it' 77
for library in nanopb mbedtls libsodium; do
  [ -f "$sources/build/$library/.complete" ] || fail "no sources of $library; ./setup.sh fetches them" 77
done
rm -rf "$folder"
mkdir -p "$folder"
meson setup "$folder/build" "$sources" --cross-file "$sources/boards/linux-x86_64/musl.ini" >"$folder/setup.log" 2>&1 || { cat "$folder/setup.log"; exit 1; }
ninja -C "$folder/build" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
archive=$folder/build/firmware/embedded/libespalier_node.a
cd "$sources"
musl-gcc -static -Os -std=c99 -Wall -Wextra -Werror -Iinclude -DBOARD='"linux-x86_64"' examples/firmware/superloop.c examples/firmware/node.c \
  examples/firmware/hosted.c "$archive" -o "$folder/superloop"
! readelf -l "$folder/superloop" | grep -q INTERP || fail 'the program is not static'
/usr/bin/python3 tests/embedded/archive_test.py . "$archive" '' --allow abort  # of a part of libsodium that no program reaches
/usr/bin/python3 tests/embedded/embedded_test.py . "$build/tools/espalier" "$folder/superloop"
