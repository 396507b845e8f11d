#!/usr/bin/python3
"""What `espalier verify` takes, by algorithm and ranks.

verify_page.py build/tools/espalier >docs/results/verify.md
"""
import os
import sys

import proofs

MIB = 1 << 20
HEAD = """# What a proof takes

Written by `tests/scale/verify_page.py build/tools/espalier >docs/results/verify.md`. Each row is one process:

    espalier verify --topology ... --collective ... --algorithm ... [parameters]

Searched schedules, and those with `--links modelled`, were first written to a file by `espalier compile` with the same
words, and the row is `espalier verify FILE`. All other programs were generated while they were verified, and that counts. On fat trees the
algorithms by `leaf` go over the tree's own links without `--links modelled`; routers have programs besides the ranks'.

- *proven for*: the values of N, the number of blocks, that the verdict holds for; or why there is no verdict.
- *steps*: what the schedule takes and claims.
- *N\\**: instances were expanded for N up to this, one form of a stage at a time ([verifier.md](../verifier.md)).
- *progressions*: read from all nodes' programs. *instances*: expanded, for all N together. *checks*: uses of places
  ordered after earlier ones.
- *s*: processor time of the process, user and system. *MiB*: the most memory that it had; {floor} is what the
  measuring script itself has, so that row has no more than that.

A test compares all columns but the last two with what the command prints: in rows of less than {affordable} s always, in
the others with `ESPALIER_WHOLE=1`. The last two are those of the machine that wrote the page: {cores} cores, with a load
of {load:.1f} when it began."""
COLUMNS = ("collective", "algorithm", "topology", "parameters", "proven for", "steps", "N*", "progressions", "instances",
           "checks", "s", "MiB")
AFFORDABLE_SECONDS = 1


def key(case):
    return [case.collective, case.algorithm, case.topology, case.parameters]


def row(cells):
    assert not any("|" in cell or "\n" in cell for cell in cells), cells
    return f"| {' | '.join(cells)} |"


def main():
    program = sys.argv[1]
    floor = proofs.run(["true"])[3]
    print(HEAD.format(floor=floor // MIB, affordable=AFFORDABLE_SECONDS, cores=os.cpu_count(), load=os.getloadavg()[0]))
    for title, cases in proofs.sections(program):
        print(f"\n## {title}\n\n{row(COLUMNS)}\n|{5 * ' --- |'}{7 * ' ---: |'}")
        for case in cases:
            proof = proofs.prove(program, case)
            print(row([*key(case), *proof.exact(), f"{proof.seconds:.2f}", f"{proof.memory / MIB:.0f}"]), flush=True)


if __name__ == "__main__":
    main()
