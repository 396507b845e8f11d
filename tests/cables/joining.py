#!/usr/bin/python3
"""How long the ranks of a job take to join over cables alone, from the last rank's call of join() to the return of all, with their caches and without.

joining.py BUILD [--shape SHAPE] [--per-host R] [--times N] [--management first|last] [--new] [--goals]
    prints medians and the longest. --new: the addresses are as after `ip link set up`. --goals ends with status 1 if a median is above its goal.
"""
import argparse
import statistics
import sys

import measure
from measure import Bed, Failed, Programs

import lab as cables
import ways

sys.path.append(str(measure.pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

GOALS_S = {"with caches": 2.0, "without": 6.0}  # of 9 hosts


def once(bed):
    """Seconds of one start."""
    texts = bed.job_texts([bed.programs.member])
    seconds = ways.seconds_to_join("".join(texts), bed.ranks)
    if seconds is None:
        raise Failed(f"not all of {bed.ranks} ranks joined: {texts}")
    return seconds


def times(bed, count):
    """{"without": seconds of each start, "with caches": ..}, in turns."""
    found = {name: [] for name in GOALS_S}
    for _ in range(count):
        bed.clear_caches()
        for name in ("without", "with caches"):
            found[name].append(once(bed))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--shape", choices=[*cables.SHAPES], default="mesh3x3")
    parser.add_argument("--per-host", type=int, default=1)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--management", choices=("first", "last"))
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--goals", action="store_true")
    arguments = parser.parse_args()
    measure.begin()
    with Bed(Programs(arguments.build), arguments.shape, arguments.per_host, management=arguments.management, is_new=arguments.new) as bed:
        found = times(bed, arguments.times)
    rows = [[name, len(seconds), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}", GOALS_S[name]] for name, seconds in found.items()]
    print(f"{arguments.shape}, {bed.ranks} ranks\n\n" + pages.markdown(("caches", "starts", "median s", "longest s", "goal s"), rows,
                                                                        ("starts", "median s", "longest s", "goal s")), end="")
    sys.exit(1 if arguments.goals and any(statistics.median(seconds) > GOALS_S[name] for name, seconds in found.items()) else 0)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"joining.py: {failure}")
