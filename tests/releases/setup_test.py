#!/usr/bin/python3
"""Without apt, setup.sh names every library with its lowest version and the commands; docs/using.md shows the same text. With apt, it installs the first
alternative that apt can install.

setup_test.py ROOT    hides and replaces apt's programs in mount namespaces; exit status 77 where these are not allowed
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gates"))
import tree

# Root needs no namespace of users, which a process in a chroot may not have.
UNSHARE = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
ROOT = pathlib.Path(sys.argv[1]).resolve()
done = subprocess.run([*UNSHARE, "sh", "-c", 'mount --bind /dev/null "$(command -v apt-get)" && exec "$0" build', ROOT / "setup.sh"],
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

# On Debian unstable, packages still name one that was dropped (Breaks): `apt-cache show NAME` prints nothing, with exit status 0.
STUBS = {
    "dpkg-query": "",
    "apt-cache": 'for name; do :; done\n[ "$name" = libstdc++-arm-none-eabi-newlib ] || echo "Package: $name"\n',
    "apt-get": 'echo "apt-get $*"\nexit 1\n',
}
with tempfile.TemporaryDirectory() as folder:
    script = ""
    for name, text in STUBS.items():
        stub = pathlib.Path(folder, name)
        stub.write_text("#!/bin/sh\n" + text)
        stub.chmod(0o755)
        script += f'mount --bind {stub} "$(command -v {name})" && '
    done = subprocess.run([*UNSHARE, "sh", "-c", script + 'exec "$0"', ROOT / "setup.sh"], capture_output=True, text=True)
    installed = re.search(r"^apt-get .* install .*$", done.stderr, re.MULTILINE)
    if done.returncode != 2 or installed is None:
        sys.exit(f"setup_test.py: exit status {done.returncode}; expected 2, and the arguments of apt-get install: {done.stderr}")
    chosen = installed[0].split()
    for name, is_chosen in (("libstdc++-arm-none-eabi-newlib", False), ("libstdc++-arm-none-eabi", True), ("libstdc++-riscv64-unknown-elf", True)):
        if (name in chosen) != is_chosen:
            sys.exit(f"setup_test.py: {name} is {'not ' if is_chosen else ''}among what apt-get is to install: {installed[0]}")
    pathlib.Path(re.search(r"its whole output: (\S+)\)", done.stderr)[1]).unlink()
