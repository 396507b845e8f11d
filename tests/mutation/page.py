#!/usr/bin/python3
"""A sample of the mutants, by topology: docs/results/mutation.md.

page.py build/tests/mutation/mutation >docs/results/mutation.md
page.py --check build/tests/mutation/mutation PAGE     whether it is what would be written now; exit status 1 if not
"""
import re
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

SAMPLES = (("--ranks 2..4 --sample 1999 --skews 20", "on the topology's routes"),
           ("--links hop-by-hop --ranks 4 --sample 3999 --skews 20", "lowered onto the topology's links"),
           # Up to 12 ranks, because its loops differ with the arities of two levels.
           ("--family fattree --algorithm leaf-single --collective all-to-all --ranks 6..12 --sample 999 --skews 5",
            "of all-to-all by `leaf-single`, on trees of equal and of different arities"),
           ("--topology fattree:k=3x2x2,c=1,3,5 --algorithm leaf --collective all-to-all --sample 99 --skews 5",
            "of all-to-all by `leaf`, on a tree of different arities with several lanes"),
           ("--topology fattree:k=2x3x2,c=1,2,5 --algorithm leaf-serial --collective all-to-all --sample 99 --skews 5",
            "of all-to-all by `leaf-serial`, on a tree of different arities with several lanes"))
HEAD = """# What becomes of mutants

Written by `tests/mutation/page.py build/tests/mutation/mutation >docs/results/mutation.md`, which runs the samples below;
`./test.sh` runs them too, and compares. [verifier.md](../verifier.md#how-the-verifier-is-judged) says what a mutant is and how it is judged.

- *refused by the loader*, *killed* by the verifier, *equivalent*: found right by the interpreter in every run.
- *survived*: accepted and wrong. There must be none."""
COLUMNS = ("on", "mutants", "refused by the loader", "killed", "equivalent", "survived")
NAMES = {"all": "all", "on complete": "complete graph", "on fattree": "fat tree", "on mesh": "mesh",
         "on hosts": "hosts", "on hosts, routed run": "hosts, routed run",
         "on crossbar": "crossbar", "on crossbar, routed run": "crossbar, routed run",
         "on fattree, routed run": "fat tree, routed run", "on mesh, routed run": "mesh, routed run"}


def section(program, options, where):
    ran = subprocess.run([program, *options.split()], stdout=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        sys.exit(f"{program} {options}: exit status {ran.returncode}\n{ran.stdout}")
    rows = re.findall(r"^(on .*?|all)  +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", ran.stdout, re.MULTILINE)
    assert rows[-1][0] == "all", ran.stdout
    return (f"## Schedules {where}\n\n    build/tests/mutation/mutation {options}\n\n" +
            pages.markdown(COLUMNS, [(NAMES[name], *numbers) for name, *numbers in rows], COLUMNS[1:]))


def page(program):
    return "\n".join([HEAD + "\n", *(section(program, *sample) for sample in SAMPLES)])


if __name__ == "__main__":
    pages.main(page, "tests/mutation/page.py")
