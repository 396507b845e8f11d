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
import json
import os
import pathlib
import subprocess
import sys

LAB = "tests/bench/lab.sh"
FILE = pathlib.Path("tests/papers/figure_runs.csv")
MBIT = 25
SIZES = (8, 4 << 10, 256 << 10, 4 << 20)
ROUNDS, REPEATS = 2, 3
FIGURES = {  # hosts, collective, algorithms
    "5": (28, "broadcast", ("two-tree", "circulant", "scatter-allgather", "binomial", "binary", "chain")),
    "7": (28, "reduce", ("two-tree", "rabenseifner", "binomial", "binary", "chain")),
    "9": (27, "scan", ("two-tree", "recursive-doubling", "doubly-pipelined", "chain")),
}


def espalier(*words):
    done = subprocess.run(["build/tools/espalier", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"paper_figures.py: exit status {done.returncode}: espalier {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def launch(processes):
    return ["--provider", "tcp", "--launch-prefix", "ip netns exec esplab%r", "--address", "10.79.0.%n", "--ranks-per-host", processes]


def seconds(hosts, collective, algorithm, size, model):
    run = json.loads(espalier("run", "--topology", f"complete:{hosts}", "--collective", collective, "--algorithm", algorithm, "--bytes", size,
                              "--model", model, *launch(hosts), "--repeat", REPEATS, "--warmup", 1, "--format", "json", "--deadline", 60000))["runs"][0]
    if not run["right"]:
        sys.exit(f"paper_figures.py: {collective} of {size} bytes by {algorithm} gave a wrong result")
    return min(run["times_s"])


def measure(figure):
    hosts, collective, algorithms = FIGURES[figure]
    subprocess.run([LAB, "up", str(hosts), str(MBIT)], check=True)
    try:
        model = pathlib.Path("build/bench/paper_figures.textproto")
        model.parent.mkdir(exist_ok=True)
        espalier("measure", *launch(5), "--receivers", "2,4", "-o", model)
        least = {}
        for _ in range(ROUNDS):
            for size in SIZES:
                for algorithm in algorithms:
                    time = seconds(hosts, collective, algorithm, size, model)
                    least[algorithm, size] = min(time, least.get((algorithm, size), time))
        for (algorithm, size), time in least.items():
            print(f"figure {figure} {algorithm} {size} bytes: {time:.6f} s", file=sys.stderr)
        return [[figure, algorithm, size, f"{time:.6f}"] for (algorithm, size), time in least.items()]
    finally:
        subprocess.run([LAB, "down"], check=True)


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
