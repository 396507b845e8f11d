"""The page of what peers.py measured: medians, paired ratios with their intervals, ratios to the bound, goals, plots."""
import collections
import hashlib
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages
import peers_profile

RING_BYTES = 8 << 20
TITLES = {"espalier": "Espalier", "shared": "shared", "measured": "measured", "openmpi": "Open MPI", "mpich": "MPICH", "forced": "best forced", "gloo": "Gloo"}
OWN = ("espalier", "shared", "measured")
COLLECTIVES = ("broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather", "reduce-scatter", "all-to-all", "barrier")
PARTS = ("scatter", "gather", "allgather", "reduce-scatter", "all-to-all")
PLOTS = "tests/bench/peers.py --build build --page tests/bench/peers_runs.json --plots build/docs/pictures"
PLOTTED = ("broadcast", "allreduce", "scan", "all-to-all")
SHORT, LONG, BOUND_FROM = 64 << 10, 8 << 20, 16 << 10
# By kind of place, and for sizes from this one on: turns, repetitions per turn, warm-ups per turn, starts. On one machine turns differ more.
BATCHES = {"hosts": {0: (4, 8, 2, "warm,cold"), SHORT: (3, 3, 1, "warm"), LONG: (3, 2, 1, "warm")},
           "machine": {0: (8, 8, 2, "warm,cold"), SHORT: (6, 3, 1, "warm"), LONG: (3, 2, 1, "warm")}}
RESAMPLES = 1000
GREATEST, LEAST = 2, 1  # ratios whose rows a table of the page has
# Time / bound at 8 MiB on the shaped links of 8 hosts; 16 hosts: 0.03 more, 1 MiB: 1.10 times that.
BOUND_GOALS = {"broadcast": 1.03, "reduce": 1.04, "allreduce": 1.05, "scan": 1.03, "exscan": 1.03, "scatter": 1.00, "gather": 1.00,
               "allgather": 1.03, "reduce-scatter": 1.03, "all-to-all": 1.03}


class Cell:
    """What was measured of one place, collective and size: us of each repetition by contestant, in the order of the turns."""

    def __init__(self, key, contestants):
        self.key = key
        self.place, self.collective, size = key.split(" ")
        self.size = int(size)
        self.kind, ranks = self.place.rsplit("-", 1)
        self.ranks = int(ranks)
        self.contestants = contestants
        self.intervals = {}

    def times(self, name, start="warm"):
        return self.contestants.get(name, {}).get(start, [])

    def median(self, name, start="warm"):
        return statistics.median(self.times(name, start))

    def predicted(self):
        """What the measured model predicted, us; None: nothing."""
        return self.contestants.get("measured", {}).get("predicted")

    def fastest(self, start="warm"):
        """The peer with the least median; None: no peer was measured."""
        peers = [name for name in TITLES if name not in OWN and self.times(name, start)]
        return min(peers, key=lambda name: self.median(name, start)) if peers else None

    def ratio(self, start="warm", own="espalier"):
        """Espalier's median / that of the fastest peer."""
        return self.median(own, start) / self.median(self.fastest(start), start)

    def interval(self, start="warm"):
        """Of the ratio: 95 % by a bootstrap over the pairs of repetitions."""
        if start not in self.intervals:
            self.intervals[start] = self.bootstrap(start)
        return self.intervals[start]

    def bootstrap(self, start):
        pairs = list(zip(self.times("espalier", start), self.times(self.fastest(start), start)))
        draw = random.Random(17)
        ratios = sorted(statistics.median(a for a, _ in chosen) / statistics.median(b for _, b in chosen)
                        for chosen in (draw.choices(pairs, k=len(pairs)) for _ in range(RESAMPLES)))
        return ratios[RESAMPLES // 40], ratios[-RESAMPLES // 40 - 1]

    def link_bytes(self):
        """The bytes that must cross one host's link."""
        if self.collective == "allreduce":
            return 2 * (self.ranks - 1) / self.ranks * self.size
        return (self.ranks - 1) / self.ranks * self.size if self.collective in PARTS else self.size

    def bound_us(self, rings):
        """None: there are no links, or the message passes within the shaper's burst."""
        seconds = rings.get(self.place)
        return statistics.median(seconds) * self.link_bytes() / RING_BYTES if seconds and self.size >= BOUND_FROM else None


def merged(files):
    """Cells in order, rings, and load of the files together."""
    cells, rings, load = {}, {}, []
    for file in files:
        for key, contestants in file["cells"].items():
            for name, measured in contestants.items():
                cell = cells.setdefault(key, {}).setdefault(name, {"by": measured["by"], "warm": [], "cold": []})
                for start in ("warm", "cold"):
                    cell[start] += measured[start]
                if "predicted" in measured:
                    cell["predicted"] = measured["predicted"]
        for place, seconds in file["rings"].items():
            rings.setdefault(place, []).extend(seconds)
        load += file["load"]
    found = [Cell(key, contestants) for key, contestants in cells.items()]
    found = [cell for cell in found if (cell.times("espalier") and cell.fastest()) or cell.predicted() is not None]
    found.sort(key=lambda cell: (cell.kind != "machine", cell.ranks, COLLECTIVES.index(cell.collective), cell.size))
    return found, rings, load


def number(value):
    """Three digits at least."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def size_text(size):
    return pages.size_text(size) if size else "-"


def place_title(place):
    kind, ranks = place.rsplit("-", 1)
    return f"{ranks} hosts, links of 100 Mbit/s" if kind == "hosts" else f"{ranks} processes on one machine"


def median_text(cell, name, start):
    return number(cell.median(name, start)) if cell.times(name, start) else "-"


def by_text(cell):
    forced = cell.contestants.get("forced", {}).get("by", "")
    return cell.contestants["espalier"]["by"], forced or "-"


def table(cells, rings, start, names):
    with_bound = start == "warm" and cells[0].kind == "hosts"
    columns = ["collective", "size", *(TITLES[name] for name in names), "ratio", "95 %", *(["/ bound"] if with_bound else []), "algorithm",
               *(["forced"] if "forced" in names else [])]
    rows = []
    for cell in cells:
        low, high = cell.interval(start)
        bound = cell.bound_us(rings)
        algorithm, forced = by_text(cell)
        rows.append([cell.collective, size_text(cell.size), *(median_text(cell, name, start) for name in names), f"{cell.ratio(start):.2f}",
                     f"{low:.2f} to {high:.2f}", *([f"{cell.median('espalier') / bound:.2f}" if bound else "-"] if with_bound else []), algorithm,
                     *([forced] if "forced" in names else [])])
    return pages.markdown(columns, rows, [name for name in columns if name not in ("collective", "algorithm", "forced")])


def by_size(cells, value):
    """A table of a row per collective and a column per size; a barrier, which has no size, has a line of its own."""
    sizes = sorted({cell.size for cell in cells} - {0})
    found = {(cell.collective, cell.size): f"{value(cell):.2f}" for cell in cells}
    rows = [[name, *(found.get((name, size), "") for size in sizes)] for name in dict.fromkeys(cell.collective for cell in cells if cell.size)]
    barriers = [text for (_, size), text in found.items() if size == 0]
    return ((pages.markdown(("collective", *map(size_text, sizes)), rows, list(map(size_text, sizes))) if sizes else "") +
            "".join(f"\nBarrier: {text}.\n" for text in barriers[:1]))


def extremes(cells, start):
    """The cells of the greatest ratios and of the least ones, in the order of the page."""
    ranked = sorted(cells, key=lambda cell: cell.ratio(start))
    kept = {id(cell) for cell in ranked[:LEAST] + ranked[-GREATEST:]}
    return [cell for cell in cells if id(cell) in kept]


WHOLE_COLUMNS = ("place", "start", "collective", "bytes", *TITLES, "ratio", "low", "high", "time / bound", "predicted", "algorithm", "forced by")


def whole_rows(place, cells, rings):
    """The lines of peers.csv of one place: times in us, medians, and the ratio with its interval."""
    for start in ("warm", "cold"):
        for cell in cells:
            if cell.place != place or not any(cell.times(name, start) for name in TITLES):
                continue
            compared = cell.times("espalier", start) and cell.fastest(start)
            bound = cell.bound_us(rings) if start == "warm" and cell.times("espalier") else None
            ratio = [f"{number:.4f}" for number in (cell.ratio(start), *cell.interval(start))] if compared else ["", "", ""]
            by = [cell.contestants.get(name, {}).get("by", "") for name in ("espalier", "forced")]
            yield [place, start, cell.collective, cell.size, *(f"{cell.median(name, start):.6g}" if cell.times(name, start) else "" for name in TITLES), *ratio,
                   f"{cell.median('espalier') / bound:.4f}" if bound else "", "" if cell.predicted() is None or start == "cold" else f"{cell.predicted():.6g}", *by]


def is_hosts(cell):
    return cell.kind == "hosts"


def is_on_machine(ranks, collectives, sizes):
    return lambda cell: (cell.place == f"machine-{ranks}" and cell.collective in collectives and cell.size in sizes)


# What is to be reached: text, which cells, the measure (shared: the ratio with shared buffers), the limit of a cell.
GOALS = (
    ("8 MiB on hosts: time / bound at most that of the collective", lambda c: is_hosts(c) and c.size == 8 << 20, "bound",
     lambda c: BOUND_GOALS[c.collective] + (0.03 if c.ranks > 8 else 0)),
    ("1 MiB on hosts: at most 1.10 times that", lambda c: is_hosts(c) and c.size == 1 << 20, "bound",
     lambda c: 1.10 * (BOUND_GOALS[c.collective] + (0.03 if c.ranks > 8 else 0))),
    ("from 64 KiB on hosts: at most 1.03 times the fastest peer", lambda c: is_hosts(c) and c.size >= SHORT, "ratio", lambda c: 1.03),
    ("1 and 8 MiB on hosts: at most 1.15 times longer or shorter than the measured model predicted",
     lambda c: is_hosts(c) and c.size in (1 << 20, 8 << 20) and c.predicted() is not None, "predicted", lambda c: 1.15),
    ("8 B and 1 KiB on hosts, and barrier: at most 1.10 times (16 hosts: 1.15)", lambda c: is_hosts(c) and c.size in (0, 8, 1024), "ratio",
     lambda c: 1.15 if c.ranks > 8 else 1.10),
    ("8 B and 1 KiB on hosts, and barrier: faster for at least half", lambda c: is_hosts(c) and c.size in (0, 8, 1024), "ratio", lambda c: 1),
    ("two processes, 8 B broadcast and allreduce: at most 1.10 times", is_on_machine(2, ("broadcast", "allreduce"), (8,)), "ratio", lambda c: 1.10),
    ("two processes, 1 MiB broadcast, allgather, all-to-all, private buffers: at most 1.10 times",
     is_on_machine(2, ("broadcast", "allgather", "all-to-all"), (1 << 20,)), "ratio", lambda c: 1.10),
    ("two processes, 1 MiB broadcast, allgather, all-to-all, shared buffers: at most 1 / 1.5 times",
     is_on_machine(2, ("broadcast", "allgather", "all-to-all"), (1 << 20,)), "shared", lambda c: 1 / 1.5),
    ("two processes, 1 and 8 MiB allreduce and reduce: faster", is_on_machine(2, ("allreduce", "reduce"), (1 << 20, 8 << 20)), "ratio", lambda c: 1),
    ("eight processes, from 1 KiB: at most 1.15 times", lambda c: c.place == "machine-8" and c.size >= 1024, "ratio", lambda c: 1.15),
    ("eight processes, from 64 KiB: faster for at least half", lambda c: c.place == "machine-8" and c.size >= SHORT, "ratio", lambda c: 1),
)


def reached(cell, what, rings, own):
    """What a goal limits."""
    if what == "predicted":
        return max(cell.median(own) / cell.predicted(), cell.predicted() / cell.median(own))
    return cell.ratio(own=own) if what in ("ratio", "shared") else cell.median(own) / cell.bound_us(rings)


# Only `measured` has predictions, and shared buffers are no matter of the model.
NOT_COUNTED = (("espalier", "predicted"), ("measured", "shared"))


def goals(cells, rings):
    rows = []
    for text, belongs, what, limit in GOALS:
        counts, worst = [], None
        for own in ("shared" if what == "shared" else "espalier", "measured"):
            values = [(reached(cell, what, rings, own), cell) for cell in cells
                      if belongs(cell) and cell.times(own) and (own, what) not in NOT_COUNTED and (what not in ("ratio", "shared") or cell.fastest())]
            counts += [str(sum(value <= limit(cell) for value, cell in values)), str(len(values))]
            worst = worst or max(values, key=lambda pair: pair[0] / limit(pair[1]), default=None)
        where = f"{worst[0]:.2f}: {worst[1].collective}, {size_text(worst[1].size)}, {place_title(worst[1].place)}" if worst else "-"
        rows.append([text, *counts, where])
    return pages.markdown(("goal", "held", "cells", "held with the measured model", "cells", "the worst cell"), rows, ("held", "cells", "held with the measured model"))


def peers_of(cells):
    return [name for name in TITLES if any(cell.times(name) for cell in cells)]


def section(place, cells, rings, rows):
    """`rows`: the place's lines of peers.csv."""
    cells = [cell for cell in cells if cell.place == place]
    names = peers_of(cells)
    parts = [f"## {place_title(place)}\n"]
    if cells[0].kind == "hosts":
        rate = RING_BYTES * 8 / statistics.median(rings[place])
        parts.append(f"The raw TCP ring reached {rate:.1f} Mbit/s on each host's link, each way, in the same run.\n")
    lines = [f"- `{name}`: {content['title'].split(',')[0]}, {content['y']['name']}\n" for name, content in plots_of(place, cells, rings)]
    parts += [f"`{PLOTS}` draws:\n\n{''.join(lines)}"] if lines else []
    for start in ("warm", "cold"):
        compared = [cell for cell in cells if cell.times("espalier", start) and cell.fastest(start)]
        if not compared:
            continue
        parts.append(f"### {start.capitalize()} starts\n\nRatios by size:\n")
        parts.append(by_size(compared, lambda cell: cell.ratio(start)))
        bounded = [cell for cell in compared if start == "warm" and cell.bound_us(rings)]
        if bounded:
            parts.append("Time / bound by size:\n\n" + by_size(bounded, lambda cell: cell.median("espalier") / cell.bound_us(rings)))
        if start == "warm":
            parts.append(f"The greatest and the least of {len(compared)} ratios. Medians in us.\n")
            parts.append(table(extremes(compared, start), rings, start, names))
    predicted = [cell for cell in cells if cell.predicted() is not None]
    if predicted:
        parts.append("### Predicted\n\nBy the measured model, for what it chose. Medians of warm starts in us.\n")
        parts.append(predictions(predicted))
    digest = hashlib.sha256(pages.csv_text(WHOLE_COLUMNS, rows).encode()).hexdigest()[:16]
    parts.append(f"`peers.csv` has {len(rows)} rows of this place, with the digest {digest}.\n")
    return "\n".join(parts)


def predictions(cells):
    columns = ("collective", "size", "predicted", "took", "took / predicted", "algorithm")
    return pages.markdown(columns, [[cell.collective, size_text(cell.size), number(cell.predicted()), number(cell.median("measured")),
                                     f"{cell.median('measured') / cell.predicted():.2f}", cell.contestants["measured"]["by"]] for cell in cells], columns[1:5])


HOW = """
- **Contestants.** Espalier: a program that joins its job under `espalier launch`, optimized at its link (docs/using.md); `auto` chooses, nothing is tuned. *Shared*, on one machine: the same with buffers of
`espalier::allocate()`. *Measured*: with the model that `espalier measure` fitted to the place just before. Open MPI and MPICH: as they come. *Best forced*, on hosts: the
algorithm and segment size of one of both that were the best for the collective and the size in a search on an idle machine
(`tests/bench/peers_forced.toml`). Gloo: its tcp; it has no scan and no exscan, and its reduce-scatter has another interface.
- **Hosts.** Network namespaces, whose links a token bucket shapes (`tests/bench/lab.sh`). TCP has the congestion control cubic.
- **Waiting.** If ranks exceed the processors, Open MPI has `mpi_yield_when_idle`, and MPICH a preloaded function that yields. Otherwise each
rank is pinned to a processor of its own.
- **Protocol.** Warm starts come directly after a barrier, cold starts after a pause of 3 ms. All ranks meet in another barrier, then
every result is checked. A repetition takes as long as its slowest rank. Contestants take turns. A turn is a batch of repetitions in new
processes: SIZES REPETITIONS. There are at least TURNS_HOSTS turns between hosts. On one machine, where turns differ more, there
are TURNS_MACHINE.
- **Size.** The bytes of the whole message. Broadcast, reduce, allreduce, scan and exscan: what each rank has. The others: all parts that one
rank gives or gets, each of at least 8 B.
- **Ratio.** Espalier's median by the median of the fastest peer, forced ones included; below 1, Espalier is faster. Its 95 % interval is a
bootstrap over pairs: the same repetition of the same turn of both.
- **Bound.** The bytes that must cross one host's link, at the rate that a raw TCP ring (`tests/bench/ring.c`) reached in the same run, from
16 KiB. Shorter messages pass within the burst of the shaper.
"""


WHY = """
- **Short messages between hosts.** All hosts share the processors of this machine, so a collective takes as long as the work of all its
messages, and of the messages of the barriers around it. Most of that work is [the kernel's](#where-the-time-goes), for each send and
for each receive that is acknowledged at once; [costs.md](costs.md) counts what the library adds. Broadcast, barrier, scatter and gather take the fewest
messages there, and sums and scans fewer with more hosts ([communicator.md](../communicator.md#which-schedule-runs)). The others take as many
as those of the peers, between ranks that the barrier does not connect.
- **16 and 64 KiB between hosts.** Exchanges of many short steps, for the same reason: each step waits for the work of all hosts' messages. A
gather of a peer can take less time than the root's link: the other ranks' sends count as done when the system has them, and the root leaves
the barrier after them, when its parts have come. Espalier's barrier lets the root go first.
- **Eight processes on two processors.** A collective takes as long as the turns of its ranks: which of them leave the barrier last counts as
much as the schedule. A pipeline of 1 MiB takes longer there than the model predicts, so `auto` takes some where a tree is faster.
- **8 B between two processes.** The processes of a batch are new, and it has CALLS calls, so much of a call's code is not in the
processor's caches yet.
- **Long messages on one machine.** Open MPI copies them once, by a system call, `process_vm_readv`. Espalier calls the system only to wait:
messages are copied once from memory of `espalier::allocate()`, twice from other memory.
- **Shared buffers of two processes.** In an allgather and an all-to-all a rank also copies its own half. Three copies of half the message
become two, so two thirds of the peers' time are the least that is possible.
"""


PROFILE = """
Samples of all processors while espalier-bench repeats the collective, with the barriers between the repetitions, and without
comparing results. *Kernel* is what it does for sends, receives and waits, and the work of the network that the hosts share.
"""


def batches_in(text):
    """The text with the figures of BATCHES."""
    def listed(kind, index):
        return ", ".join(str(batch[index]) for batch in list(BATCHES[kind].values())[:-1]) + f" and {BATCHES[kind][LONG][index]}"
    repetitions = [batch[1] for batch in BATCHES["hosts"].values()]
    sizes = (f"{repetitions[0]} below {size_text(SHORT)}, {repetitions[1]} below {size_text(LONG)} and {repetitions[2]} from "
             f"{size_text(LONG)}")
    return (text.replace("SIZES REPETITIONS", sizes).replace("TURNS_HOSTS", listed("hosts", 0)).replace("TURNS_MACHINE", listed("machine", 0))
            .replace("CALLS", str(sum(BATCHES["machine"][0][1:3]))))


def profiles(found):
    """Nothing, or the section on what `peers.py --profile` sampled."""
    if not found:
        return ""
    columns, rows = ("place", "collective", "size", *(f"{part}, %" for part in peers_profile.PARTS)), []
    for key, profile in found.items():
        place, collective, size = key.split(" ")
        rows.append([place, collective, size_text(int(size)), *(profile["shares"][part] for part in peers_profile.PARTS)])
    commits = ", ".join(sorted({profile["commit"] for profile in found.values()}))
    return f"\n## Where the time goes\n\n{pages.wrapped(f'{PROFILE} Sampled at {commits}.')}\n\n" + pages.markdown(columns, rows, columns[2:])


def measured_at(cells, commits):
    """How many cells of each place were measured at which commit: the commits of many cells first."""
    parts = []
    for place in dict.fromkeys(cell.place for cell in cells):
        of = collections.Counter(commits[cell.key] for cell in cells if cell.place == place)
        parts.append(f"{place}: " + ", ".join(f"{count} at {commit}" for commit, count in of.most_common()))
    return "; ".join(parts)


def page(files):
    """The page, and the text of peers.csv: everything that was measured, a line for each place, start, collective and size."""
    cells, rings, load = merged(files)
    machine = files[-1]["machine"]
    commits = {key: commit for file in files for key, commit in file["commits"].items()}
    versions = ", ".join(f"{name} {re.sub(r'-.*', '', machine[name])}" for name in ("Open MPI", "MPICH", "Gloo", "libfabric") if name in machine)
    start = f"""Written by `tests/bench/peers.py --page tests/bench/peers_runs.json >docs/results/peers.md`, from what
        `tests/bench/peers.py --out tests/bench/peers_runs.json` measured, on one machine with {machine['processors']} processors
        ({machine['model']}), Linux {re.sub(r'-.*', '', machine['kernel'])}: {versions}. Other work shared the machine. Its load, this work
        included, was {min(load)} to {max(load)}, {statistics.median(load):.1f} in the median. All ranks were in one group of the scheduler, with a
        weight as of nice -10."""
    more = """`tests/bench/peers.py --page tests/bench/peers_runs.json --whole build/tests/bench >build/tests/bench/peers.md` writes every row to
        `build/tests/bench/peers.csv`. This page has the ratios of all rows, and whole rows for the greatest and the least ones. A digest of
        each place's rows makes a test fail if one of them changes."""
    how = f"{batches_in(HOW).rstrip()}\n- **Commits.** How many cells were measured at which commit: {measured_at(cells, commits)}."
    text = "# Espalier next to Open MPI, MPICH and Gloo\n\n" + pages.wrapped(start) + "\n\n" + pages.wrapped(more) + "\n\n" + pages.wrapped(how) + "\n\n## Goals\n\n" + goals(cells, rings)
    text += "\nWhy some are not reached:\n\n" + pages.wrapped(batches_in(WHY)) + "\n"
    text += profiles({key: profile for file in files for key, profile in file.get("profiles", {}).items()})
    rows = {place: list(whole_rows(place, cells, rings)) for place in dict.fromkeys(cell.place for cell in cells)}
    return (text + "".join("\n" + section(place, cells, rings, of) for place, of in rows.items()),
            pages.csv_text(WHOLE_COLUMNS, [row for of in rows.values() for row in of]))


def plot(title, y_name, lines):
    return {"title": title, "x": {"name": "size of the message", "logarithmic": True, "is_bytes": True},
            "y": {"name": y_name, "logarithmic": True, "is_bytes": False}, "lines": lines}


def line(name, cells, value):
    return {"name": TITLES[name], "points": [[cell.size, value(cell)] for cell in cells if cell.times(name)]}


def plots_of(place, cells, rings):
    """(file, plot) of a place: time over size of some collectives, and the ratio to the bound if there is one."""
    cells = [cell for cell in cells if cell.place == place and cell.size]
    for collective in PLOTTED:
        of = [cell for cell in cells if cell.collective == collective]
        if len(of) < 2:
            continue
        names = peers_of(of)
        title = f"{collective}, {place_title(place)}"
        lines = [line(name, of, lambda cell, name=name: cell.median(name)) for name in names]
        yield f"peers-{place}-{collective}.svg", plot(title, "us, median", lines)
        large = [cell for cell in of if cell.size >= SHORT and cell.bound_us(rings)]
        if len(large) > 1:
            lines = [line(name, large, lambda cell, name=name: cell.median(name) / cell.bound_us(rings)) for name in names]
            yield f"peers-{place}-{collective}-bound.svg", plot(title, "time / bound", lines)


def write_plots(files, folder, program):
    folder.mkdir(parents=True, exist_ok=True)
    cells, rings, _ = merged(files)
    for place in dict.fromkeys(cell.place for cell in cells):
        for name, content in plots_of(place, cells, rings):
            drawn = subprocess.run([program], input=json.dumps(content), capture_output=True, text=True, check=True)
            (folder / name).write_text(drawn.stdout)
