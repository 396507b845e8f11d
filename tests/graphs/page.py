#!/usr/bin/python3
"""Checks the lower bounds that `graphs` prints by their witnesses, and writes docs/results/graphs.md.

page.py build/tests/graphs/graphs >docs/results/graphs.md
page.py --check build/tests/graphs/graphs PAGE [all]     whether it is what would be written now, for a sample of the graphs or all;
                                                         exit status 1 if not
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
from fractions import Fraction

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bounds"))
import check

COLLECTIVES = ("broadcast", "reduce", "allgather", "reduce-scatter", "allreduce", "all-to-all")
WITHIN = {"all-to-all": 5}  # per cent that are wanted; 2 for the others
HEAD = """# Packed trees and paths on any graph

Written by `tests/graphs/page.py build/tests/graphs/graphs >docs/results/graphs.md`. The graphs are in `tests/graphs/graph_list.cc`.
Each schedule is over the graph's own links, and proven for every N: no link carries more than its lanes in a step (SLOT). The all-to-all is by
[packed-paths](../algorithms/packed-paths.md), the others are by [packed-trees](../algorithms/packed-trees.md) with root 0. `graphs-test` runs
the same schedules on simulated machines that have only these links.

- *steps*: for N blocks per segment. The message of a broadcast, a reduce and an allreduce has one segment, that of an allgather, a
  reduce-scatter and an all-to-all one per rank.
- *bound*: the greatest lower bound, whose witness `tests/bounds/check.py` has checked. On one-way links no bound by hops is known.
- *time per byte*: the steps per block for large N, in units of the time that a lane takes for a byte. A byte is one of the message, or of a
  rank's part.
- *ratio*: the time per byte divided by that of the bound. For an allreduce, it is divided by the bounds of a reduce-scatter and an
  allgather of the same message together. Routers that combine and replicate may take less.
- *window*: the steps in flight that the programs allow. It is below 8 where a program has no room for the waits of a larger one.
- *certificate*: the nodes on the smaller side of the cut that gives the bound, and the lanes that cross it. Blocks go *from* these nodes, or
  *to* them. An allreduce refers to its reduce-scatter and allgather. *lengths*: links have lengths, which the dual of the linear program
  gives. An all-to-all takes up the distances of all pairs of ranks, and a step offers the sum of all lanes times their lengths: the
  certificate has both. It is there where the schedule is above the bound of every cut.
"""
SUMMARY = """## Summary

Graphs on which the ratio is within the wanted one, and the greatest ratio:

| collective | wanted | graphs | greatest ratio | on |
| --- | ---: | ---: | ---: | --- |"""

SHORT = ("broadcast", "reduce", "allreduce", "barrier", "allgather", "reduce-scatter", "all-to-all")
SHORT_HEAD = """## One block

The steps of the shortest messages, of one block per segment. Broadcast, reduce, allreduce and barrier are by
[breadth-first](../algorithms/breadth-first.md), allgather and reduce-scatter by [time-expanded](../algorithms/time-expanded.md), and the
all-to-all by packed-paths. In brackets: the greatest bound whose witness is checked, if it is lower. An allreduce and a barrier go into the
centre and out again, while their bound is the distance of the two furthest ranks. Breadth-first trees need links in both directions; on
one-way links no bound by distances is known.
"""


def slope(bound):
    return Fraction(bound["b"], bound["d"])


def steepest(line):
    return max(line["certificate"]["bounds"], key=slope)


def certificate(graph, line):
    """The cut of the steepest bound in words."""
    bound = steepest(line)
    witness = bound["witness"]
    if witness["kind"] == "lengths":
        return f"lengths: {bound['b']} of {bound['d']}"
    every = set(range(graph.nodes))
    if witness["kind"] == "cut":
        inside = set(witness["from"]) if "from" in witness else every - set(witness["from_all_except"])
    elif witness["kind"] == "tree link":
        inside = set(graph.away([witness["from"]], graph.out, (witness["from"], witness["to"])))
    else:
        inside = every - {witness["rank"]} if witness["receives"] else {witness["rank"]}
    lanes = sum(capacity for (u, v), capacity in graph.links.items() if u in inside and v not in inside)
    small, word = (inside, "from") if 2 * len(inside) <= len(every) else (every - inside, "to")
    return f"{word} {', '.join(map(str, sorted(small)))}: {lanes}"


def refuse_wrong(checker, bound):
    """The checker must refuse a bound that counts a block more, or a lane less."""
    for one in ({**bound, "b": bound["b"] + 1}, {**bound, "d": bound["d"] - 1}):
        try:
            checker.check(one)
        except AssertionError:
            continue
        sys.exit(f"accepted, though wrong: {one}")


def read(program, names):
    """For each graph: its line, and the lines of its collectives."""
    graphs = {}
    for name in names or [None]:
        with subprocess.Popen([program] + ([name] if name else []), stdout=subprocess.PIPE, text=True) as ran:
            for line in map(json.loads, ran.stdout):
                if "topology" in line:
                    graph = check.Graph(line)
                    lines = graphs[line["topology"]] = (line, {})
                    continue
                if "expected links in both directions" in line.get("refused", ""):
                    continue  # breadth-first trees on one-way links
                assert "refused" not in line and line["slot"] and line["for_all"], line
                assert "limited" not in line["certificate"], line
                checker = check.Checker(graph, line["certificate"])
                for bound in line["certificate"]["bounds"]:
                    checker.check(bound)
                    if bound["witness"]["kind"] == "lengths":
                        refuse_wrong(checker, bound)
                if "short" in line:
                    lines[1]["short", line["short"]] = line
                    continue
                line["cut"] = certificate(graph, line)
                lines[1][line["collective"]] = line
            assert ran.wait() == 0, f"{program}: exit status {ran.returncode}"
    return graphs


def number(value):
    return f"{float(value):.4f}".rstrip("0").rstrip(".")


def formula(rate):
    return f"{rate.numerator}N" if rate.denominator == 1 else f"ceil({rate.numerator}N/{rate.denominator})"


def ratio_of(topology, lines, collective):
    line = lines[collective]
    taken = Fraction(line["steps_per_round"], line["blocks_per_round"])
    bound = slope(steepest(line))
    if collective == "allreduce":
        bound = sum(slope(steepest(lines[part])) for part in ("reduce-scatter", "allgather")) / topology["ranks"]
    return taken, taken / bound


def table(topology, lines):
    """The section of one graph."""
    text = [f"## {topology['topology']}", "",
            f"{topology['words'][0].upper()}{topology['words'][1:]}: {topology['ranks']} ranks, {topology['nodes'] - topology['ranks']} "
            f"routers, {len(topology['links'])} links.", "",
            "| collective | steps | bound | time per byte | ratio | window | certificate |", f"|{' --- |' * 3}{' ---: |' * 3} --- |"]
    for collective in COLLECTIVES:
        line = lines[collective]
        taken, ratio = ratio_of(topology, lines, collective)
        cut = "as above" if collective == "allreduce" else line["cut"]
        bound = line["formula"]
        if steepest(line)["witness"]["kind"] == "lengths":
            bound = formula(slope(steepest(line)))
        text.append(f"| {collective} | {line['steps']} | {bound} | {number(taken)} | {number(ratio)} | {line['window']} | {cut} |")
    return "\n".join(text) + "\n"


def short_row(topology, lines):
    """The steps for one block per segment, and the bounds where they are lower."""
    cells = [topology["topology"]]
    for collective in SHORT:
        line = lines["all-to-all"] if collective == "all-to-all" else lines.get(("short", collective))
        if line is None:
            cells.append("-")
            continue
        bound = max(-(-(one["a"] + one["b"]) // one["d"]) for one in line["certificate"]["bounds"])
        assert bound <= line["steps_at_one"], line
        cells.append(f"{line['steps_at_one']}" + (f" ({bound})" if bound < line["steps_at_one"] else ""))
    return f"| {' | '.join(cells)} |"


def page(graphs):
    ratios = collections.defaultdict(list)
    for name, (topology, lines) in graphs.items():
        for collective in COLLECTIVES:
            ratios[collective].append((ratio_of(topology, lines, collective)[1], name))
    rows = []
    for collective, found in ratios.items():
        within = WITHIN.get(collective, 2)
        good = sum(ratio <= 1 + Fraction(within, 100) for ratio, _ in found)
        rows.append(f"| {collective} | {within} % | {good} of {len(found)} | {number(max(found)[0])} | "
                    f"{max(found)[1] if max(found)[0] > 1 else 'all'} |")
    short = [SHORT_HEAD, f"| graph | {' | '.join(SHORT)} |", f"| --- |{' ---: |' * len(SHORT)}", *(short_row(*one) for one in graphs.values())]
    return "\n".join([HEAD, SUMMARY, *rows, "", *short, "", *(table(*one) for one in graphs.values())])


def main():
    if sys.argv[1] != "--check":
        sys.stdout.write(page(read(sys.argv[1], [])))
        return
    program, path = sys.argv[2:4]
    whole = sys.argv[4:] == ["all"] or os.environ.get("ESPALIER_WHOLE", "0") != "0"
    old = pathlib.Path(path).read_text(encoding="utf-8")
    if whole:
        now = page(read(program, []))
        same = old == now
    else:
        small = ["ring-9", "torus-3x3", "hypercube-3", "cube-mesh-8", "uneven-tree"]
        print("a sample:", ", ".join(small))
        graphs = read(program, small)
        tables = [table(*one) for one in graphs.values()] + [short_row(*one) for one in graphs.values()]
        now = "\n".join(tables)
        same = all(one in old for one in tables)
    print(now)
    if not same:
        sys.exit(f"{path} is old: tests/graphs/page.py writes it anew")


if __name__ == "__main__":
    main()
