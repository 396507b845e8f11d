#!/usr/bin/python3
"""Without apt, setup.sh names every library with its lowest version and the commands; docs/using.md shows the same text.

setup_test.py ROOT    hides apt-get in a mount namespace of its own; exit status 77 where that is not allowed
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gates"))
import tree

ROOT = pathlib.Path(sys.argv[1]).resolve()
done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind /dev/null "$(command -v apt-get)" && exec "$0" build', ROOT / "setup.sh"],
                      capture_output=True, text=True)
if "unshare:" in done.stderr or "mount:" in done.stderr:
    print(f"no mount namespace to hide apt-get in: {done.stderr.strip()}")
    sys.exit(77)
if (done.returncode, done.stdout) != (2, ""):
    sys.exit(f"setup_test.py: exit status {done.returncode}, output '{done.stdout}'; expected 2 and none")
said = " ".join(done.stderr.split())
for file in tree.files(ROOT, "meson.build"):
    for name, lowest in re.findall(r"dependency\('([^']+)'[^)\n]*version : '>=([0-9.]+)'", tree.read(ROOT, file)):
        if f"{name} {lowest}" not in said:
            sys.exit(f"setup_test.py: {file} wants {name} {lowest}, and setup.sh says: {said}")
page = (ROOT / "docs/using.md").read_text()
text = "\n".join("    " + line.strip() for line in done.stderr.splitlines())
if text not in page:
    sys.exit(f"setup_test.py: docs/using.md does not show what setup.sh says without apt:\n{text}")
print(said)
