#!/bin/sh
# build_installed.sh ESPALIER BUILD FOLDER [CROSS_FILE]: installs BUILD, a build of the sources in ESPALIER, below FOLDER. Compiles
# each installed header by itself with the flags of pkg-config, all of them also without exceptions and by clang++, and the calls that
# docs/firmware_in_c.md shows. Builds examples/pkg-config against the installation, and runs it.
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

flags="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror $(pkg-config --cflags espalier)"
cd "$folder/root"
headers=$(find . -path '*/include/espalier/*.h' | sed 's,.*/include/,,')
[ "$(echo "$headers" | wc -l)" -gt 30 ] || { echo "few headers were installed: $headers"; exit 1; }
# compiles COMPILER FLAGS...: reads C++ from its input.
compiles() {
  "$@" -std=c++20 -fsyntax-only $flags -x c++ -
}
includes() {  # HEADER...
  printf '#include "%s"\n' "$@"
}
for header in $headers; do
  includes "$header" | compiles $compiler || { echo "$compiler does not take $header by itself"; exit 1; }
done
# takes COMPILER FLAGS...: it takes all headers together.
takes() {
  includes $headers | compiles "$@" || { echo "$* does not take the headers"; exit 1; }
}
takes $compiler -fno-exceptions -fno-rtti
if [ $# = 3 ]; then
  command -v clang++ >/dev/null || { echo 'no clang++; expected the package clang of packages.txt'; exit 1; }
  takes clang++ -Wno-unused-command-line-argument
  takes clang++ -Wno-unused-command-line-argument -fno-exceptions -fno-rtti
fi

# The descriptions of boards are those of the installed proto, and an installed espalier takes them.
share=$(dirname "$(find . -path '*/share/espalier/proto/board.proto')")/..
boards=$(find "$share/boards" -name board.textproto)
[ "$(echo "$boards" | wc -l)" = "$(ls "$sources"/boards/*/board.textproto | wc -l)" ] || { echo "not all boards were installed: $boards"; exit 1; }
for board in $boards; do
  protoc --proto_path="$share/proto" --encode=espalier.board.BoardFile board.proto <"$board" >/dev/null
done
if [ $# = 3 ] && [ -f "$build/tools/espalier" ]; then
  espalier=$(find . -name espalier -path '*/bin/*')
  "$espalier" compile --topology complete:2 --collective broadcast --algorithm chain -o "$folder/b.esp" >/dev/null
  "$espalier" image build "$folder/b.esp" --board "$share/boards/linux-x86_64" --node 0 --release 1.0.0 -o "$folder/0.img" >/dev/null 2>&1
  "$espalier" image show "$folder/0.img" | grep -q linux-x86_64 || { echo "no image for an installed board"; exit 1; }
fi

# The calls in docs/firmware_in_c.md, as they are shown there.
{
  for header in collectives/machine/machine.h collectives/schedule/file.h hal/ofi/ofi_endpoint.h; do
    echo "#include \"espalier/$header\""
  done
  echo 'using namespace espalier;'
  echo 'Result<Status> run(const ofi::FixedConfig& config, std::uint32_t node, ofi::WireUp& wire_up, const ScheduleFile& file,'
  echo '    DecodedProgram& program, Machine& machine, const Buffers& buffers, const Operator& op, std::uint64_t count) {'
  sed -n '/^<!-- calls: /,/^```$/p' "$sources/docs/firmware_in_c.md" | grep -v '^<!--\|^```'
  echo 'return status; }'
} >"$folder/calls.cc"
quietly calls.log $compiler -std=c++20 -fsyntax-only -Wall -Wextra -Werror $(pkg-config --cflags espalier-ofi espalier) "$folder/calls.cc"

cp -r "$sources/examples/pkg-config" "$folder/source"
quietly setup.log meson setup ${4+--cross-file "$4"} "$folder/build" "$folder/source"
quietly build.log ninja -C "$folder/build"
quietly run.log meson test -C "$folder/build" -v

# A program has the C library's listen() and accept(), unless it opts into the gate. Programs that are installed have it.
symbols=$(echo "$compiler" | sed 's/[cg]++$/nm/')
replaced() {  # PROGRAM: how many of them
  "$symbols" -D --defined-only "$1" | grep -c ' T \(listen\|accept\)$' || true
}
[ "$(replaced "$folder/build/sum")" = 0 ] || { echo "sum replaces functions without asking for it"; exit 1; }
echo 'int main(int count, char**) { return espalier::ofi::known_provider(count > 1 ? "tcp" : "mem") ? 0 : 1; }' >"$folder/gate.cc"
quietly gate.log $compiler -std=c++20 -include espalier/hal/ofi/ofi_endpoint.h "$folder/gate.cc" -o "$folder/gate" \
  $(pkg-config --cflags --libs espalier-ofi espalier-connection-gate)
[ "$(replaced "$folder/gate")" = 2 ] || { echo "a program with espalier-connection-gate does not replace listen() and accept()"; exit 1; }
for program in espalier-node espalier-gateway espalier-bench; do
  path=$(find "$folder/root" -name $program -path '*/bin/*')
  [ -z "$path" ] || [ "$(replaced "$path")" = 2 ] || { echo "$program lacks the gate"; exit 1; }
done
grep 'proven for every message size' "$folder/run.log" | grep -q double-fibonacci || { echo "plan planned nothing"; exit 1; }
grep 'same correct sum' "$folder/run.log"
