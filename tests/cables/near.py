#!/usr/bin/python3
"""How near to the bound of the graph a communicator over cables comes, at the rate that raw sockets reach over all cables at once in the same run.

near.py BUILD [--shapes ..] [--collectives ..] [--mbits N] [--bytes N] [--turns N] [--repeat N] [--per-host R] [--management first|last] [--mtu N]
    prints for each shape and collective time / bound: the first call of a job, and the median of its later calls, both medians over the turns. In
    each turn raw sockets carry the bytes of the bound over every cable, both ways at once; then comes a job. Beside: the share of the bytes on the
    management network, and what the least and the most loaded direction of a cable carried, as multiples of the mean.
--nodes ALGORITHM measures `espalier run --cables` instead, with nodes in place of ranks.
--goals ends with status 1 if a ratio is above the goal for its shape, size and collective, or more than 1 % goes over the management network.
"""
import argparse
import statistics
import sys

import measure
from measure import Bed, Failed, Programs, Traffic, bound_bytes

import lab as cables

sys.path.append(str(measure.pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

SMALL = ("triangle", "ring4", "line4", "four-less-one")
DEFAULT = (*SMALL, "star5", "mesh3x3")
MAX_MANAGEMENT = 0.01


def goal(shape, collective, size):
    """The greatest ratio wanted: None where there is no goal."""
    if size < 8 << 20:
        return None if collective not in ("broadcast", "allreduce", "allgather") else 1.05 if shape in SMALL else 1.15
    if cables.size_of(shape) > 5:
        return 1.25
    return 1.05 if collective in ("broadcast", "reduce", "allgather", "reduce-scatter") else 1.10


def measured(bed, arguments):
    """The bounds, {(collective, size): [(rate, first call, later calls) of each turn]}, the algorithms, and the traffic."""
    bounds = {collective: bound_bytes(cables.SHAPES[bed.shape], bed.per_host, collective, arguments.bytes) for collective in arguments.collectives}
    found, algorithms = {}, {}
    with Traffic(bed) as traffic:
        for _ in range(arguments.turns):
            rates = {size: bed.raw_rate(size) for size in bounds.values()}
            if arguments.nodes:
                rows = bed.run(arguments.collectives, [arguments.bytes], arguments.nodes, 1 + arguments.repeat)
            else:
                rows = bed.bench(arguments.collectives, [arguments.bytes], "--warmup", 0, "--repeat", 1 + arguments.repeat)
            for key, row in rows.items():
                first, *later = row["warm_s"]
                found.setdefault(key, []).append((rates[bounds[key[0]]], first, statistics.median(later)))
                algorithms[key] = row["algorithm"]
    return bounds, found, algorithms, traffic


def rows_of(bed, arguments):
    """The table's rows of one shape, and what is above its goal."""
    bounds, found, algorithms, traffic = measured(bed, arguments)
    rows, bad = [], []
    for (collective, size), turns in found.items():
        bound = bounds[collective]
        first, later = (statistics.median(turn[0] * turn[part] / bound if bound else 0 for turn in turns) for part in (1, 2))
        wanted = goal(bed.shape, collective, size)
        rows.append([bed.shape, collective, algorithms[collective, size], f"{statistics.median(turn[0] for turn in turns) * 8e-6:.2f}",
                     f"{1e3 * bound / statistics.median(turn[0] for turn in turns):.1f}", f"{1e3 * statistics.median(turn[2] for turn in turns):.1f}",
                     f"{first:.2f}", f"{later:.3f}", wanted or "-"])
        if wanted and later > wanted:
            bad.append(f"{bed.shape}, {collective}, {pages.size_text(size)}: {later:.3f} times the bound; expected at most {wanted}")
    if traffic.share() > MAX_MANAGEMENT:
        bad.append(f"{bed.shape}: {traffic.share():.1%} of the bytes went over the management network; expected less than {MAX_MANAGEMENT:.0%}")
    mean = statistics.mean(traffic.cables.values())
    print(f"{bed.shape}: {traffic.share():.2%} of the bytes over the management network; directions of cables carried "
          f"{min(traffic.cables.values()) / mean:.2f} to {max(traffic.cables.values()) / mean:.2f} of their mean", file=sys.stderr, flush=True)
    return rows, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--shapes", nargs="+", choices=[*cables.SHAPES], default=DEFAULT)
    parser.add_argument("--collectives", nargs="+", choices=measure.COLLECTIVES, default=("broadcast", "allreduce", "allgather"))
    parser.add_argument("--mbits", type=float, default=20)
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--per-host", type=int, default=1)
    parser.add_argument("--management", choices=("first", "last"))
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--nodes")
    parser.add_argument("--goals", action="store_true")
    arguments = parser.parse_args()
    if arguments.nodes and arguments.per_host != 1:
        parser.error("--nodes has one node per host; expected no --per-host")
    measure.begin()
    rows, bad, failed = [], [], False
    for shape in arguments.shapes:
        with Bed(Programs(arguments.build), shape, arguments.per_host, management=arguments.management, mtu=arguments.mtu, mbits=arguments.mbits) as bed:
            try:
                more, worse = rows_of(bed, arguments)
            except Failed as failure:
                more, worse = [], [f"{shape}: {failure}"]
            rows, bad, failed = rows + more, bad + worse, failed or not more
    columns = ("shape", "collective", "algorithm", "Mbit/s", "bound ms", "ms", "first call", "time / bound", "goal")
    print(f"{pages.size_text(arguments.bytes)}, {arguments.mbits:g} Mbit/s per cable\n\n{pages.markdown(columns, rows, columns[3:])}", end="")
    print("\n".join(bad), file=sys.stderr)
    sys.exit(1 if failed or (arguments.goals and bad) else 0)


if __name__ == "__main__":
    main()
