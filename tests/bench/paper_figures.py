#!/usr/bin/python3
"""The bandwidth figures of [SST09] as runs: tests/papers/figure_runs.csv. Root only; nothing else should run meanwhile.

paper_figures.py [FIGURE...]   measures these (default: all), the file's other rows stay

Figures 5, 7 and 9: 28, 28 and 27 hosts, as the paper has them, network namespaces with shaped full-duplex links (lab.sh) that share this
machine's processors. Figures 6 and 8 have 150 nodes, more than this machine has processors for: their rows are simulations only. All
algorithms of a figure run in turn, several times around; as in the paper the time is the smallest. A row of the file: figure, algorithm,
bytes, s. build/tests/papers/papers makes docs/results/papers.md of it.
"""
import argparse
import csv
import os
import pathlib
import sys

from lab import LAUNCH, espalier, hosts, measured_run

FILE = pathlib.Path("tests/papers/figure_runs.csv")
MBIT = 25
SIZES = (8, 4 << 10, 256 << 10, 4 << 20)
ROUNDS, REPEATS = 2, 3
FIGURES = {  # hosts, collective, algorithms
    "5": (28, "broadcast", ("two-tree", "circulant", "scatter-allgather", "binomial", "binary", "chain")),
    "7": (28, "reduce", ("two-tree", "rabenseifner", "binomial", "binary", "chain")),
    "9": (27, "scan", ("two-tree", "recursive-doubling", "doubly-pipelined", "chain")),
}


def seconds(ranks, collective, algorithm, size, model):
    words = ["--topology", f"complete:{ranks}", "--collective", collective, "--algorithm", algorithm, "--bytes", size, "--model", model, *LAUNCH,
             "--ranks-per-host", ranks, "--repeat", REPEATS, "--warmup", 1, "--deadline", 60000]
    return min(measured_run(f"{collective} of {size} bytes by {algorithm}", *words)["times_s"])


def measure(figure):
    ranks, collective, algorithms = FIGURES[figure]
    with hosts(ranks, MBIT):
        model = pathlib.Path("build/bench/paper_figures.textproto")
        model.parent.mkdir(exist_ok=True)
        espalier("measure", *LAUNCH, "--ranks-per-host", 5, "--receivers", "2,4", "-o", model)
        least = {}
        for _ in range(ROUNDS):
            for size in SIZES:
                for algorithm in algorithms:
                    time = seconds(ranks, collective, algorithm, size, model)
                    least[algorithm, size] = min(time, least.get((algorithm, size), time))
        for (algorithm, size), time in least.items():
            print(f"figure {figure} {algorithm} {size} bytes: {time:.6f} s", file=sys.stderr)
        return [[figure, algorithm, size, f"{time:.6f}"] for (algorithm, size), time in least.items()]


def main():
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(FIGURES))
    figures = parser.parse_args().figures or list(FIGURES)
    for figure in figures:
        if figure not in FIGURES:
            parser.error(f"no figure {figure}; there are {', '.join(FIGURES)}")
    for figure in figures:
        measured = measure(figure)
        kept = FILE.read_text().splitlines() if FILE.exists() else []
        rows = [row for row in csv.reader(kept) if row[0] != figure]
        with FILE.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(sorted(rows + measured, key=lambda row: row[0]))


if __name__ == "__main__":
    main()
