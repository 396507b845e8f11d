#!/usr/bin/python3
"""Every collective over cables alone: all shapes, with a slow network beside and without, MTU 1500 and 9000, one and two ranks on each host, three sizes.

grid.py --whole BUILD [--shapes ..]    all cases; a table of them
grid.py --sample BUILD                 one case of a small shape that a seed draws, with 8 B and 4 MiB
    Every result is compared with a plain reference. On the network beside go less than 1 % of the bytes. Beside the bytes that the busiest direction of
    a cable carried in a whole case are those of the bound: the least that any schedules can reach. Ends with status 1 if a case is not right.
"""
import argparse
import itertools
import statistics
import sys
import time

import measure
from measure import Bed, Failed, Programs, Traffic, bound_bytes

import lab as cables

sys.path.append(str(measure.pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402
import sample  # noqa: E402

SHAPES = [shape for shape in cables.SHAPES if shape != "islands"]  # which no cable joins
SMALL = ("pair", "triangle", "ring4", "line4", "star5", "four-less-one")
CASES = list(itertools.product((None, "first", "last"), (1500, 9000), (1, 2)))
SIZES = (8, 64 << 10, 8 << 20)
SAMPLED_SIZES = (8, 4 << 20)  # enough bytes for the share of the network beside, which carries part of the joining
MAX_MANAGEMENT = 0.01
COLUMNS = ("shape", "beside", "MTU", "ranks", "right", "on the network beside", "bound MB", "busiest MB", "mean MB", "s")


def run(programs, shape, management, mtu, per_host, sizes):
    """The row of a case, and what is wrong with it."""
    begin = time.monotonic()
    with Bed(programs, shape, per_host, management=management, mtu=mtu) as bed:
        with Traffic(bed) as traffic:
            try:
                rows, bad = bed.bench(measure.COLLECTIVES, sizes, "--warmup", 0, "--repeat", 1), ""
            except Failed as failure:
                rows, bad = {}, str(failure)
    bound = sum(bound_bytes(cables.SHAPES[shape], per_host, collective, size) for collective, size in rows)
    wanted = 1 + len(sizes) * (len(measure.COLLECTIVES) - 1)
    if not bad and len(rows) != wanted:
        bad = f"{len(rows)} results; expected {wanted}"
    if not bad and max(sizes) >= 64 << 10 and traffic.share() > MAX_MANAGEMENT:
        bad = f"{traffic.share():.1%} of the bytes went over the network beside; expected at most {MAX_MANAGEMENT:.0%}"
    row = [shape, management or "-", mtu, bed.ranks, f"{len(rows)} of {wanted}", f"{traffic.share():.2%}", f"{bound / 1e6:.1f}",
           f"{max(traffic.cables.values()) / 1e6:.1f}", f"{statistics.mean(traffic.cables.values()) / 1e6:.1f}", f"{time.monotonic() - begin:.0f}"]
    return row, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--whole", metavar="BUILD")
    what.add_argument("--sample", metavar="BUILD")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    arguments = parser.parse_args()
    measure.begin()
    # A network that joins two hosts only looks like a cable, and is used as one.
    chosen = [(shape, case) for shape, case in itertools.product(arguments.shapes, CASES) if shape != "pair" or case[0] is None]
    sizes = SIZES
    if arguments.sample:
        small = [case for case in chosen if case[0] in SMALL]
        chosen, sizes = [case for number, case in enumerate(small) if sample.sampled(number, len(small))], SAMPLED_SIZES
    rows, bad = [], []
    for shape, case in chosen:
        row, wrong = run(Programs(arguments.whole or arguments.sample), shape, *case, sizes)
        rows.append(row)
        bad += [f"{shape}, {case}: {wrong}"] if wrong else []
        print(f"{' '.join(map(str, row))} {wrong}", file=sys.stderr, flush=True)
    print(pages.markdown(COLUMNS, rows, COLUMNS[2:]), end="")
    sys.exit("\n".join(bad) if bad else 0)


if __name__ == "__main__":
    main()
