#!/usr/bin/python3
"""Writes docs/results/papers.md and its record from what `papers` computes. All of the papers' numbers must be right.

page.py --write build/tests/papers/papers     writes the record (papers.csv, subjects.csv, pictures.csv) and the page
page.py --check build/tests/papers/papers     whether they are what would be written now; exit status 1 if not
page.py --page                                writes the page from the record as it is
"""
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

RECORDS = ("papers.csv", "subjects.csv", "pictures.csv")
HEAD = """# What the papers print, and what this library gets

Written by `tests/papers/page.py --write build/tests/papers/papers`. Of {rows:,} numbers and sentences of the papers, none differs from what
this library gets without a reason.

{whole}

- *subject*: the paper's algorithms, and its theorems, equations, tables and figures about one. *algorithms*: those of `espalier list` that
  implement it. `subjects.csv` has all subjects.
- *rows*: how its numbers were computed. "schedule": the steps of the programs that nodes run, after the verifier accepted them.
- *printed*: what stands in the paper's text. A sentence about a figure is "true" or "not here". *formula*: what the paper's formula or
  rule gives. *ours*: what this library gets.
- The tables of differences have one row for each reason: the first number that has it, and how many have it. Of formulas they have the
  {few} most frequent reasons.
"""
KINDS = {"schedules": "schedule", "simulations": "simulation", "runs": "run", "computed": "computed", "not compared": "not compared"}
PRINTED = "Numbers and sentences that the paper prints, and that differ here:\n\n"
FEW = 2  # reasons of a table of formulas
FORMULAS = "Formulas that give another number, or a bound:\n\n"


def compute(program):
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([program, "--write", folder], stdout=subprocess.PIPE, text=True)
        wrong = [line for line in ran.stdout.splitlines() if line.startswith("WRONG")]
        if wrong or ran.returncode != 0:
            sys.exit("\n".join([*wrong, f"{program}: exit status {ran.returncode}"]))
        found = {path.name: path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(folder).iterdir())}
    rows = [{**row, "digest": hashlib.sha256(found.get(row["file"], "").encode()).hexdigest()[:16]} for row in pages.rows_of(found["pictures.csv"])]
    return {**found, "pictures.csv": pages.csv_text(rows[0], rows)}


def algorithms_text(algorithms):
    """"broadcast chain, broadcast binary" as "broadcast: chain, binary"."""
    found = {}
    for one in filter(None, algorithms.split(", ")):
        collective, _, name = one.partition(" ")
        found.setdefault(name, []).append(collective)
    by_collectives = {}
    for name, collectives in found.items():
        by_collectives.setdefault(", ".join(collectives), []).append(name)
    return "; ".join(f"{collectives}: {', '.join(names)}" for collectives, names in by_collectives.items())


def subject_row(subject):
    rows = ", ".join(f"{subject[name]} {kind}{'' if kind in ('computed', 'not compared') or subject[name] == '1' else 's'}"
                     for name, kind in KINDS.items() if subject[name] != "0")
    return [subject["subject"], subject["what"], algorithms_text(subject["algorithms"]), rows]


def by_reason(rows, theirs):
    """A table with a row for each note, whatever its numbers: the first, and how many there are. `theirs`: "printed" or "formula"."""
    found = {}
    for row in rows:
        reason = re.sub(r"[\d.]+", "#", row["note"] or row["what"])
        found.setdefault((reason, row["where"] if theirs == "printed" else ""), []).append(row)
    columns = ("where", "what", theirs, "ours", "note")
    kept = {id(of) for of in pages.worst(found.values(), len, FEW if theirs == "formula" else len(found))}
    text = pages.markdown((*columns, "rows"), [[*(of[0][name] for name in columns), len(of)] for of in found.values() if id(of) in kept], ("rows",))
    others = len(found) - len(kept)
    return text + (f"\nand {others} more reasons, of {len(rows) - sum(len(of) for of in found.values() if id(of) in kept)} rows.\n" if others > 0 else "")


def page(record):
    rows, papers = record["papers.csv"], {}
    for picture in record["pictures.csv"]:
        papers.setdefault((picture["paper"], picture["title"]), []).append(picture)
    text = HEAD.format(rows=len(rows), few=FEW, whole=pages.whole_text({f"tests/papers/{name}": len(record[name]) for name in RECORDS[:2]},
                                                              "tests/papers/page.py --check build/tests/papers/papers"))
    for (paper, title), pictures in papers.items():
        own = [row for row in rows if row["paper"] == paper]
        differs = [row for row in own if row["corrected"]]
        printed = [row for row in differs if row["printed"] != "-"]
        formulas = [row for row in differs if row["printed"] == "-" and row["formula"]]
        text += f"\n## {paper}: {title}\n\n"
        if lines := [f"- `{picture['file']}`: {picture['picture']}\n" for picture in pictures if picture["file"]]:
            text += f"`build/tests/papers/papers --write build/docs/pictures` draws:\n\n{''.join(lines)}\n"
        subjects = [subject_row(subject) for subject in record["subjects.csv"] if subject["paper"] == paper and subject["algorithms"]]
        if subjects:
            text += pages.markdown(("subject", "what", "algorithms", "rows"), subjects) + "\n"
        text += (f"{pages.count_text(len(own), 'number')} of this paper: {pages.count_text(len(printed), 'printed one')} and "
                 f"{pages.count_text(len(formulas), 'formula')} differ.\n")
        for head, found, theirs in ((PRINTED, printed, "printed"), (FORMULAS, formulas, "formula")):
            if found:
                text += "\n" + head + by_reason(found, theirs)
    return text


if __name__ == "__main__":
    pages.Page(__file__, "papers.md", RECORDS, compute, page).main(sys.argv[1:])
