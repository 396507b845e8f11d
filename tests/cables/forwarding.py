#!/usr/bin/python3
"""What a user would do instead: the kernel of each host forwards along static routes, and Open MPI, MPICH and Gloo run over it; next to Espalier
over the same cables, in turns: docs/results/switchless.md.

forwarding.py --write BUILD [--shapes ..] [--turns N]   measures, replaces the rows of these shapes in forwarding.csv, and writes the page
forwarding.py --check BUILD                             one cell, once, with every library that is there; compares the page with the record
forwarding.py --page                                    writes the page from the record
--nodes ALGORITHM takes `espalier run --cables` for Espalier, with nodes in place of ranks; the record says so.
"""
import argparse
import contextlib
import pathlib
import sys

import measure
from measure import Bed, Failed, Programs, Traffic, bound_bytes

import lab as cables
import peers
import peers_page

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

RECORD, PAGE = pathlib.Path(__file__).resolve().parent / "forwarding.csv", pages.RESULTS / "switchless.md"
COLUMNS = ("shape", "collective", "bytes", "contestant", "by", "seconds", "raw bytes/s")
MBITS, LARGE = 50, 8 << 20
SHAPES, COLLECTIVES, SIZES = ("ring4", "mesh3x3", "line4"), ("allreduce", "allgather"), (8, LARGE)
# Times of the fastest of the others / those of Espalier, at least.
GOALS = {("ring4", LARGE): (1.5, 1.5), ("mesh3x3", LARGE): (1.5, 1.5), ("line4", LARGE): (1.3, 1.0), **{(shape, 8): (1.0, 1.0) for shape in SHAPES}}
# By collective and library: what may be forced, beside what tests/bench/peers_forced.toml found best behind a switch.
FORCED = {"allreduce": {LARGE: ("openmpi ring", "openmpi segmented_ring/65536", "openmpi segmented_ring/1048576", "openmpi rabenseifner", "mpich reduce_scatter_allgather",
                                "mpich tsp_ring/65536"),
                        8: ("openmpi recursive_doubling", "openmpi rabenseifner", "mpich recursive_doubling")},
          "allgather": {LARGE: ("openmpi ring", "openmpi neighbor", "openmpi recursive_doubling", "mpich ring", "mpich brucks"),
                        8: ("openmpi recursive_doubling", "openmpi bruck", "mpich recursive_doubling", "mpich brucks")}}
REPEAT = {8: (20, 5), LARGE: (3, 1)}  # repetitions and warm-ups of a turn
TITLES = {"espalier": "Espalier", "openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo"}


class Forwarding(peers.Place):
    """Open MPI, MPICH and Gloo on the hosts of a laboratory whose kernels forward. Each host has an address of its own on eth0, which leads to
    nothing; static routes lead to the others over shortest paths, and over all cables to a neighbour in turn."""

    def __init__(self, bed):
        super().__init__(f"{bed.shape}-{bed.ranks}", bed.programs.build)
        self.bed, self.is_lab = bed, True

    def __enter__(self):
        self.folder, self.agent = str(self.bed.folder), self.bed.rsh
        self.hostfile, self.mpich_hosts = (str(self.bed.folder / name) for name in ("hostfile", "mpich"))
        names = self.bed.names
        pathlib.Path(self.hostfile).write_text("".join(f"{name} slots=1\n" for name in names), encoding="utf-8")
        pathlib.Path(self.mpich_hosts).write_text("".join(f"{name}:1\n" for name in names), encoding="utf-8")
        known = self.bed.folder / "hosts"
        known.write_text("127.0.0.1 localhost\n" + "".join(f"{self.address(host)} {name}\n" for host, name in enumerate(names)), encoding="utf-8")
        hops = measure.distances(cables.SHAPES[self.bed.shape], len(names))
        for host in range(len(names)):
            cables.checked(self.bed.on(host, ["sh", "-ec", f"""mount --bind {known} /etc/hosts
                echo 1 >/proc/sys/net/ipv4/ip_forward; for w in all default; do echo 0 >/proc/sys/net/ipv4/conf/$w/rp_filter; done
                for w in /proc/sys/net/ipv4/conf/to*; do echo 0 >$w/rp_filter; done"""]))
            # Without link-local addresses, by which Espalier would find a cable to itself.
            self.bed.ip(host, "link add eth0 type veth peer name end0", *(f"link set {name} addrgenmode none up" for name in ("eth0", "end0")),
                        f"address add {self.address(host)}/32 dev eth0")
            self.bed.ip(host, *(self.route(host, to, hops) for to in range(len(names)) if to != host))
        return self

    @staticmethod
    def address(host):
        return f"10.79.0.{host + 1}"

    def route(self, host, to, hops):
        """The route to another host, by the neighbours' addresses on the cables that lead nearer to it."""
        ways = []
        for number, cable in enumerate(self.bed.cables):
            for mine, other, is_second, name in ((cable.a, cable.b, True, cable.a_name), (cable.b, cable.a, False, cable.b_name)):
                if mine == host and hops[other][to] < hops[host][to]:
                    ways.append((other, f"via {self.bed.ipv4(number, is_second)} dev {name}"))
        # A route with several ways would send each connection over one of them by a hash; the first neighbour's are taken, as a user writes them.
        mine = [way for neighbour, way in ways if neighbour == ways[0][0]]
        return f"route add {self.address(to)}/32 src {self.address(host)} " + (mine[0] if len(mine) == 1 else " ".join(f"nexthop {way}" for way in mine))

    def on(self, host):
        return self.bed.on(host, [])

    def rows(self, contestant, setting, collective, size):
        repeat, warm_up = REPEAT[size]
        return peers.run(self, contestant, setting, collective, [size], (1, repeat, warm_up, "warm"))[0]["warm_s"]


def settings(place, collective, size):
    """(contestant, setting) of everything that is installed here."""
    there = peers.installed(place.build, ("openmpi", "mpich", "gloo"))
    best = peers.forced_setting(place, collective, size)  # of the hosts behind a switch
    forced = dict.fromkeys([*FORCED[collective][size], *([" ".join(best)] if best else [])])
    return [(name, "") for name in there] + [tuple(each.split(" ", 1)) for each in forced if each.split()[0] in there]


def measured(bed, turns, nodes, sizes, collectives, forces=True):
    """The record's rows of one shape; forces: with forced settings, too."""
    found, algorithms = {}, {}
    with Forwarding(bed) as place, Traffic(bed) as traffic:
        raw = {(collective, size): [] for size in sizes for collective in collectives}
        for turn in range(turns):
            for (collective, size), rates in raw.items():
                rates.append(bed.raw_rate(bound_bytes(cables.SHAPES[bed.shape], bed.per_host, collective, size)))
                repeat, warm_up = REPEAT[size]
                runs = [("espalier", ""), *(run for run in settings(place, collective, size) if forces or not run[1])]
                for contestant, setting in runs if turn % 2 == 0 else reversed(runs):
                    if contestant != "espalier":
                        seconds = place.rows(contestant, setting, collective, size)
                    elif nodes:
                        row = bed.run([collective], [size], nodes, warm_up + repeat)[collective, size]
                        seconds = row["warm_s"][warm_up:]
                    else:
                        row = bed.bench([collective], [size], "--warmup", warm_up, "--repeat", repeat)[collective, size]
                        seconds = row["warm_s"]
                    if contestant == "espalier":
                        algorithms[collective, size] = f"{'nodes' if nodes else 'ranks'}: {row['algorithm']}"
                    found.setdefault((collective, size, contestant, setting), []).extend(seconds)
                print(f"{bed.shape}, {collective}, {size}: turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
    print(f"{bed.shape}: {traffic.share():.2%} of the bytes over the management network", file=sys.stderr)
    return [{"shape": bed.shape, "collective": collective, "bytes": size, "contestant": contestant,
             "by": algorithms[collective, size] if contestant == "espalier" else setting,
             "seconds": " ".join(f"{each:.6g}" for each in seconds), "raw bytes/s": f"{pages.median(raw[collective, size]):.0f}"}
            for (collective, size, contestant, setting), seconds in found.items()]


class Cell(peers_page.Cell):
    """The times of one cell: of each library its setting with the least median."""

    def __init__(self, rows):
        self.rows = rows
        of = {}
        for row in rows:
            times = [1e6 * float(each) for each in row["seconds"].split()]
            if row["contestant"] not in of or pages.median(times) < pages.median(of[row["contestant"]]["warm"]):
                of[row["contestant"]] = {"warm": times, "by": row["by"]}
        self.shape, hosts = rows[0]["shape"], cables.size_of(rows[0]["shape"])
        super().__init__(f"{self.shape}-{hosts} {rows[0]['collective']} {rows[0]['bytes']}", of)

    def gain(self):
        """How often Espalier is done while the fastest of the others is done once, with its interval of 95 %."""
        low, high = self.interval()
        return 1 / self.ratio(), 1 / high, 1 / low

    def goal(self):
        return GOALS[self.shape, self.size][COLLECTIVES.index(self.collective)]

    def of_bound(self):
        """Espalier's time / the bound of the graph at the raw sockets' rate."""
        return self.median("espalier") * 1e-6 * float(self.rows[0]["raw bytes/s"]) / bound_bytes(cables.SHAPES[self.shape], 1, self.collective, self.size)


def cells_of(rows):
    found = {}
    for row in rows:
        found.setdefault((row["shape"], row["collective"], row["bytes"]), []).append(row)
    return [Cell(mine) for mine in found.values()]


def page(rows):
    cells = cells_of(rows)
    columns = ("shape", "collective", "size", *TITLES.values(), "fastest other", "gain", "95 %", "goal", "time/bound")
    lines = []
    for cell in cells:
        gain, low, high = cell.gain()
        fastest = cell.fastest()
        by = cell.contestants[fastest]["by"]
        lines.append([cell.shape, cell.collective, pages.size_text(cell.size), *(f"{cell.median(name) / 1e3:.3g}" if cell.times(name) else "-" for name in TITLES),
                      TITLES[fastest] + (f", {by}" if by else ""), f"{gain:.2f}", f"{low:.2f}–{high:.2f}", cell.goal(),
                      f"{cell.of_bound():.3f}" if cell.size >= peers_page.BOUND_FROM else ""])
    reached = sum(cell.gain()[0] >= cell.goal() for cell in cells)
    nodes = sum(cell.contestants["espalier"]["by"].startswith("nodes") for cell in cells)
    ranks = f"In {nodes} rows Espalier's processes are nodes of `espalier run --cables`." if nodes else ""
    return f"""# Next to kernels that forward

Written by `tests/cables/forwarding.py --write build`, with the record [forwarding.csv](../../tests/cables/forwarding.csv).

{pages.wrapped(f'''Espalier sends over the cables, hop by hop; the others over static routes, along which the hosts' kernels forward. Cables have {MBITS} Mbit/s
(`tests/cables/lab.py`); one rank runs per host. Times are medians in ms, with each library's best setting. The bound is the graph's, at the rate of
sockets over all cables at once. {reached} of {len(cells)} goals are reached.
{ranks}''')}

{pages.markdown(columns, lines, (*TITLES.values(), "gain", "goal", "time/bound"))}
Forced settings: `FORCED` of the program, and those of [peers.md](peers.md).
"""


def write(arguments):
    kept = pages.read(RECORD) if RECORD.exists() else []
    for shape in arguments.shapes:
        with Bed(Programs(arguments.write), shape, has_ipv4=True, mbits=MBITS) as bed, peers.one_group():
            rows = measured(bed, arguments.turns, arguments.nodes, arguments.bytes, COLLECTIVES)
        kept = [row for row in kept if row["shape"] != shape or int(row["bytes"]) not in arguments.bytes] + rows
        kept.sort(key=lambda row: (SHAPES.index(row["shape"]), COLLECTIVES.index(row["collective"]), int(row["bytes"])))
        RECORD.write_text(pages.csv_text(COLUMNS, kept), encoding="utf-8")


def check(programs, nodes):
    """One cell, once. Returns what is wrong: nothing, or what the libraries said."""
    with Bed(programs, "line4", has_ipv4=True, mbits=MBITS) as bed:
        rows = measured(bed, 1, nodes, (8,), ("allreduce",), forces=False)
    there = {row["contestant"] for row in rows}
    missing = {"espalier", *peers.installed(programs.build, ("openmpi", "mpich", "gloo"))} - there
    return [f"no times of {name}" for name in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", metavar="BUILD")
    what.add_argument("--check", metavar="BUILD")
    what.add_argument("--page", action="store_true")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--bytes", nargs="+", type=int, choices=SIZES, default=SIZES)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--nodes", metavar="ALGORITHM")
    arguments = parser.parse_args()
    if not arguments.page:
        measure.begin()
    if arguments.write:
        write(arguments)
    bad = check(Programs(arguments.check), arguments.nodes) if arguments.check else []
    if arguments.check:
        bad += pages.differences(str(PAGE), PAGE.read_text(encoding="utf-8"), page(pages.read(RECORD)))
    else:
        PAGE.write_text(page(pages.read(RECORD)), encoding="utf-8")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        try:
            main()
        except (Failed, peers.Failed) as failure:
            sys.exit(f"forwarding.py: {failure}")
