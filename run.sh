#!/bin/sh
# The main job: compiles the two-tree broadcast and the two-tree allreduce for 16 ranks, verifies them, starts 16 node
# processes over libfabric, broadcasts FILE from rank 0 and compares every copy with it, sums sixteen 1 MiB vectors
# of f32 and checks the sum.
#   run.sh [FILE]      default: the espalier-node binary just built
# Exit status 0 only if every check held; 2 for an unreadable FILE.
set -u
fail() {
  echo "run.sh: $1" >&2
  exit "${2-1}"
}
[ $# -le 1 ] || fail "takes one FILE, not $#" 2
file=''
if [ $# = 1 ]; then
  { [ -f "$1" ] && [ -r "$1" ]; } || fail "cannot read '$1': give a readable regular file" 2
  file=$(readlink -f -- "$1")
fi
cd "$(dirname "$(readlink -f "$0")")" || exit 2
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH

./setup.sh build || fail 'setup.sh failed'
echo '== build'
ninja -C build --quiet tools/espalier firmware/node/espalier-node || fail 'the build failed'
espalier=build/tools/espalier
[ -n "$file" ] || file=build/firmware/node/espalier-node
work=build/run
rm -rf "$work"
mkdir -p "$work/copies"

for collective in broadcast allreduce; do
  echo "== compile and verify: two-tree $collective, 16 ranks"
  "$espalier" compile --topology complete:16 --collective "$collective" --algorithm two-tree --root 0 \
    -o "$work/$collective.esp" || fail "$collective was not compiled"
  "$espalier" verify "$work/$collective.esp" || fail "$collective was not verified"
done

echo "== broadcast of $file from rank 0 to 16 node processes over libfabric (tcp)"
"$espalier" run "$work/broadcast.esp" --provider tcp --input "$file" --output "$work/copies" ||
  fail 'the broadcast failed'
copies=0
for copy in "$work"/copies/*; do
  cmp -- "$file" "$copy" || fail "$copy differs from $file"
  copies=$((copies + 1))
done
[ "$copies" = 16 ] || fail "found $copies copies, not 16"

echo '== sum of sixteen 1 MiB vectors of f32'
"$espalier" run "$work/allreduce.esp" --provider tcp --bytes 1048576 --op sum --type f32 ||
  fail 'the allreduce failed'

echo '== summary'
echo "schedules  two-tree broadcast and allreduce, complete:16: compiled, verified"
echo "broadcast  $(wc -c <"$file") bytes of $file: all $copies copies are equal to it (compared byte by byte)"
echo "allreduce  1 MiB of f32 from each of 16 ranks: every rank has the correct sum"
echo 'every check held'
