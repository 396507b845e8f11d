#!/usr/bin/python3
"""The cost of `espalier verify`, by algorithm and ranks.

verify_page.py build/tools/espalier >docs/results/verify.md
verify_page.py build/tools/espalier --update docs/results/verify.md     writes it again, but keeps its rows of 0.5 s and more
"""
import os
import pathlib
import sys

import proofs
from pages import tables

MIB = 1 << 20
HEAD = """# What a proof takes

Written by `tests/scale/verify_page.py build/tools/espalier >docs/results/verify.md`. Each row is a process of its own:

    espalier verify --topology ... --collective ... --algorithm ... [parameters]

Programs are generated while they are verified, and that time counts. Where they are searched, or lowered onto the topology's
links (`--links hop-by-hop`), `espalier compile --no-verify` with the same options has written a file before, and the row is
`espalier verify FILE`. On fat trees the routers have programs too, by `leaf` and in all that is lowered.

- *proven for*: the verdict holds for these N (blocks per segment). "refused": the command's line that says why there is no verdict.
- *steps*: steps that the schedule takes, exactly.
- *N\\**: the forms of the stages were checked for N up to this ([verifier.md](../verifier.md)).
- *progressions*: progressions read from all nodes' programs. *instances*, *checks*: instances expanded and accesses to places
  checked, for all N together.
- *s*: processor time of the process (user and system). *MiB*: its largest memory. {floor} MiB means at most {floor}: the
  script that starts the process takes that itself.

A test compares every column except *s* and *MiB*: rows of less than {affordable} s always, the others with `ESPALIER_WHOLE=1`. *s* and *MiB* are
of the machine that wrote the page. It has {cores} cores, and its load from other processes was {load:.1f} at the start."""
COLUMNS = ("collective", "algorithm", "topology", "parameters", "proven for", "steps", "N*", "progressions", "instances",
           "checks", "s", "MiB")
AFFORDABLE_SECONDS = 0.5


def key(case):
    return [case.collective, case.algorithm, case.topology, case.parameters]


def row(cells):
    assert not any("|" in cell or "\n" in cell for cell in cells), cells
    return f"| {' | '.join(cells)} |"


def proven_row(program, case):
    proof = proofs.prove(program, case)
    return row([*key(case), *proof.exact(), f"{proof.seconds:.2f}", f"{proof.memory / MIB:.0f}"])


def text_of_sections(program, known):
    """`known`: by title, the cells of rows that are taken as they are."""
    lines = []
    for title, cases in proofs.sections(program):
        lines.append(f"\n## {title}\n\n{row(COLUMNS)}\n|{5 * ' --- |'}{7 * ' ---: |'}")
        kept = {tuple(cells[:4]): cells for cells in known.get(title, [])}
        for case in cases:
            cells = kept.get(tuple(key(case)))
            lines.append(row(cells) if cells else proven_row(program, case))
    return "\n".join(lines)


def update(program, page):
    text = page.read_text()
    known = {title: [cells for cells in rows if float(cells[-2]) >= AFFORDABLE_SECONDS] for title, rows in tables(text).items()}
    page.write_text(text[:text.index("\n## ")] + text_of_sections(program, known) + "\n")


def main():
    if len(sys.argv) == 4 and sys.argv[2] == "--update":
        update(sys.argv[1], pathlib.Path(sys.argv[3]))
        return
    if len(sys.argv) != 2:
        print("verify_page.py: expected the espalier command, and nothing or --update PAGE", file=sys.stderr)
        sys.exit(2)
    program = sys.argv[1]
    floor = proofs.run(["true"])[3]
    print(HEAD.format(floor=floor // MIB, affordable=AFFORDABLE_SECONDS, cores=os.cpu_count(), load=os.getloadavg()[0]))
    print(text_of_sections(program, {}))


if __name__ == "__main__":
    main()
