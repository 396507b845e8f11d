#!/bin/sh
# rig.sh ROOT RIG TESTS OUTPUT: runs tests/hil/TESTS.textproto on tests/hil/RIG.textproto, or the rig's whole list (ESPALIER_WHOLE=1);
# skipped if another build folder has not made the rig's programs.
set -eu
cd "$1"
for made in $(sed -n 's/.*program: "\(build-[^"]*\)".*/\1/p' "tests/hil/$2.textproto"); do
  [ -f "$made" ] || { echo "no $made: ./setup.sh aarch64 configures ${made%%/*}, ninja -C ${made%%/*} makes it"; exit 77; }
done
if [ "${ESPALIER_WHOLE:-0}" != 0 ]; then
  exec /usr/bin/python3 tests/hil/hil.py "tests/hil/$2.textproto" --output "$4"
fi
exec /usr/bin/python3 tests/hil/hil.py "tests/hil/$2.textproto" --tests "tests/hil/$3.textproto" --output "$4"
