#!/bin/bash
# completion_test.sh ESPALIER: what packaging/espalier.bash offers for the last of some words.
set -eu
source "$(dirname "$0")/espalier.bash"
espalier=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
touch b.esp
ln -s "$espalier" espalier
failures=0
# Bash has it only while it completes.
compopt() { :; }

# offers yes|no VALUE WORD...: whether VALUE is offered for the last word.
offers() {
  local expected=$1 value=$2 found=no
  shift 2
  COMP_WORDS=(./espalier "$@")
  COMP_CWORD=$#
  _espalier ./espalier
  printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "$value" && found=yes
  [ $found = "$expected" ] || { echo "espalier $*: offers ${COMPREPLY[*]}; $value expected: $expected"; failures=1; }
}

offers yes compile com
offers no verify com
offers yes keygen image ''
offers yes --release image build --re
offers yes --topology compile --
offers yes -o compile -
offers yes json compile --format ''
offers yes json compile --format =
offers yes json compile --format = j
offers yes allreduce compile --collective all
offers no broadcast compile --collective all
offers yes complete: compile --topology c
offers yes affine compile --op ''
offers yes b.esp verify b
offers yes b.esp compile --topology file : b
offers yes b.esp cables --topology b
offers no complete: cables --topology c
offers yes --secret-file cables --
offers no b.esp compile --topology mesh : b
offers yes b.esp compile --output b
offers no b.esp verify --random 1
offers yes auto compile --algorithm ''
offers yes two-tree compile --algorithm ''
offers yes dissemination compile --collective barrier --algorithm ''
offers no two-tree compile --collective barrier --algorithm ''
offers no two-tree compile --collective = barrier --algorithm ''
offers yes snake compile --embedding sn
offers yes broadcast,allreduce export ompi --collective broadcast,all
offers no --kill run --k
exit $failures
