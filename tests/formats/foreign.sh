#!/bin/bash
# foreign.sh FOLDER: imports every MSCCL algorithm (XML whose root is <algo>) below FOLDER and prints a table in Markdown. Public collections
# are Azure/msccl-scheduler, ROCm/rccl (tools/msccl-algorithms, tools/msccl-unit-test-algorithms) and microsoft/TE-CCL.
# $ESPALIER: the command (or build/tools/espalier). Exit status: 0 if all were imported, 1 if one was refused, 2 if there are none.
set -u
folder=${1:-}
[ -d "$folder" ] && [ $# -eq 1 ] || { echo "foreign.sh: expected one folder with XML files" >&2; exit 2; }
espalier=${ESPALIER:-$(dirname "$0")/../../build/tools/espalier}
[ -x "$espalier" ] || { echo "foreign.sh: no command '$espalier'; expected a build, or its path in ESPALIER" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=0 imported=0
printf '| file | imported | proven for | steps |\n| --- | --- | --- | --- |\n'
while IFS= read -r -d '' file; do
  grep -q '<algo ' "$file" || continue
  tried=$((tried + 1))
  name=${file#"$folder"/}
  if ! "$espalier" import msccl "$file" --limits host -o "$work/a.esp" >"$work/out" 2>"$work/err"; then
    line=$(tail -n 1 "$work/err")
    printf '| %s | no:%s | - | - |\n' "$name" "${line##*"$file'"}"
    continue
  fi
  imported=$((imported + 1))
  ignored=$(sed -n "s/.*: ignored, as MSCCL's readers do: /, without /p" "$work/err")
  proven=$(sed -n 's/^proven for //p' "$work/out")
  steps=$("$espalier" verify "$work/a.esp" | sed -n '1s/.*: \([^:]* steps\),.*/\1/p')
  printf '| %s | yes%s | %s | %s |\n' "$name" "$ignored" "$proven" "$steps"
done < <(find "$folder" -name '*.xml' -type f -print0 | sort -z)
[ $tried -gt 0 ] || { echo "foreign.sh: no MSCCL algorithm below '$folder'" >&2; exit 2; }
printf '\n%d of %d imported\n' $imported $tried
[ $imported -eq $tried ]
