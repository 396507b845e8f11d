#!/usr/bin/python3
"""Gate: whatever includes a generated header depends on what generates it. Without that it builds only if the header happens to be
made earlier, which another number of processors changes.

generated.py BUILD    fails for sources of BUILD, a finished build, that lack the dependency (ninja -t missingdeps)
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree


def find(build):
    run = subprocess.run(["ninja", "-C", str(build), "-t", "missingdeps"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    found = re.findall(r"^Missing dep: (\S+) uses (\S+)", run.stdout, re.M)
    for output, header in found:
        yield f"{build}/build.ninja:1: {output} includes {header} and does not depend on it"
    if not found and "No missing dependencies" not in run.stdout:
        yield f"{build}/build.ninja:1: ninja -t missingdeps says '{run.stdout.strip()}'"


if __name__ == "__main__":
    sys.exit(tree.report(list(find(sys.argv[1])), "add the dependency that generates the header (proto_dep and its like), or take "
                         "the include out"))
