#!/bin/sh
# build_installed.sh ESPALIER BUILD FOLDER [CROSS_FILE]: installs BUILD, a build of the sources in ESPALIER, below FOLDER. Compiles
# each installed header by itself with the flags of pkg-config. Builds examples/pkg-config against the installation, and runs it.
set -eu
sources=$1 build=$2 folder=$3
compiler=c++
[ $# = 3 ] || compiler=$(sed -n "s/^cpp = '\(.*\)'/\1/p" "$4")
quietly() {  # LOG COMMAND...
  log=$folder/$1
  shift
  "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
}
rm -rf "$folder"
mkdir -p "$folder"
DESTDIR="$folder/root" quietly install.log meson install -C "$build" --no-rebuild
for program in tools/espalier firmware/node/espalier-node; do
  [ ! -f "$build/$program" ] || find "$folder/root" -name "${program##*/}" -perm -u+x | grep -q . ||
    { echo "no ${program##*/} was installed"; exit 1; }
done
PKG_CONFIG_PATH=$(dirname "$(find "$folder/root" -name espalier.pc)")
export PKG_CONFIG_PATH

flags=$(pkg-config --cflags espalier)
cd "$folder/root"
headers=$(find . -path '*/include/espalier/*.h' | sed 's,.*/include/,,')
[ "$(echo "$headers" | wc -l)" -gt 30 ] || { echo "few headers were installed: $headers"; exit 1; }
for header in $headers; do
  echo "#include \"$header\"" | $compiler -std=c++20 -fsyntax-only $flags -x c++ - || { echo "$header"; exit 1; }
done

cp -r "$sources/examples/pkg-config" "$folder/source"
quietly setup.log meson setup ${4+--cross-file "$4"} "$folder/build" "$folder/source"
quietly build.log ninja -C "$folder/build"
quietly run.log meson test -C "$folder/build" -v
grep 'same correct sum' "$folder/run.log"
