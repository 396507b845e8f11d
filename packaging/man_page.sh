#!/bin/sh
# man_page.sh HELP2MAN VERSION OUTPUT NAME COMMAND PROGRAM...: writes the manual page NAME(1) from what `PROGRAM... COMMAND --help` prints;
# COMMAND may be empty. PROGRAM is a path, and before it an emulator with its options, if the build is a cross build.
#   man_page.sh --help: prints that text, for help2man: blank lines set sections apart
set -eu
# Words of $MAN_PROGRAM end at line ends: paths may have spaces.
IFS='
'
fail() {
  echo "man_page.sh: $1" >&2
  exit 2
}
if [ "${1-}" = --help ]; then
  # CLI11 2.6 writes as 2.1 did. Then a usage's continued lines become one; each form of it a line.
  $MAN_PROGRAM ${MAN_COMMAND:+"$MAN_COMMAND"} --help |
    sed -E -e 's/^OPTIONS:/Options:/' -e 's/^POSITIONALS:/Positionals:/' -e 's/^SUBCOMMANDS:/Subcommands:/' \
      -e 's/^espalier[a-z -]*\[OPTIONS\]/Usage: &/' -e 's/^( +-[a-zA-Z]), +--/\1,--/' |
    awk '/^[Uu]sage:/ { on = 1; sub(/^usage/, "Usage") } /^$/ && on { print line; on = 0 }
      !on { print; next }
      /^            / { sub(/^ +/, " "); line = line $0; next }
      /^       / { print line; sub(/^ +/, ""); line = "  or:  " $0; next }
      { if (line != "") print line; line = $0 }
      END { if (on) print line }' |
    sed -E -e 's/^(Examples?|Exit status|Subcommands|Positionals):/\n*\1*\n/' -e 's/^( +-[a-zA-Z]),--/\1, --/' |
    sed -E -e 's/^  (espalier .*)$/    \1\n/'
  exit
fi
[ $# -ge 6 ] || fail "takes HELP2MAN VERSION OUTPUT NAME COMMAND PROGRAM..., not $# arguments"
helper=$1 version=$2 output=$3 name=$4 MAN_COMMAND=$5
shift 5
MAN_PROGRAM=$(printf '%s\n' "$@")
export MAN_PROGRAM MAN_COMMAND
case "$name" in
  espalier-node) summary='runs a node of a cluster over libfabric' ;;
  espalier-gateway) summary='makes a bare-metal board a rank' ;;
  *) summary=$($MAN_PROGRAM ${MAN_COMMAND:+"$MAN_COMMAND"} --help |
    awk '/./ { text = text $0; if (!/ $/) exit } /^$/ && text != "" { exit } END { sub(/ +$/, "", text); print text }') ;;
esac
[ -n "$summary" ] || fail "'$name --help' prints nothing"
"$helper" --no-info --no-discard-stderr --version-string="$version" --name="$summary" "$0" |
  sed -E -e "s/^\.TH [^ ]+ /.TH $(echo "$name" | tr a-z A-Z) /" -e "s/\"man_page.sh /\"Espalier /" -e "s/^man_page.sh /$(echo "$name" | sed 's/-/\\\\-/g') /" >"$output.part"
mv "$output.part" "$output"
