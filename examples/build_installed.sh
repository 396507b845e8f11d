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

# A program has the C library's spin locks, unless it opts into the interposer.
symbols=$(echo "$compiler" | sed 's/[cg]++$/nm/')
replaced() {
  "$symbols" -D --defined-only "$1" | grep -c ' T pthread_spin_\(lock\|trylock\|unlock\)$'
}
[ "$(replaced "$folder/build/sum")" = 0 ] || { echo "sum replaces spin locks without asking for it"; exit 1; }
echo 'int main(int count, char**) { return espalier::ofi::known_provider(count > 1 ? "tcp" : "shm") ? 0 : 1; }' >"$folder/shm.cc"
quietly shm.log $compiler -std=c++20 -include espalier/hal/ofi/ofi_endpoint.h "$folder/shm.cc" -o "$folder/shm" \
  $(pkg-config --cflags --libs espalier-ofi espalier-spin-lock-interposer)
[ "$(replaced "$folder/shm")" = 3 ] || { echo "a program with espalier-spin-lock-interposer does not replace spin locks"; exit 1; }
grep 'same correct sum' "$folder/run.log"
