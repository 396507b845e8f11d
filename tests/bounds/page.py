#!/usr/bin/python3
"""Checks the witness of every lower bound that `certificates` prints, and writes docs/results/bounds.md from them.

page.py build/tests/bounds/certificates >docs/results/bounds.md
page.py --check build/tests/bounds/certificates PAGE     whether it is what would be written now; exit status 1 if not
"""
import collections
import copy
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import check
import pages

HEAD = """# Lower bounds, and the schedules nearest to them

Written by `tests/bounds/page.py build/tests/bounds/certificates >docs/results/bounds.md`. All algorithms are compiled on these topologies,
with the first and the last rank as root, and verified. [verifier.md](../verifier.md#bounds-and-their-witnesses) says which bounds there are.
`tests/bounds/check.py` has checked the witness of each of the {bounds:,} bounds on this page ({schedules:,} schedules, and {collectives:,}
collectives without one). It has refused the same bounds raised by one step, growing by one block more, and with a link, a port or a pair of
ranks left out.

## All algorithms

A row is for all algorithms of one collective on one topology, with the same links and ports:

- *links*: *hop by hop*: each message goes to a neighbour. *routed*: messages go along routes, and no link carries more than its capacity.
  *routed, any links*: the capacities of links are not kept, so they bound nothing.
- *nearest*: the algorithm whose steps are nearest to its bound, for N = 64 blocks or the next N that it can have (1, if it has no other).
- *bound*: the greatest lower bound for this algorithm's segments and root; *steps / bound*: for that N.
- *reached by*: the witness of the bound that is the greatest for that N."""
COLLECTIVES = """## All collectives

These bounds hold for every schedule with root 0 whose segments are one, or one per rank, and whose links suffice. *routed*: only ranks
run programs. All-to-all, routed: no rank passes data on, so the loads of the routes count. N is 1 for a barrier."""
MODELS = ("one-port duplex", "simplex", "single send", "multiport")
COLUMNS = ("topology", "collective", "links", "ports", "schedules", "nearest", "bound", "N", "steps / bound", "reached by")
NUMBERS = ("schedules", "N", "steps / bound")


def refused(checker, bound):
    """Whether the checker refuses a bound that must not be accepted."""
    try:
        checker.check(bound)
    except AssertionError:
        return True
    return False


def wrong_ones(bound):
    """Bounds and witnesses that are wrong by a little."""
    for change in ({"a": bound["a"] + bound["d"]}, {"b": bound["b"] + 1}):
        yield {**bound, **change}
    witness = bound["witness"]
    for name in ("links", "pairs", "nodes"):
        for k in range(len(witness.get(name, ()))):
            wrong = copy.deepcopy(bound)
            del wrong["witness"][name][k]
            yield wrong
    for k in range(len(witness.get("links", ()))):
        wrong = copy.deepcopy(bound)
        wrong["witness"]["links"][k]["capacity"] += 1
        yield wrong


def value(bound, blocks):
    return -(-(bound["a"] + bound["b"] * blocks) // bound["d"])


def read(program):
    """The schedules by what they share, the formulas of collectives without one, and how many there are."""
    rows, bounds = collections.defaultdict(list), collections.defaultdict(dict)
    kinds, counts = collections.Counter(), collections.Counter()
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as ran:
        for line in map(json.loads, ran.stdout):
            if "topology" in line:
                topology, graph = line["topology"], check.Graph(line)
                continue
            facts = line["certificate"]
            assert "limited" not in facts, line
            checker = check.Checker(graph, facts)
            for bound in facts["bounds"]:
                try:
                    checker.check(bound)
                except AssertionError as error:
                    sys.exit(f"{topology}, {line['links']}: {error}: {bound}\n{facts}")
                accepted = [wrong for wrong in wrong_ones(bound) if not refused(checker, wrong)]
                assert not accepted, f"accepted, though wrong: {accepted[0]}, made from {bound}"
                kinds[bound["witness"]["kind"]] += 1
                counts["bounds"] += 1
            if "algorithm" not in line:
                counts["collectives"] += 1
                bounds[topology, facts["collective"], line["links"]][facts["port_model"]] = line["formula"]
                continue
            assert line["bound"] <= line["steps"], line
            counts["schedules"] += 1
            rows[topology, facts["collective"], line["links"], facts["port_model"]].append(line)
        assert ran.wait() == 0, f"{program}: exit status {ran.returncode}"
    missing = {"arrival", "reach", "port", "messages", "cut", "tree link", "branches", "hops", "routes"} - set(kinds)
    assert not missing, f"no bound has a witness of the kinds {missing}"
    return rows, bounds, counts


def row(key, lines):
    near = min(lines, key=lambda line: line["steps"] / max(1, line["bound"]))
    reason = max(near["certificate"]["bounds"], key=lambda bound: value(bound, near["blocks"]))["witness"]["kind"]
    name = near["algorithm"].split(",")[0]
    return [*key, len(lines), name, near["formula"], near["blocks"], f"{near['steps']} / {near['bound']}", reason]


def page(program):
    rows, bounds, counts = read(program)
    lines = [HEAD.format(**counts), "", f"| {' | '.join(COLUMNS)} |",
             f"|{''.join(' ---: |' if name in NUMBERS else ' --- |' for name in COLUMNS)}"]
    lines += [f"| {' | '.join(map(str, row(*item)))} |" for item in rows.items()]
    lines += ["", COLLECTIVES, "", f"| topology | collective | links | {' | '.join(MODELS)} |", f"|{7 * ' --- |'}"]
    lines += [f"| {' | '.join([*key, *(formulas[model] for model in MODELS)])} |" for key, formulas in bounds.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    pages.main(page, "tests/bounds/page.py")
