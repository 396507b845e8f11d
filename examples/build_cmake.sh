#!/bin/sh
# build_cmake.sh ESPALIER BUILD FOLDER: installs BUILD, a build of the sources in ESPALIER, into the empty FOLDER/root, moves it to
# FOLDER/moved, and uses only that: builds and runs examples/cmake, and checks what find_package(espalier) refuses, the manual
# pages, the completion, and that docs/using.md lists all that was installed.
set -eu
export CMAKE_GENERATOR=Ninja  # make may not be installed
sources=$1 build=$2 folder=$3
fail() {
  echo "$1"
  exit 1
}
quietly() {  # LOG COMMAND...
  log=$folder/$1
  shift
  "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }
}
rm -rf "$folder"
mkdir -p "$folder"
DESTDIR="$folder/root" quietly install.log meson install -C "$build" --no-rebuild
mv "$folder/root" "$folder/moved"
prefix=$(dirname "$(find "$folder/moved" -type d -path '*/share/espalier')")/..
prefix=$(readlink -f "$prefix")

# One list: a CMake target for each pkg-config file, and no others. The MPI bridges are loaded, not linked.
config=$(find "$prefix" -name espalier-config.cmake)
[ "$(sed -n 's/^espalier_row.* FILE \([^ )]*\).*/\1/p' "$config" | sort)" = "$(find "$prefix" -name 'lib*.a' -printf '%f\n' -o -name 'lib*.so' -not -name 'libespalier-mpi-*' -printf '%f\n' | sort)" ] ||
  fail 'the CMake targets are not the installed libraries'
[ "$(grep -c '^espalier_row' "$config")" = "$(find "$prefix" -name '*.pc' | wc -l)" ] ||
  fail 'there is not one CMake target for each pkg-config file'
targets=$(sed -n 's/^espalier_row(\([a-z-]*\) .*/espalier::\1/p' "$config" | sort)
[ "$targets" = "$(sed -n 's/^| `\(espalier::[a-z-]*\)` | `espalier[a-z-]*` |$/\1/p' "$sources/docs/using.md" | sort)" ] ||
  fail 'the table of imported targets in docs/using.md is not the list of CMake targets'

# The build's own folders must not help.
cp -r "$sources/examples" "$folder/examples"
quietly configure.log cmake -S "$folder/examples/cmake" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix"
grep -q "^espalier_DIR:PATH=$prefix/" "$folder/build/CMakeCache.txt" || fail 'find_package found another Espalier'
quietly build.log cmake --build "$folder/build"
quietly run.log env -C "$folder/build" ctest --verbose
grep 'same correct sum' "$folder/run.log"
grep 'proven for every message size' "$folder/run.log" | grep -q double-fibonacci || fail 'plan planned nothing'

# Where nanopb's headers have a folder of their own, as in Debian 13, programs are compiled with it.
mkdir -p "$folder/elsewhere/nanopb"
: >"$folder/elsewhere/nanopb/pb_decode.h"
quietly elsewhere.log cmake -S "$folder/examples/cmake" -B "$folder/elsewhere/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_INCLUDE_PATH="$folder/elsewhere" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
grep -q -- "-isystem $folder/elsewhere/nanopb " "$folder/elsewhere/build/compile_commands.json" || fail 'the folder of pb_decode.h is not searched'

# refused WORDS ARGUMENT...: find_package with these arguments fails, and says WORDS.
refused() {
  words=$1
  shift
  mkdir -p "$folder/refused"
  printf 'cmake_minimum_required(VERSION 3.18)\nproject(refused CXX)\nfind_package(espalier %s)\n' "$*" >"$folder/refused/CMakeLists.txt"
  rm -rf "$folder/refused/build"
  if cmake -S "$folder/refused" -B "$folder/refused/build" -DCMAKE_PREFIX_PATH="$prefix" >"$folder/refused.log" 2>&1; then
    fail "find_package(espalier $*) was accepted"
  fi
  tr -s ' \n' ' ' <"$folder/refused.log" | grep -qF "$words" || { cat "$folder/refused.log"; fail "it does not say '$words'"; }
}
refused 'component nonsense: it is not installed; expected one of espalier' REQUIRED COMPONENTS nonsense
refused 'considered but not accepted' 99.0 REQUIRED
refused 'considered but not accepted' 0.0 REQUIRED
PKG_CONFIG_LIBDIR=$folder refused 'component ofi: pkg-config does not find libsodium' REQUIRED COMPONENTS ofi

completions=$prefix/share/bash-completion/completions
for program in espalier-node espalier-gateway; do
  [ ! -f "$prefix/bin/$program" ] || PATH=$prefix/bin:$PATH bash -c "source $completions/$program
    COMP_WORDS=($program --n) COMP_CWORD=1; _espalier_program $program; [[ \" \${COMPREPLY[*]} \" == *' --node '* ]]" ||
    fail "nothing completes $program"
done

# docs/using.md lists each folder of what is installed.
listed=$(sed -n 's/^| `\([a-z0-9./*-]*\)` |.*/\1/p' "$sources/docs/using.md" | grep /)
(cd "$prefix" && find . -type f -o -type l) | sed 's,^\./,,; s,^lib/[^/]*-linux-gnu[^/]*/,lib/.../,' >"$folder/installed"
while read -r file; do
  found=no
  for pattern in $listed; do
    case $file in $pattern | "$pattern"*) found=yes ;; esac
  done
  [ $found = yes ] || fail "docs/using.md does not list $file"
done <"$folder/installed"
for pattern in $listed; do
  while read -r file; do
    case $file in $pattern | "$pattern"*) continue 2 ;; esac
  done <"$folder/installed"
  fail "docs/using.md lists $pattern, which was not installed"
done

# A manual page for each program, and for each command that the help lists.
if [ -d "$prefix/share/man" ]; then
  commands=$("$prefix/bin/espalier" --help | awk 'tolower($0) ~ /^subcommands:/ { on = 1; next } /^$/ { on = 0 } on && /^  [a-z]/ { print "espalier-" $1 }')
  for page in $commands $(ls "$prefix/bin"); do
    file=$prefix/share/man/man1/$page.1
    [ -f "$file" ] || fail "no manual page $page(1)"
    grep -q '^\.SH NAME' "$file" && grep -q '^\.SH SYNOPSIS' "$file" || fail "$page(1) has no name or no synopsis"
    # All the options of the help are in the page.
    for option in $(sed 's/\\//g; s/f[RBI]//g' "$file" | grep -o -- '--[a-z][a-z-]*' | sort -u); do echo "$option"; done >"$folder/in_page"
    case $page in
      espalier-node | espalier-gateway | espalier) "$prefix/bin/$page" --help ;;
      *) "$prefix/bin/espalier" "${page#espalier-}" --help ;;
    esac | grep -o -- '--[a-z][a-z-]*' | sort -u | comm -23 - "$folder/in_page" >"$folder/missing"
    [ ! -s "$folder/missing" ] || fail "$page(1) lacks $(tr '\n' ' ' <"$folder/missing")"
  done
  extra=$(ls "$prefix/share/man/man1" | wc -l)
  [ "$extra" = "$(echo $commands $(ls "$prefix/bin") | wc -w)" ] || fail "there are $extra manual pages, not one for each command"
  echo "$extra manual pages"
else
  echo 'no manual pages: help2man is missing; ./setup.sh installs it'
  exit 77
fi
