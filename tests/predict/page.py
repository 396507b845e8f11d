#!/usr/bin/python3
"""Writes docs/results/choice.md and its record, choice.csv, from what `choice` prints.

page.py --write build/tests/predict/choice     writes the record and the page
page.py --check build/tests/predict/choice     whether the record has some of the rows that are printed now (ESPALIER_WHOLE=1: all), and
                                               whether the page is made of it; exit status 1 if not
page.py --page                                 writes the page from the record as it is
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

RECORD = pathlib.Path(__file__).with_name("choice.csv")
PAGE = pages.RESULTS / "choice.md"
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6}
SHOWN = "complete:16"
HEAD = """# What `auto` takes

Written by `tests/predict/page.py --write build/tests/predict/choice`. A test compares a part of the record, and `ESPALIER_WHOLE=1` all of it.
The model is the default one for a fabric: alpha 20 us, beta 1 ns/B, cut-through. [choosing.md](../choosing.md) explains the candidates.

{whole}

On {topologies} topologies, for each collective and up to {sizes} sizes, every candidate that is predicted to take less than 1.5 times the best was
simulated:

- *rows*: collectives and sizes. *the best*: those in which no candidate has less simulated time than the one that `auto` takes.
- *greatest ratio*: its simulated time / that of the best candidate.
- *predicted / simulated*: its two times, the least and the greatest quotient.
- *simulated / bound*: its time / the time that no schedule with blocks of equal length can go below, median and greatest quotient.

"""
SECOND = """
By collective, on all topologies:

"""
THIRD = """
## {shown}

What `auto` takes, with its simulated time. *bytes*: the whole message; one rank's part in scatter, gather, allgather, reduce-scatter and
all-to-all.

"""


def seconds(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def quotient(row, one, other):
    return seconds(row[one]) / seconds(row[other])


def sums(rows):
    predicted = [quotient(row, "predicted", "simulated") for row in rows]
    bounds = [quotient(row, "simulated", "bound") for row in rows]
    return [len(rows), sum(row["best by"] == "" for row in rows), f"{max(float(row['ratio']) for row in rows):.2f}",
            f"{min(predicted):.2f} to {max(predicted):.2f}", f"{pages.median(bounds):.2f}, {max(bounds):.2f}"]


def grouped(rows, name):
    found = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def sums_table(rows, name, code):
    columns = ("rows", "the best", "greatest ratio", "predicted / simulated", "simulated / bound")
    return pages.markdown((name, *columns), [[f"{code}{value}{code}", *sums(of)] for value, of in grouped(rows, name).items()], columns)


def page(rows):
    sizes = sorted({int(row["bytes"]) for row in rows} - {0})
    text = HEAD.format(whole=pages.whole_text({"tests/predict/choice.csv": len(rows)}, "build/tests/predict/choice >build/tests/predict/choice.csv",
                                              "prints it anew"), topologies=len(grouped(rows, "topology")), sizes=len(sizes))
    text += sums_table(rows, "topology", "`") + SECOND + sums_table(rows, "collective", "")
    shown = []
    for collective, of in grouped([row for row in rows if row["topology"] == SHOWN], "collective").items():
        by_size = {int(row["bytes"]): f"{row['taken']}, {row['simulated']}" for row in of}
        shown.append([collective, *(by_size.get(size, "") for size in sizes)] if 0 not in by_size else [collective, by_size[0], *[""] * (len(sizes) - 1)])
    return text + THIRD.format(shown=SHOWN) + pages.markdown(("collective", *map(pages.size_text, sizes)), shown)


def check(program):
    failed = subprocess.run([program, "--check", RECORD]).returncode != 0
    return [f"{program} --check {RECORD} failed"] if failed else []


if __name__ == "__main__":
    pages.run(sys.argv[1:], RECORD, PAGE, page, check)
