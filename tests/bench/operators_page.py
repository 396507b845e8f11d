#!/usr/bin/python3
"""Writes docs/results/operators.md and its record, operators.csv, from what `operators` measures.

operators_page.py --write build/tests/bench/operators     measures, and writes the record and the page
operators_page.py --check build/tests/bench/operators     whether the record has the form of what is printed now, and whether the page is
                                                          made of it; exit status 1 if not
operators_page.py --page                                  writes the page from the record as it is
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

RECORD = pathlib.Path(__file__).with_name("operators.csv")
PAGE = pages.RESULTS / "operators.md"
SIZES = {8 << 10: "8 KiB: two operands fit in L1", 4 << 20: "4 MiB: beyond L2", 64 << 20: "64 MiB: beyond all caches"}
EXTREMES = 3  # slowest and fastest rows of a size
HEAD = """# Speed of the operators

Written by `tests/bench/operators_page.py --write build/tests/bench/operators`. Each figure is in GB/s: 1e9 bytes of the result per
second of a thread's processor time. The operators work in place, as most combines of a machine do: they read two blocks and
write one of them. memcpy reads one and writes the other. The versions and memcpy take turns on the same two blocks. A figure
is the median of {rounds} rounds; *ratio* is combine() / memcpy, the median of the rounds' ratios. `combine()` takes the best version.
Products of floats multiply by 1. "none": the processor does not have that version.

[architecture.md](../architecture.md#the-machine) describes the versions, which all give the same bits. x86-64-v4 is the code
of x86-64-v3, except for bf16 sums and products, for products, minima and maxima of 64-bit integers, and for pairs of
integers. memcpy writes large blocks around the caches, and so does not read them first. An operator reads its result's block
anyway.

{whole}
"""


def form(text):
    """The lines without their numbers, and without the versions that the processor lacks."""
    return re.sub(r"[0-9]+(\.[0-9]+)?|none", "0", text)


def ratio(row):
    return float(row["ratio"])


def page(rows):
    names = list(rows[0])
    versions = names[names.index("operator") + 1:names.index("memcpy")]
    columns = (*versions, "memcpy", "ratio")
    text = HEAD.format(rounds=rows[0]["rounds"], whole=pages.whole_text({"tests/bench/operators.csv": len(rows)}, "build/tests/bench/operators "
                                                                        ">build/tests/bench/operators.csv", "measures them anew"))
    for size, title in SIZES.items():
        own = [row for row in rows if row["bytes"] == str(size)]
        by_operator = {}
        for row in own:
            by_operator.setdefault(row["operator"], []).append(row)
        text += f"\n## {title}\n\nBy operator, over its types:\n\n" + pages.markdown(("operator", "types", "ratio: least", "median", "greatest"), [
            [name, len(of), *(f"{value:.2f}" for value in (min(map(ratio, of)), pages.median(map(ratio, of)), max(map(ratio, of))))]
            for name, of in by_operator.items()], ("types", "ratio: least", "median", "greatest"))
        extremes = [*sorted(own, key=ratio)[:EXTREMES], *pages.worst(own, ratio, EXTREMES)]
        text += f"\nThe {EXTREMES} slowest and the {EXTREMES} fastest of {len(own)}:\n\n" + pages.markdown(("type", "operator", *columns), [
            [row[name] for name in ("type", "operator", *columns)] for row in extremes], columns)
    return text


def check(program):
    now = subprocess.run([program, "1"], stdout=subprocess.PIPE, text=True, check=True).stdout
    print(f"{len(now.splitlines()) - 1} rows of {program}")
    return pages.differences("the form of operators.csv", form(RECORD.read_text(encoding="utf-8")), form(now))


if __name__ == "__main__":
    pages.run(sys.argv[1:], RECORD, PAGE, page, check)
