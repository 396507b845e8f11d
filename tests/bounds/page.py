#!/usr/bin/python3
"""Checks the witness of every lower bound that `certificates` prints. Writes docs/results/bounds.md and its record from them.

page.py --write build/tests/bounds/certificates     writes the record (bounds.csv, collectives.csv) and the page
page.py --check build/tests/bounds/certificates     whether they are what would be written now; exit status 1 if not
page.py --page                                      writes the page from the record as it is
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

Written by `tests/bounds/page.py --write build/tests/bounds/certificates`. All algorithms are compiled on {topologies} topologies,
with the first and the last rank as root, and verified. [verifier.md](../verifier.md#bounds-and-their-witnesses) says which bounds there are.
`tests/bounds/check.py` has checked the witness of each of the {bounds:,} bounds ({schedules:,} schedules, and {collectives:,}
collectives without one). It has refused the same bounds raised by one step, growing by one block more, and with a link, a port or a pair of
ranks left out.

{whole}

## All algorithms

A case is all algorithms of one collective on one topology, with the same links and ports. There are {cases:,}, and {without} of them have no
bound above 0, on `complete:1`. For each of the others the algorithm counts whose steps are nearest to its bound, for N = 64 blocks or the
next N that it can have (1, if it has no other). The bound is the greatest one for this algorithm's segments and root.

- *reached*: cases whose steps are the bound. *median*, *worst*: steps / bound.
- *links*: *hop by hop*: each message goes to a neighbour. *routed*: messages go along routes, and no link carries more than its capacity.
  *routed, any links*: the capacities of links are not kept, so they bound nothing.
- *by*: the witness of the bound that is the greatest for that N.

Witnesses of all cases: {kinds}.

"""
COLLECTIVES = """## All collectives

These bounds hold for every schedule with root 0 whose segments are one, or one per rank, and whose links suffice. *routed*: only ranks
run programs. All-to-all, routed: no rank passes data on, so the loads of the routes count. N is 1 for a barrier. Those of `{shown}`, of
{topologies} topologies:

"""
SHOWN = "mesh:4x4"
MODELS = ("one-port duplex", "simplex", "single send", "multiport")
COLUMNS = ("topology", "collective", "links", "ports", "schedules", "nearest", "bound", "N", "steps", "least", "reached by")
SUMS = ("cases", "reached", "median", "worst")
COUNTS = ("bounds", "schedules", "collectives")


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
    return [*key, len(lines), name, near["formula"], near["blocks"], near["steps"], near["bound"], reason]


def compute(program):
    rows, bounds, counts = read(program)
    return {"bounds.csv": pages.csv_text(COLUMNS, [row(*item) for item in rows.items()]),
            "collectives.csv": pages.csv_text(("topology", "collective", "links", *MODELS),
                                              [[*key, *(formulas[model] for model in MODELS)] for key, formulas in bounds.items()]),
            "counts.csv": pages.csv_text(COUNTS, [counts])}


def ratio(line):
    return int(line["steps"]) / int(line["least"])


def sums(lines):
    """[cases, reached, median, worst], and the worst case."""
    far = pages.worst(lines, ratio)[0]
    return [len(lines), sum(line["steps"] == line["least"] for line in lines), f"{pages.median(map(ratio, lines)):.2f}", f"{ratio(far):.2f}"], far


def case_text(line):
    return f"`{line['topology']}`, {line['links']}: {line['nearest']}, {line['steps']} / {line['least']}"


def page(record):
    counts = {name: int(number) for name, number in record["counts.csv"][0].items()}
    everything, bounds = record["bounds.csv"], record["collectives.csv"]
    lines = [line for line in everything if line["least"] != "0"]
    kinds = collections.Counter(line["reached by"] for line in everything).most_common()
    by_ports, by_topology = {}, {}
    for line in lines:
        by_ports.setdefault((line["collective"], line["ports"]), []).append(line)
        by_topology.setdefault(line["topology"], []).append(line)
    head = HEAD.format(
        **counts, topologies=len({line["topology"] for line in everything}), cases=len(everything), without=len(everything) - len(lines),
        kinds=", ".join(f"{kind} {number}" for kind, number in kinds),
        whole=pages.whole_text({"tests/bounds/bounds.csv": len(everything), "tests/bounds/collectives.csv": len(bounds)},
                               "tests/bounds/page.py --check build/tests/bounds/certificates"))
    text = head + pages.markdown(("collective", "ports", *SUMS, "the worst case", "by"), [
        [*key, *(found := sums(of))[0], case_text(found[1]), found[1]["reached by"]] for key, of in by_ports.items()], SUMS)
    text += "\nBy topology:\n\n" + pages.markdown(("topology", *SUMS, "the worst case"), [
        [f"`{name}`", *(found := sums(of))[0], f"{found[1]['collective']}, {found[1]['ports']}"] for name, of in by_topology.items()], SUMS)
    shown = [line for line in bounds if line["topology"] == SHOWN]
    text += "\n" + COLLECTIVES.format(shown=SHOWN, topologies=len({line["topology"] for line in bounds}))
    return text + pages.markdown(("collective", "links", *MODELS), [[line["collective"], line["links"], *(line[model] for model in MODELS)]
                                                                    for line in shown])


if __name__ == "__main__":
    pages.Page(__file__, "bounds.md", ("bounds.csv", "collectives.csv", "counts.csv"), compute, page).main(sys.argv[1:])
