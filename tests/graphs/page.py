#!/usr/bin/python3
"""Checks the lower bounds that `graphs` prints by their witnesses. Writes docs/results/graphs.md and its record.

page.py --write build/tests/graphs/graphs     writes the record (graphs.csv, schedules.csv, one_block.csv) and the page
page.py --check build/tests/graphs/graphs     whether they are what would be written now, for a sample of the graphs or, with
                                              ESPALIER_WHOLE=1, for all; exit status 1 if not
page.py --page                                writes the page from the record as it is
"""
import json
import os
import pathlib
import subprocess
import sys
from fractions import Fraction

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bounds"))
import check
import pages

COLLECTIVES = ("broadcast", "reduce", "allgather", "reduce-scatter", "allreduce", "all-to-all")
WITHIN = {"all-to-all": 5}  # per cent that are wanted; 2 for the others
HEAD = """# Packed trees and paths on any graph

Written by `tests/graphs/page.py --write build/tests/graphs/graphs`. The graphs are in `tests/graphs/graph_list.cc`.
Each schedule is over the graph's own links, and proven for every N: no link carries more than its lanes in a step (SLOT). The all-to-all is by
[packed-paths](../algorithms/packed-paths.md), the others are by [packed-trees](../algorithms/packed-trees.md) with root 0. `graphs-test` runs
the same schedules on simulated machines that have only these links.

{whole}

- *steps*: for N blocks per segment. The message of a broadcast, a reduce and an allreduce has one segment, that of an allgather, a
  reduce-scatter and an all-to-all one per rank.
- *bound*: the greatest lower bound, whose witness `tests/bounds/check.py` has checked.
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

"""
SCHEDULES = """
## Long messages

Steps for N blocks per segment:

"""
ABOVE = """
The schedules above their bound:

"""
SAMPLE = ("ring-9", "torus-3x3", "hypercube-3", "cube-mesh-8", "uneven-tree")
GRAPH = ("graph", "what", "ranks", "routers", "links")
SCHEDULE = ("graph", "collective", "steps", "bound", "time per byte", "ratio", "window", "certificate")

SHORT = ("broadcast", "reduce", "allreduce", "barrier", "allgather", "reduce-scatter", "all-to-all")
SHORT_HEAD = """
## One block

The steps of the shortest messages, of one block per segment. Broadcast, reduce, allreduce and barrier are by
[breadth-first](../algorithms/breadth-first.md), allgather and reduce-scatter by [time-expanded](../algorithms/time-expanded.md), and the
all-to-all by packed-paths. In brackets: the greatest bound whose witness is checked, if it is lower. An allreduce and a barrier go into the
centre and out again, while their bound is the distance of the two furthest ranks. "-": breadth-first trees need links in both directions.

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


def schedule_rows(topology, lines):
    """The rows of schedules.csv of one graph; the ratio is exact."""
    for collective in COLLECTIVES:
        line = lines[collective]
        taken, ratio = ratio_of(topology, lines, collective)
        cut = "as above" if collective == "allreduce" else line["cut"]
        bound = line["formula"]
        if steepest(line)["witness"]["kind"] == "lengths":
            bound = formula(slope(steepest(line)))
        yield [topology["topology"], collective, line["steps"], bound, number(taken), ratio, line["window"], cut]


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
    return cells


def computed(program, names):
    """The record of some graphs, or of all: {file: text}."""
    graphs = read(program, names).values()
    return {"graphs.csv": pages.csv_text(GRAPH, [
                [topology["topology"], topology["words"], topology["ranks"], topology["nodes"] - topology["ranks"], len(topology["links"])]
                for topology, _ in graphs]),
            "schedules.csv": pages.csv_text(SCHEDULE, [row for one in graphs for row in schedule_rows(*one)]),
            "one_block.csv": pages.csv_text(("graph", *SHORT), [short_row(*one) for one in graphs])}


def lines_of(text, names):
    """The head of a CSV text, and the lines of these graphs."""
    head, *lines = text.splitlines(keepends=True)
    return "".join([head, *(line for line in lines if not names or line.split(",")[0] in names)])


def summary_row(collective, rows):
    within = WITHIN.get(collective, 2)
    worst = pages.worst(rows, lambda row: Fraction(row["ratio"]))[0]
    ratio = Fraction(worst["ratio"])
    good = sum(Fraction(row["ratio"]) <= 1 + Fraction(within, 100) for row in rows)
    return [collective, f"{within} %", f"{good} of {len(rows)}", number(ratio), worst["graph"] if ratio > 1 else "all"]


def page(record):
    schedules = record["schedules.csv"]
    text = HEAD.format(whole=pages.whole_text({f"tests/graphs/{name}": len(record[name]) for name in ("schedules.csv", "one_block.csv")},
                                              "ESPALIER_WHOLE=1 tests/graphs/page.py --check build/tests/graphs/graphs"))
    text += SUMMARY + pages.markdown(("collective", "wanted", "graphs", "greatest ratio", "on"), [
        summary_row(collective, [row for row in schedules if row["collective"] == collective]) for collective in COLLECTIVES],
        ("wanted", "graphs", "greatest ratio"))
    text += SCHEDULES
    for graph in record["graphs.csv"]:
        graph["what"] = f"{graph['what']}: {graph['ranks']} ranks" + (f", {graph['routers']} routers" if graph["routers"] != "0" else "")
        graph.update({row["collective"]: row["steps"] for row in schedules if row["graph"] == graph["graph"]})
    text += pages.markdown(("graph", "what", *COLLECTIVES), [[graph[name] for name in ("graph", "what", *COLLECTIVES)] for graph in record["graphs.csv"]])
    above = [{**row, "ratio": number(Fraction(row["ratio"]))} for row in schedules if Fraction(row["ratio"]) > 1]
    text += ABOVE + pages.markdown(SCHEDULE, [[row[name] for name in SCHEDULE] for row in above], SCHEDULE[4:7])
    return text + SHORT_HEAD + pages.markdown(("graph", *SHORT), [[row[name] for name in ("graph", *SHORT)] for row in record["one_block.csv"]], SHORT)


class Graphs(pages.Page):
    """With a sample of the graphs."""

    def computed(self, program):
        if os.environ.get("ESPALIER_WHOLE", "0") != "0" or sys.argv[1] == "--write":
            return super().computed(program)
        print("a sample:", ", ".join(SAMPLE))
        kept = {name: (self.folder / name).read_text(encoding="utf-8") for name in self.records}
        for name, text in computed(program, SAMPLE).items():
            if bad := pages.differences(f"{name}, the sample", lines_of(kept[name], SAMPLE), text):
                self.end(bad, f"{self.script} --write {program}")
        return kept


if __name__ == "__main__":
    Graphs(__file__, "graphs.md", ("graphs.csv", "schedules.csv", "one_block.csv"), lambda program: computed(program, []), page).main(sys.argv[1:])
