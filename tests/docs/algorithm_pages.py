#!/usr/bin/python3
"""Prints docs/algorithms: a page for each algorithm, when.md; and the tables of docs/algorithms/README.md and README.md.

algorithm_pages.py --write ESPALIER ROOT   writes all of them
algorithm_pages.py --large ESPALIER ROOT GRID   writes only the last part of when.md, from what `auto-grid 101` has printed into the file GRID
algorithm_pages.py --small ESPALIER ROOT AUTO_GRID   compares that part with what `auto-grid 3` prints
algorithm_pages.py --check ESPALIER ROOT   compares them with what would be written now: a sample, or all with ESPALIER_WHOLE=1. That
                                           every algorithm has a page, and every page an algorithm, is always checked. Exit status 1
                                           if something differs.
Every algorithm of `espalier list` needs its words in algorithms.toml; nothing else here names algorithms. Pictures are commands; pictures.py
runs them."""
import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import algorithm_facts as facts
from algorithm_facts import SETTINGS, Wrong, time_text
from pages import count_text, differences, markdown, size_text, wrapped

WORDS = pathlib.Path(__file__).with_name("algorithms.toml")
KEYS = {"what", "from", "source", "limits", "picture", "topology", "options", "sizes"}
CITED = re.compile(r"\[([A-Za-z]+\d\d[a-z]?)\]")
# The papers whose sections, theorems and figures docs/results/papers.md goes through: they are cited with the place.
WITH_PLACES = ("Sanders03", "SST07", "SST09", "DD96", "Bruck96")
PLACE = re.compile(r"\b(sections?|theorems?|lemma|Figs?\.|equation|formula) \d")
BEGIN = "<!-- algorithms: printed by tests/docs/algorithm_pages.py --write -->"
END = "<!-- end of algorithms -->"
ORDERED = ("reduce", "allreduce", "scan", "exscan", "reduce-scatter")  # that combine
MAX_STEPS, MAX_NODES = 2, 8  # of a table of messages
PAGE_STRIDE, RANKING_STRIDE = 8, 13  # of a sample
PLOT = re.compile(r"^(Picture: (\S+) on (\S+), time by size: .*)$", re.M)
WHERE_WON = re.compile(r"\[([\w-]+)\]\([\w-]+\.md\) ([^;|]+)")

CONTENTION = {"none": "no guarantee", "slot": "SLOT", "async": "ASYNC"}

WHEN_HEAD = (
    f"Written by `tests/docs/algorithm_pages.py --write`; a test compares a part of this page, and `ESPALIER_WHOLE=1` all of it. The "
    f"times are those that `espalier explain` predicts from the default model of a fabric, for {len(facts.SIZES)} sizes: the powers of "
    f"two from {size_text(facts.SIZES[0])} to {size_text(facts.SIZES[-1])}. Sizes are those of the whole message; in "
    f"{', '.join(facts.PER_RANK[:-1])} and {facts.PER_RANK[-1]} they are one rank's part. The root is 0, the operator commutes, and nodes "
    f"have the ports that an algorithm needs, except where the first column says otherwise. lambda = 3: a message arrives three sends "
    f"after it left. [choosing.md](../choosing.md) explains the candidates, and [results/choice.md](../results/choice.md) compares some "
    f"of these choices with simulation.",
    "The second table of each collective has the algorithms that are never taken there: how near to the fastest they come, and where. The "
    "last part of this page has more topologies.")


LARGE = "## On more topologies"
USUAL = ("default", "routed", "multiport", "commutes")
LARGE_SIZES = [8 ** power for power in range(1, 10)]  # kSizes of auto_grid.cc
LARGE_HEAD = (
    "A cell is a collective on one topology for one size: the powers of 8 from 8 B to 128 MiB. `tests/docs/auto_grid.cc` prints every cell, "
    "`{command}`, and `tests/docs/algorithm_pages.py --large` this table from it: {cells} cells on {topologies} topologies of 2 to 101 "
    "ranks. It has `complete:N` of every number of ranks, and of the numbers in `kRanks` the ring, the mesh, the torus, the hosts and the "
    "crossbar next to a square; grids of three dimensions, hypercubes, dragonflies, fat trees and the files of examples/topologies. "
    "Schedules hop by hop, also with one send per step, are those of `kHopByHopRanks` and `kSingleSendRanks`. Each cell has nodes of each "
    "port model, operators that commute, and operators that do not (in order); a reduce also has the root in the middle. The model is the "
    "default one; `complete:N` and hosts of `kModelRanks` also have lambda = 3 and the models of memory and of a network that programs "
    "choose by.",
    "These are the algorithms that are taken in fewer than 1 % of their collective's cells, or never:")


def listed(names):
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def by_collective(facts_by_collective):
    """"broadcast and reduce: fact.", for each fact."""
    found = {}
    for collective, fact in facts_by_collective:
        found.setdefault(fact, []).append(collective)
    return [f"{listed(collectives)}: {fact}." for fact, collectives in found.items()]


def link(algorithm):
    return f"[{algorithm}]({algorithm}.md)"


def range_text(first, last):
    """The sizes from SIZES[first] to SIZES[last]."""
    low, high = size_text(facts.SIZES[first]), size_text(facts.SIZES[last])
    if first == 0:
        return "every size" if last + 1 == len(facts.SIZES) else f"to {high}"
    if last + 1 == len(facts.SIZES):
        return f"from {low}"
    return low if first == last else f"{low} to {high}"


def winners_text(sizes):
    """"[a](a.md) to 64 KiB; [b](b.md) from 128 KiB", of a ranking's sizes."""
    runs = []
    for number, size in enumerate(sizes):
        algorithm = size["ranking"][0]["algorithm"]
        if not runs or runs[-1][0] != algorithm:
            runs.append([algorithm, number, number])
        runs[-1][2] = number
    if len(sizes) == 1:
        return link(runs[0][0]) + " always"
    return "; ".join(f"{link(algorithm)} {range_text(first, last)}" for algorithm, first, last in runs)


NAME = "tests/docs/algorithms.toml"


class Words:
    """algorithms.toml, checked against the list of algorithms: `entries` of `espalier list`."""

    def __init__(self, entries, papers):
        self.of = tomllib.loads(WORDS.read_text())
        self.papers = papers
        algorithms = {entry["algorithm"] for entry in entries}
        for entry in entries:
            if entry["algorithm"] not in self.of:
                raise Wrong(f"{NAME}: no words for the algorithm '{entry['algorithm']}'; expected a table [{entry['algorithm']}] with "
                            f"`what` and `from`")
        for algorithm, words in self.of.items():
            if algorithm not in algorithms:
                raise Wrong(f"{NAME}: [{algorithm}] is none of the algorithms of `espalier list`; expected its name there, or no table")
            if unknown := set(words) - KEYS:
                raise Wrong(f"{NAME}: [{algorithm}] has the unknown key '{min(unknown)}'; expected {listed(sorted(KEYS))}")
            if not words.get("what", "").strip():
                raise Wrong(f"{NAME}: [{algorithm}] has no `what`")
            self.check_known(algorithm, words["what"] + words.get("source", ""))
        self.check_cited(entries)
        for algorithm in self.of:
            self.check_from(algorithm, [entry["collective"] for entry in entries if entry["algorithm"] == algorithm])

    def check_known(self, algorithm, text):
        for cited in CITED.findall(text):
            if f"[{cited}]" not in self.papers:
                raise Wrong(f"{NAME}: [{algorithm}] cites [{cited}]; expected a paper of docs/algorithms/README.md")

    def check_cited(self, entries):
        """Every collective of every algorithm has a citation."""
        missing = {}
        for entry in entries:
            if not CITED.search(self.origin(entry["algorithm"], entry["collective"])):
                missing.setdefault(entry["algorithm"], []).append(entry["collective"])
        if missing:
            raise Wrong(f"{NAME}: {'; '.join(f'[{name}] has no `from` for {listed(found)}' for name, found in missing.items())}; expected "
                        f"the publication that it comes from, as docs/algorithms/README.md cites it, like '[SST09], section 4.1'")

    def check_from(self, algorithm, collectives):
        """Citations are known, and have the place if the paper is one of WITH_PLACES; no other collective has one."""
        given = self.of[algorithm].get("from", {})
        for collective in given if isinstance(given, dict) else ():
            if collective not in (*collectives, "others"):
                raise Wrong(f"{NAME}: [{algorithm}] has from.{collective}, and no {collective}; expected {listed(collectives)} or others")
        for collective in collectives:
            text = self.origin(algorithm, collective)
            self.check_known(algorithm, text)
            for paper, place in re.findall(r"\[(\w+)\]([^\[]*)", text):
                if paper in WITH_PLACES and not PLACE.search(place):
                    raise Wrong(f"{NAME}: [{algorithm}] is from [{paper}], and it does not say where; expected the section, theorem or "
                                f"figure, like '[{paper}], section 2'")

    def origin(self, algorithm, collective):
        """The publication that the algorithm comes from, for one of its collectives."""
        given = self.of[algorithm].get("from", "")
        return given if isinstance(given, str) else given.get(collective, given.get("others", ""))


class Pages:
    def __init__(self, program, root):
        self.espalier = facts.Espalier(program)
        self.root = pathlib.Path(root).resolve()
        self.folder = self.root / "docs/algorithms"
        self.entries = self.espalier.list
        self.collectives = list(dict.fromkeys(entry["collective"] for entry in self.entries))
        self.names = list(dict.fromkeys(entry["algorithm"] for entry in self.entries))
        index = self.folder / "README.md"
        words = Words(self.entries, index.read_text() if index.exists() else "")
        self.words, self.origin = words.of, words.origin
        self.sources = {}  # "file:function" by algorithm and collective, or "collective" if a function makes its rows
        row = re.compile(r'\brow\(\s*"([\w-]+)",\s*(?:Collective::k)?(\w+),\s*(\w+)')
        for file in sorted(file for folder in ("algorithms", "search") for file in (self.root / "collectives" / folder).rglob("*.cc")):
            for name, collective, function in row.findall(file.read_text()):
                named = re.sub("(?<=[a-z])(?=[A-Z])", "-", collective).lower()
                self.sources[name, named] = f"{file.relative_to(self.root).as_posix()}:{function}"

    def entries_of(self, name):
        return [entry for entry in self.entries if entry["algorithm"] == name]

    # --- when.md ---

    def pairs(self):
        return [(setting, collective) for collective in self.collectives for setting in SETTINGS if setting.serves(collective)]

    def rank(self, pairs):
        """{pair: sizes of `explain`}"""
        return dict(zip(pairs, in_parallel(lambda pair: self.espalier.ranking(*pair), pairs)))

    def never_text(self, collective, algorithm, rankings):
        """How near an algorithm that is never taken comes to the fastest."""
        near = None
        for (setting, ranked), sizes in rankings.items():
            for size in sizes if ranked == collective else ():
                for one in size["ranking"]:
                    if one["algorithm"] == algorithm and (near is None or one["times_best"] < near[0]):
                        near = one["times_best"], setting, size
        if near is None:
            return "a candidate on none of these topologies"
        ratio, setting, size = near
        where = f"on {setting.name}" + (f", {size_text(size['bytes'])}" if collective != "barrier" else "")
        if ratio <= 1:
            return f"as fast as {link(size['ranking'][0]['algorithm'])}, which comes first in the list, {where}"
        times = f"{ratio:.2f}" if ratio >= 1.005 else "less than 1.01"
        return f"{times} times the fastest, {where}"

    def when(self, rankings):
        text = "# When each algorithm wins\n\n" + "\n\n".join(map(wrapped, WHEN_HEAD)) + "\n"
        for collective in self.collectives:
            where = {}
            for (setting, ranked), sizes in rankings.items():
                if ranked == collective:
                    where.setdefault(winners_text(sizes), []).append(setting.name)
            rows = [("; ".join(names), won) for won, names in where.items()]
            text += f"\n## {collective}\n\n" + markdown(("where", "the fastest"), rows)
            taken = {found[0] for _, won in rows for found in WHERE_WON.findall(won)}
            never = [entry["algorithm"] for entry in self.entries if entry["collective"] == collective
                     and entry["algorithm"] not in taken]
            if never:
                text += "\n" + markdown(("never taken", "nearest"),
                                     [(link(name), self.never_text(collective, name, rankings)) for name in never])
            text += "".join(f"\n{line}\n" for line in self.plots(collective))
        return text + self.kept_large()

    def plots(self, collective):
        return [setting.plot_command(collective) for setting in SETTINGS if setting.plot and collective != "barrier"]

    def large(self, lines):
        """The last part of when.md, and {(collective, algorithm): (cells, the first of them)}, from the lines of auto_grid.cc."""
        cells, taken, first, topologies = collections.Counter(), collections.Counter(), {}, set()
        for model, topology, links, ports, order, root, collective, row in csv.reader(lines):
            topologies.add(topology)
            cells[collective] += len(row.split())
            where = [f"`{topology}`", *(word for word in (links, ports, order, model) if word not in USUAL)]
            where += [f"root {root}"] * (root != "0")
            for size, algorithm in zip(LARGE_SIZES, row.split()):
                taken[collective, algorithm] += 1
                first.setdefault((collective, algorithm), ", ".join([*where, *[size_text(size)] * (collective != "barrier")]))
        rows = []
        for entry in self.entries:
            key = entry["collective"], entry["algorithm"]
            if taken[key] * 100 < cells[key[0]]:
                rows.append((*key, f"{taken[key]} of {cells[key[0]]}", first.get(key, "")))
        head = LARGE_HEAD[0].format(command="build/tests/docs/auto-grid 101 examples/topologies", cells=f"{sum(cells.values()):,}",
                                    topologies=len(topologies))
        text = f"\n{LARGE}\n\n{wrapped(head)}\n\n{LARGE_HEAD[1]}\n\n" + markdown(("collective", "algorithm", "taken", "first"), rows)
        return text, {key: (taken[key], first[key]) for key in taken}

    def kept_large(self):
        """The last part of when.md as it is."""
        _, mark, text = (self.folder / "when.md").read_text().partition(f"\n{LARGE}\n")
        return mark + text

    # --- the pages ---

    def example(self, name):
        """The picture's schedule: (topology, collective, options)."""
        entry, words = self.entries_of(name)[0], self.words[name]
        return words.get("topology", self.topologies(entry)[0]), entry["collective"], words.get("options", own_run_length(entry))

    def topologies(self, entry):
        known = facts.TOPOLOGIES.get(entry["topologies"])
        if known is None:
            raise Wrong(f"tests/docs/algorithm_facts.py:TOPOLOGIES has no cases for '{entry['topologies']}', which "
                        f"{entry['algorithm']} is for")
        small, sizes = known
        if entry["needs_odd_ranks"]:
            return "complete:7", ("complete:7", "complete:15", "complete:63")
        return small, tuple(self.words[entry["algorithm"]].get("sizes", sizes))

    def picture(self, name):
        topology, collective, options = self.example(name)
        return (f"Picture: {collective} by {name} on {topology}: `espalier compile --topology {topology} --collective {collective} "
                f"--algorithm {name}{' ' + options if options else ''} -o a.esp && espalier draw a.esp --svg {name}.svg "
                f"--show {self.words[name].get('picture', 'trees')}`\n")

    def period_text(self, name):
        file = f"picture-{name}.esp"
        topology, collective, options = self.example(name)
        if refusal := self.espalier.compile(file, topology, collective, name, options):
            raise Wrong(f"{collective} by {name} on {topology}: {refusal}")
        small = self.espalier.show(file, facts.WINDOW_BLOCKS)
        larger = small
        if small.facts["cuts_messages"]:
            larger = self.espalier.show(file, small.facts["blocks"] + 1)
        text = ""
        phases = facts.period(small, larger)
        for phase, first, length, repeats in phases:
            shown = min(length, MAX_STEPS)
            of = f"Phase {phase + 1}: " if len(phases) > 1 else ""
            whole = count_text(length, "step")
            if repeats:
                whole = f"{'one' if of else 'One'} period of {whole}, N = {small.facts['blocks']}"
            cells = {}
            for node, one in small.messages(phase):
                data = small.data_text(one)
                word = f"{'to' if one['kind'] == 'send' else 'from'} {one['peer']}" + (f": {data}" if data else "")
                cells.setdefault((node, one["step"]), []).append(word)
            rows = []
            for program in small.programs:
                node = program["node"]
                rows.append((str(node) if node < small.facts["ranks"] else f"{node} (router)",
                             *("<br>".join(cells.get((node, step), ())) for step in range(first, first + shown))))
            notes = [f"the first {count}" + noun for count, of_all, noun in ((shown, length, ""), (MAX_NODES, len(rows), f" of {len(rows)} nodes"))
                     if count < of_all]
            text += f"\n{of}{whole}{'; ' * bool(notes)}{', '.join(notes)}.\n\n"
            text += markdown(("rank", *(f"step {step}" for step in range(first, first + shown))), rows[:MAX_NODES])
        return text

    def steps_text(self, name):
        rows, refusals, schedules = [], [], {}
        sizes = self.topologies(self.entries_of(name)[0])[1]
        for entry in self.entries_of(name):
            cells = []
            for topology in sizes:
                file = f"steps-{entry['collective']}-{name}.esp"
                if refusal := self.espalier.compile(file, topology, entry["collective"], name, own_run_length(entry)):
                    cells.append("-")
                    refusals.append(f"- {entry['collective']}, `{topology}`: {refusal}.")
                    continue
                schedule = self.espalier.show(file)
                schedules[entry["collective"], topology] = schedule
                cells.append(f"{schedule.steps} (bound {schedule.bound})")
                if topology == sizes[1]:
                    schedules[entry["collective"]] = self.espalier.show(file, facts.WINDOW_BLOCKS)
            rows.append((entry["collective"], entry["summary"].partition(": ")[2] or entry["summary"], *cells))
        text = markdown(("collective", "steps", *(f"`{topology}`" for topology in sizes)), rows)
        return text + ("\n" + "\n".join(refusals) + "\n" if refusals else ""), schedules

    def cost_text(self, name, schedules):
        topology = self.topologies(self.entries_of(name)[0])[1][1]
        rows = []
        for entry in self.entries_of(name):
            collective = entry["collective"]
            if collective not in schedules:
                continue
            cells = [facts.cost_text(schedules[collective], collective)]
            sizes = {size["bytes"]: size["ranking"][0] for size in
                     self.espalier.ranking(facts.Setting(topology), collective, name, facts.PRINTED_SIZES)}
            for size in facts.PRINTED_SIZES:
                one = sizes.get(0 if collective == "barrier" else size)
                if one is None or (collective == "barrier" and size > facts.PRINTED_SIZES[0]):
                    cells.append("-")
                    continue
                parameters = one["candidate"].removeprefix(name).removeprefix(", ")
                chosen = [parameters] if parameters else []
                if schedules[collective].facts["cuts_messages"]:
                    chosen.append(f"N = {one['blocks']}")
                cells.append(time_text(one["predicted_ps"]) + (f" ({', '.join(chosen)})" if chosen else ""))
            rows.append((collective, *cells))
        return f"On `{topology}`:\n\n" + markdown(("collective", "cost", *map(size_text, facts.PRINTED_SIZES)), rows)

    def wins_text(self, name, when):
        ranges, rows, topologies = {}, {}, set()
        for collective, where, algorithm, sizes in wins(when):
            if algorithm == name:
                ranges.setdefault((collective, where), []).append(sizes)
                topologies.add((collective, where))
        for (collective, where), sizes in ranges.items():
            rows.setdefault((collective, ", ".join(sizes)), []).append(where)
        lines = {}
        for (collective, sizes), where in rows.items():
            lines.setdefault(collective, []).append(f"{sizes} on {', '.join(where)}")
        lines = [f"{collective}: {'; '.join(found)}" for collective, found in lines.items()]
        lines += [f"{collective}: never; {nearest}" for collective, algorithm, nearest in never(when) if algorithm == name]
        text = "".join(wrapped(f"- {line}") + "\n" for line in lines)
        for line, collective, topology in PLOT.findall(when):
            if (collective, f"`{topology}`") in topologies:
                return f"{text}\n{line}\n"
        return text

    def limits_text(self, name, schedules):
        entries = self.entries_of(name)
        measured = [schedule.facts for key, schedule in schedules.items() if isinstance(key, tuple)]
        topologies = entries[0]["topologies"]
        lines = ["Any topology: the fabric routes, or `--links hop-by-hop` forwards." if topologies == "any topology" else
                 f"Only {topologies}."]
        if entries[0]["searched"]:
            lines.append("A host searches for the programs of all nodes together.")
        lines += by_collective((entry["collective"], f"at most {entry['max_ranks']} ranks") for entry in entries if entry["max_ranks"])
        lines += by_collective((entry["collective"], "an odd number of ranks") for entry in entries if entry["needs_odd_ranks"])
        lines += by_collective(self.operator_limits(entries))
        ports = {}
        for fact in measured:
            ports.setdefault(fact["port_model"], []).append(fact["collective"])
        for model, collectives in ports.items():
            whose = f" ({listed(list(dict.fromkeys(collectives)))})" if len(ports) > 1 else ""
            lines.append(f"Ports: {model}{whose}.")
        if topologies != "any topology":
            lines += [f"Links: {text}" for text in by_collective(dict.fromkeys((fact["collective"], CONTENTION[fact["contention"]]) for fact in measured))]
        lines += self.blocks_limits(schedules)
        takes = [(entry, f"takes {listed([f'`{one}`' for one in entry['parameters']])}") for entry in entries if entry["parameters"]]
        lines += by_collective((entry["collective"], text + (f" up to {entry['max_run_length']}" if entry["max_run_length"] else ""))
                               for entry, text in takes)
        return "".join(wrapped(f"- {line}") + "\n" for line in lines + self.words[name].get("limits", []))

    def operator_limits(self, entries):
        for entry in entries:
            if entry["collective"] not in ORDERED:
                continue
            if not entry["needs_commutative"]:
                yield entry["collective"], "the operator need not commute"
            elif entry["collective"] != "reduce":
                yield entry["collective"], "the operator must commute"
            else:
                topology = self.words[entry["algorithm"]].get("topology", self.topologies(entry)[0])
                keeping, own = [], own_run_length(entry)
                file = f"roots-{entry['algorithm']}.esp"
                self.espalier.compile(file, topology, "reduce", entry["algorithm"], own)
                for root in range(self.espalier.show(file).facts["ranks"]):
                    if not self.espalier.compile(file, topology, "reduce", entry["algorithm"], f"--root {root} {own}") and \
                       not self.espalier.show(file).facts["needs_commutative"]:
                        keeping.append(str(root))
                roots = f", except for root {listed(keeping)} of `{topology}`" if keeping else ""
                yield "reduce", f"the operator must commute{roots}"

    def blocks_limits(self, schedules):
        one_block, residues = [], {}
        for key, schedule in schedules.items():
            if not isinstance(key, tuple):
                continue
            if not schedule.facts["cuts_messages"]:
                one_block.append(key[0])
            elif schedule.facts["residue_mod"]:
                residues.setdefault(key[1], (schedule.facts["residue"], schedule.facts["residue_mod"]))
        lines = [f"{listed(list(dict.fromkeys(one_block)))}: N = 1, segments are never cut."] if one_block else []
        if residues:
            each = [f"{residue} mod {modulus} on `{topology}`" for topology, (residue, modulus) in residues.items()]
            lines.append(f"N = {listed(each)}; other N are rounded up.")
        return lines or ["Any N."]

    def source_text(self, name):
        functions = []
        for entry in self.entries_of(name):
            source = self.sources.get((name, entry["collective"]), self.sources.get((name, "collective")))
            if source is None:
                raise Wrong(f"no file of collectives/algorithms and collectives/search has a row for {entry['collective']} by {name}")
            functions.append(wrapped(f"- {entry['collective']}: from {self.origin(name, entry['collective'])}; `{source}`") + "\n")
        more = self.words[name].get("source", "")
        return "".join(functions) + (f"\n{wrapped(more)}\n" if more else "")

    def cheap_parts(self, name, when):
        """The parts of a page for which nothing is run; tests compare those of all pages."""
        collectives = listed([entry["collective"] for entry in self.entries_of(name)])
        head = (f"Written by `tests/docs/algorithm_pages.py --write` from `tests/docs/algorithms.toml`. For {collectives}. "
                f"[README.md](README.md#reading-a-page) explains the tables.")
        return {"head": f"# {name}\n\n{wrapped(head)}\n\n## What it does\n\n{wrapped(self.words[name]['what'].strip())}\n",
                "picture": self.picture(name),
                "wins": f"## When it wins\n\n{self.wins_text(name, when)}",
                "source": f"## Source\n\n{self.source_text(name)}"}

    def page(self, name, when):
        """{file: text} of one algorithm."""
        steps, schedules = self.steps_text(name)
        parts = self.cheap_parts(name, when)
        own = "Runs have the algorithm's own length, `--run-length own`.\n\n" if own_run_length(self.entries_of(name)[0]) else ""
        text = (f"{parts['head']}\n{parts['picture']}\n"
                f"Messages:\n{self.period_text(name)}\n"
                f"## Steps\n\n{own}{steps}\n"
                f"## Cost\n\n{self.cost_text(name, schedules)}\n"
                f"{parts['wins']}\n"
                f"## Limits\n\n{self.limits_text(name, schedules)}\n"
                f"{parts['source']}")
        return {f"docs/algorithms/{name}.md": text}

    # --- the indices ---

    def index_table(self):
        text = ""
        for collective in self.collectives:
            rows = []
            for entry in self.entries:
                if entry["collective"] != collective:
                    continue
                needs = [] if entry["topologies"] == "any topology" else [f"for {entry['topologies']}"]
                if entry["needs_commutative"]:
                    needs.append("the operator must commute" + (" for some roots" if collective == "reduce" else ""))
                if entry["parameters"]:
                    needs.append(f"takes {listed([f'`{one}`' for one in entry['parameters']])}")
                needs += ["searched"] if entry["searched"] else []
                rows.append((link(entry["algorithm"]), entry["summary"], "; ".join(needs)))
            text += f"\n### {collective}\n\n" + markdown(("algorithm", "how it works, and its steps", "needs"), rows)
        return text.lstrip("\n")

    def readme_table(self, when):
        rows = []
        for collective in self.collectives:
            won = {algorithm for ranked, where, algorithm, _ in wins(when) if ranked == collective and family_of(where)}
            names = [entry["algorithm"] for entry in self.entries if entry["collective"] == collective and entry["algorithm"] in won]
            rows.append((f"[{collective}](docs/algorithms/README.md#{collective})",
                         ", ".join(f"[{name}](docs/algorithms/{name}.md)" for name in names),
                         f"[when](docs/algorithms/when.md#{collective})"))
        return markdown(("collective", "the fastest algorithms on 16 ranks", "which where"), rows)


def own_run_length(entry):
    """The option for one schedule of an algorithm that takes a run length; without, there is one for each size of messages."""
    return "--run-length own" if entry["max_run_length"] else ""


def wins(when):
    """(collective, where, algorithm, sizes) of the rows of when.md."""
    for collective, rows in sections(when):
        for where, text in rows:
            for one in where.split("; ") if not where.startswith("[") else ():
                for algorithm, sizes in WHERE_WON.findall(text):
                    yield collective, one, algorithm, sizes.strip()


def never(when):
    """(collective, algorithm, nearest) of the algorithms that are never taken."""
    for collective, rows in sections(when):
        for first, text in rows:
            if found := re.match(r"\[([\w-]+)\]", first):
                yield collective, found.group(1), text


def sections(when):
    for section in re.split(r"^## ", when, flags=re.M)[1:]:
        collective, _, text = section.partition("\n")
        yield collective, re.findall(r"^\| (?!where|never|---)(.+?) \| (.+) \|$", text, re.M)


def family_of(where):
    return next((setting.plot for setting in SETTINGS if setting.plot and setting.name == where), None)


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
        return list(executor.map(function, items))


def with_table(path, printed):
    """The page with another table between the two marks."""
    text = path.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise Wrong(f"{path}: expected the lines '{BEGIN}' and '{END}' once each")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{printed}\n{END}{rest.partition(END)[2]}"


def with_first_table(path, printed):
    """The page with another table from the mark up to an empty line."""
    before, mark, rest = path.read_text().partition(BEGIN + "\n")
    if not mark:
        raise Wrong(f"{path}: expected the line '{BEGIN}'")
    return before + mark + printed + "\n" + rest.partition("\n\n")[2]


def written_now(pages):
    """{file: text} of all that is printed."""
    when = pages.when(pages.rank(pages.pairs()))
    files = {"docs/algorithms/when.md": when}
    for page in in_parallel(lambda name: pages.page(name, when), pages.names):
        files.update(page)
    return files | indices(pages, when)


def indices(pages, when):
    return {"docs/algorithms/README.md": with_table(pages.folder / "README.md", pages.index_table()),
            "README.md": with_first_table(pages.root / "README.md", pages.readme_table(when))}


def sampled_pairs(pages):
    return pages.pairs()[::RANKING_STRIDE]


def check_rows(rankings, when):
    """Whether when.md has the rows of these rankings."""
    rows = dict(sections(when))
    for (setting, collective), sizes in rankings.items():
        won = winners_text(sizes)
        if not any(setting.name in where.split("; ") and text == won for where, text in rows.get(collective, ())):
            raise Wrong(f"docs/algorithms/when.md: not below {collective}: {setting.name}: {won}; --write prints it anew")


def sampled(pages):
    """{file: text} of some pages and of the indices, from when.md as it is; checks some of its rows."""
    when = (pages.folder / "when.md").read_text()
    if [line for line, *_ in PLOT.findall(when)] != [line for collective in pages.collectives for line in pages.plots(collective)]:
        raise Wrong("docs/algorithms/when.md: the lines of pictures are not as printed; --write prints them anew")
    for name in pages.names:
        text = (pages.folder / f"{name}.md").read_text()
        for part, printed in pages.cheap_parts(name, when).items():
            if printed not in text:
                raise Wrong(f"docs/algorithms/{name}.md: the part '{part}' is not as printed; --write prints it anew")
    check_rows(pages.rank(sampled_pairs(pages)), when)
    files = indices(pages, when)
    for page in in_parallel(lambda name: pages.page(name, when), pages.names[::PAGE_STRIDE]):
        files.update(page)
    return files


def difference(pages, files):
    """Lines that say which files are not as printed."""
    for name, text in files.items():
        path = pages.root / name
        yield from differences(name, path.read_text() if path.exists() else "", text)


def strays(pages):
    """Pages that belong to no algorithm, and algorithms without a page."""
    expected = {f"{name}.md" for name in pages.names} | {"README.md", "when.md"}
    there = {path.name for path in pages.folder.glob("*.md")}
    yield from (f"docs/algorithms/{name}: the algorithm has no page" for name in sorted(expected - there))
    yield from (f"docs/algorithms/{name}: no algorithm has this name" for name in sorted(there - expected))


def write_large(pages, lines):
    path = pages.folder / "when.md"
    path.write_text(path.read_text().removesuffix(pages.kept_large()) + pages.large(lines)[0])


def check_large(pages, lines):
    """What the topologies of `lines`, the first of all, take otherwise than the last part of when.md says."""
    kept = {tuple(row[:2]): row[2:] for row in re.findall(r"^\| ([\w-]+) \| ([\w-]+) \| (\d+) of \d+ \| (.*?) *\|$", pages.kept_large(), re.M)}
    _, taken = pages.large(lines)
    if not kept or not taken:
        yield f"docs/algorithms/when.md: no table below '{LARGE}', or no cells; --large prints it anew"
    for key, (cells, first) in taken.items():
        count, where = kept.get(key, (None, None))
        if count is not None and (cells > int(count) or first != where):
            yield f"docs/algorithms/when.md: {key[0]} by {key[1]}: {cells} cells, the first {first}; expected {count}, {where}"


def main(mode, program, root, grid=None):
    pages = Pages(program, root)
    if mode == "--large":
        return write_large(pages, pathlib.Path(grid).read_text().splitlines())
    if mode == "--small":
        run = subprocess.run([grid, "3", pages.root / "examples/topologies"], capture_output=True, text=True, check=True)
        bad = list(check_large(pages, run.stdout.splitlines()))
        print("\n".join(bad) or "the small grid is as the large one")
        return 1 if bad else 0
    if mode == "--write":
        files = written_now(pages)
        for name, text in files.items():
            (pages.root / name).write_text(text)
        for stray in strays(pages):
            print(stray)
        print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")
        return 0
    whole = os.environ.get("ESPALIER_WHOLE", "0") != "0"
    bad = list(strays(pages))
    files = written_now(pages) if whole and not bad else {} if bad else sampled(pages)
    bad += difference(pages, files)
    print("\n".join(bad) or f"{len(files)} files of {len(pages.names)} algorithms are as printed")
    if bad:
        print("tests/docs/algorithm_pages.py --write prints them anew")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) != {"--write": 4, "--check": 4, "--large": 5, "--small": 5}.get("".join(sys.argv[1:2])):
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except Wrong as wrong:
        sys.exit(f"algorithm_pages.py: {wrong}")
