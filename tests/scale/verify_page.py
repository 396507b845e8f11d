#!/usr/bin/python3
"""The cost of `espalier verify`, by algorithm and ranks: docs/results/verify.md, and its record, every proof in verify.csv.

verify_page.py --write build/tools/espalier      proves everything, writes the record and the page
verify_page.py --update build/tools/espalier     the same, but keeps the record's rows of 0.5 s and more
verify_page.py --page                            writes the page from the record as it is
"""
import collections
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages
import proofs

MIB = 1 << 20
RECORD = pathlib.Path(__file__).with_name("verify.csv")
MACHINE = pathlib.Path(__file__).with_name("verify_machine.csv")
PAGE = pages.RESULTS / "verify.md"
HEAD = """# What a proof takes

Written by `tests/scale/verify_page.py --write build/tools/espalier`. Each proof is a process of its own:

    espalier verify --topology ... --collective ... --algorithm ... [parameters]

Programs are generated while they are verified, and that time counts. Where they are searched, or lowered onto the topology's
links (`--links hop-by-hop`), `espalier compile --no-verify` with the same options has written a file before, and the proof is
`espalier verify FILE`. On fat trees the routers have programs too, by `leaf` and in all that is lowered.

{whole}

- *proven for*: the verdict holds for these N (blocks per segment). "N = 1": the only one that the algorithm's block table gives.
- *steps*: steps that the schedule takes, exactly.
- *N\\**: the forms of the stages were checked for N up to this ([verifier.md](../verifier.md)).
- *progressions*: progressions read from all nodes' programs. *instances*, *checks*: instances expanded and accesses to places
  checked, for all N together.
- *s*: processor time of the process (user and system). *MiB*: its largest memory. {floor} MiB means at most {floor}: the
  script that starts the process takes that itself.

A test compares every column except *s* and *MiB*: rows of less than {affordable} s always, the others with `ESPALIER_WHOLE=1`. *s* and *MiB* are
of the machine that wrote the record. It has {cores} cores, and its load from other processes was {load} at the start.

## Proofs

"""
REFUSED = """
## Refusals

`espalier` refuses some cases, each with a line that says why. Algorithms, topologies and numbers differ between the lines of a row:

"""
LONGEST = """
## The longest proof of each collective

Where a proof takes {affordable} s or more:

"""
KEY = ("collective", "algorithm", "topology", "parameters")
EXACT = ("proven for", "steps", "N*", "progressions", "instances", "checks")
COLUMNS = ("ranks", *KEY, *EXACT, "s", "MiB")
NUMBERS = ("steps", *EXACT[2:], "s", "MiB")
SUMS = ("proofs", "every N", "some N", "N = 1", "refused", "s: median", "most", "MiB: most")
AFFORDABLE_SECONDS = 0.5


def key(case):
    return [case.collective, case.algorithm, case.topology, case.parameters]


def key_of(row):
    return [row[name] for name in KEY]


def exact_of(row):
    return [row[name] for name in EXACT]


def sections(record):
    """{title: rows}, as proofs.sections() has titles and cases."""
    found = {}
    for row in record:
        found.setdefault(row["ranks"], []).append(row)
    return found


def proven_row(program, title, case):
    proof = proofs.prove(program, case)
    return dict(zip(COLUMNS, [title, *key(case), *proof.exact(), f"{proof.seconds:.2f}", f"{proof.memory / MIB:.0f}"]))


def prove_all(program, kept):
    """The rows of all proofs; those in `kept` are taken as they are."""
    known = {(row["ranks"], *key_of(row)): row for row in kept}
    return [known.get((title, *key(case))) or proven_row(program, title, case)
            for title, cases in proofs.sections(program) for case in cases]


def title_text(title):
    ranks, _, lowered = title.partition(" ")
    return f"{ranks} ranks" + (f", `--links {lowered}`" if lowered else "")


def is_refused(row):
    return row["proven for"].startswith("refused: ")


def proven_for(row):
    return row["proven for"].partition(",")[0]


def sums(rows):
    kinds = collections.Counter("refused" if is_refused(row) else "N = 1" if proven_for(row) == "N = 1" else
                                "every N" if row["proven for"] == "every N" else "some N" for row in rows)
    seconds = [float(row["s"]) for row in rows if not is_refused(row)]
    return [len(rows), *(kinds[name] for name in SUMS[1:5]), f"{pages.median(seconds):.2f}", f"{max(seconds):.2f}",
            max(int(row["MiB"]) for row in rows if not is_refused(row))]


def refusals(record):
    """[(a line, rows that have it with other names and numbers)], the most frequent first."""
    found = {}
    for row in filter(is_refused, record):
        line = row["proven for"].removeprefix("refused: ")
        kind = re.sub(r"'[\w-]+'(?! can)|\d+", "#", re.sub(r"lowered: [\w-]+,", "lowered: #,", line))
        for name in (row["topology"], row["algorithm"], row["collective"], re.sub(r"\d+", "#", row["topology"])):
            kind = kind.replace(name, "#")
        found.setdefault(kind, []).append(line)
    return sorted(((lines[0], len(lines)) for lines in found.values()), key=lambda pair: -pair[1])


def longest(rows):
    """Of each collective, the proof that took the longest; of several the one of the most checks."""
    found = {}
    for row in rows:
        if not is_refused(row):
            found.setdefault(row["collective"], []).append(row)
    return [pages.worst(of, lambda row: (float(row["s"]) + 1e-12 * int(row["checks"])))[0] for of in found.values()]


def page(record, machine):
    text = HEAD.format(**machine, affordable=AFFORDABLE_SECONDS, whole=pages.whole_text(
        {"tests/scale/verify.csv": len(record)}, "ESPALIER_WHOLE=1 meson test -C build scale-verify",
        "proves each row anew, and prints those that differ"))
    by_title = sections(record)
    text += pages.markdown(("ranks", *SUMS), [[title_text(title), *sums(rows)] for title, rows in by_title.items()], SUMS)
    text += REFUSED + pages.markdown(("such as", "rows"), refusals(record), ("rows",)) + LONGEST.format(affordable=AFFORDABLE_SECONDS)
    for title, rows in by_title.items():
        if max(float(row["s"]) for row in rows if not is_refused(row)) < AFFORDABLE_SECONDS:
            continue
        text += f"{title_text(title)}:\n\n" + pages.markdown((*KEY, *EXACT, "s", "MiB"), [
            [*key_of(row), proven_for(row), row["steps"], *(f"{int(row[name]):,}" for name in EXACT[2:]), row["s"], row["MiB"]] for row in longest(rows)], NUMBERS) + "\n"
    return text.rstrip("\n") + "\n"


def page_from_record():
    return page(pages.read(RECORD), pages.read(MACHINE)[0])


def main(arguments):
    if len(arguments) == 2 and arguments[0] in ("--write", "--update"):
        kept = []
        if arguments[0] == "--update":
            kept = [row for row in pages.read(RECORD) if float(row["s"]) >= AFFORDABLE_SECONDS]
        else:
            floor = proofs.run(["true"])[3] // MIB
            MACHINE.write_text(pages.csv_text(("floor", "cores", "load"), [[floor, os.cpu_count(), f"{os.getloadavg()[0]:.1f}"]]))
        RECORD.write_text(pages.csv_text(COLUMNS, prove_all(arguments[1], kept)))
    elif arguments != ["--page"]:
        sys.exit("verify_page.py: expected --write ESPALIER, --update ESPALIER or --page")
    PAGE.write_text(page_from_record())


if __name__ == "__main__":
    main(sys.argv[1:])
