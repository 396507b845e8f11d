"""What the commands that measure on the hosts of lab.py have in common: jobs of espalier-bench that join over the cables alone, the rate that raw
sockets reach there, the bounds of the graph, and the bytes of each interface.

Sizes are those of the whole message, or of all ranks' parts together.
"""
import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import lab as cables
from hosts import alone

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from peers import COLLECTIVES, PER_RANK, one_group, part_bytes  # noqa: E402

HANG_S = 600
MIN_RAW_BYTES = 64 << 10  # of less, the shaper's burst would be all
DEADLINE_MS = 60000  # the machine is busy with other things


def begin():
    """Begins a command: ends it where no hosts can be made, as a skipped test does; what it starts ends with it."""
    if reason := cables.refusal():
        print(f"skipped: {reason}")
        sys.exit(77)
    alone()


class Failed(Exception):
    """A job that did not end well, with what it said."""


class Programs:
    """What a build folder has."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.espalier, self.bench = self.build / "tools/espalier", self.build / "communicator/bench/espalier-bench"
        self.raw, self.member = self.build / "tests/cables/raw", self.build / "tests/interfaces/member"


class Bed(cables.Lab):
    """The hosts of a shape with what jobs on them need: a job secret, a folder of caches per host, a file with the cables, and the commands
    `enter HOST COMMAND...` and `rsh HOST COMMAND...`."""

    def __init__(self, programs, shape, per_host=1, **options):
        super().__init__(shape, **options)
        self.programs, self.per_host = programs, per_host
        self.ranks = per_host * len(self.names)

    def __enter__(self):
        with contextlib.ExitStack() as ends:
            self.folder = pathlib.Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-cables-")))
            ends.enter_context(contextlib.closing(super().__enter__()))
            self.secret, self.file, self.enter, self.rsh = (self.folder / name for name in ("secret", "cables.textproto", "enter", "rsh"))
            self.secret.touch(mode=0o600)
            self.secret.write_bytes(os.urandom(32))
            self.file.write_text(self.topology(), encoding="utf-8")
            of_host = "\n".join(f"{name}) pid={pid} ;;" for name, pid in zip(self.names, self.holders))
            self.script(self.enter, f'case $1 in\n{of_host}\nesac\nshift\nexec nsenter -t "$pid" -n -u -m --wd="$PWD" "$@"\n')
            self.script(self.rsh, f'while :; do case $1 in -*) shift ;; *) break ;; esac; done\nhost=$1; shift\nexec {self.enter} "$host" sh -c "$*"\n')
            self.rest = ends.pop_all()
        return self

    def close(self):
        super().__exit__()

    @staticmethod
    def script(path, text):
        path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        path.chmod(0o755)

    def __exit__(self, *_):
        self.rest.close()

    def topology(self):
        """The cables as a topology file whose ranks are the hosts."""
        hosts = "".join(f'node {{ node: {number} host: "{name}" }}\n' for number, name in enumerate(self.names))
        return f'name: "{self.shape}"\nranks: {len(self.names)}\n{hosts}' + "".join(
            f'cable {{ end {{ host: "{self.names[cable.a]}" interface: "{cable.a_name}" }} end {{ host: "{self.names[cable.b]}" interface: "{cable.b_name}" }} }}\n'
            for cable in self.cables)

    def clear_caches(self):
        for host in range(len(self.names)):
            subprocess.run(["rm", "-rf", self.cache(host)], check=True)
            self.cache(host).mkdir()

    def cache(self, host):
        return self.folder / f"cache{host}"

    def variables(self, rank):
        """What a rank is started with, by hand on each host."""
        cache = self.cache(rank // self.per_host)
        cache.mkdir(exist_ok=True)
        return {"ESPALIER_CABLES": "1", "RANK": str(rank), "WORLD_SIZE": str(self.ranks), "ESPALIER_SECRET_FILE": str(self.secret), "XDG_CACHE_HOME": str(cache)}

    def job_texts(self, words):
        """Starts a program as all ranks. Returns what each printed."""
        return together([(self.on(rank // self.per_host, words), self.variables(rank)) for rank in range(self.ranks)])

    def bench(self, collectives, bytes_list, *words):
        """The rows of espalier-bench, as {(collective, whole bytes): row}; of a barrier the bytes are 0. Every result was compared with the reference."""
        found = {}
        for mine in filter(None, ([each for each in collectives if (each in PER_RANK) == is_part] for is_part in (False, True))):
            sizes = {part_bytes(self, mine[0], size): size for size in bytes_list}
            for row in json.loads(self.job_texts([self.programs.bench, "--collective", ",".join(mine), "--bytes", ",".join(map(str, sizes)), "--start", "warm",
                                            "--deadline", DEADLINE_MS, "--format", "json", *words])[0]):
                if row["wrong"]:
                    raise Failed(f"{row['wrong']} wrong results of {row['collective']}, {row['bytes']} bytes, on {self.shape}")
                found[row["collective"], sizes.get(row["bytes"], 0)] = row
        return found

    def run(self, collectives, bytes_list, algorithm, repeat):
        """The same rows by `espalier run --cables`: nodes instead of ranks, a schedule of this algorithm."""
        found = {}
        for collective in collectives:
            sizes = {part_bytes(self, collective, size): size for size in bytes_list}
            words = [self.programs.espalier, "run", "--cables", self.file, "--collective", collective, "--algorithm", algorithm, "--links", "hop-by-hop",
                     "--launch-prefix", f"{self.enter} {self.names[0][:-1]}%r", "--repeat", repeat, "--deadline", DEADLINE_MS, "--format", "json"]
            [text] = together([([*words, "--bytes", ",".join(map(str, sizes))], {})])
            one = json.loads(text)
            for schedule in one.get("schedules", [one]):
                for run in schedule["runs"]:
                    found[collective, sizes[run["bytes"]]] = {"warm_s": run["times_s"], "algorithm": schedule["algorithm"]}
        return found

    def raw_rate(self, size, rounds=3):
        """Bytes per second that sockets reach when `size` bytes go over all cables at once, both ways: the median of all directions and rounds."""
        ends = [[] for _ in self.names]
        for cable in self.cables:
            ends[cable.a].append(cable.a_name)
            ends[cable.b].append(f"{self.link_local(cable.a, cable.a_name)}%{cable.b_name}")
        texts = together([(self.on(host, [self.programs.raw, rounds, max(MIN_RAW_BYTES, int(size)), *mine]), {}) for host, mine in enumerate(ends)])
        rates = sorted(float(line.split()[1]) for text in texts for line in text.splitlines())
        return rates[len(rates) // 2]

    def link_local(self, host, interface):
        text = cables.checked(self.on(host, ["ip", "-j", "-6", "address", "show", "dev", interface, "scope", "link"]))
        return json.loads(text)[0]["addr_info"][0]["local"]


def together(commands):
    """Runs (words, variables) side by side. Returns what each printed; Failed if one ended badly."""
    with contextlib.ExitStack() as ends:
        running = []
        for words, variables in commands:
            errors = ends.enter_context(tempfile.TemporaryFile("w+"))
            process = ends.enter_context(subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                                                          env={**os.environ, **variables}))
            ends.callback(process.kill)
            running.append((process, errors))
        texts, bad = [], []
        for number, (process, errors) in enumerate(running):
            try:
                texts.append(process.communicate(timeout=HANG_S)[0])
            except subprocess.TimeoutExpired:
                raise Failed(f"process {number} hung for {HANG_S} s: {commands[number][0]}") from None
            errors.seek(0)
            if process.returncode:
                bad.append(f"process {number}: exit status {process.returncode}: {errors.read().strip()[-500:]}")
    if bad:
        raise Failed("\n".join(bad))
    return texts


def distances(edges, hosts):
    """Hops between hosts."""
    hops = [[0 if a == b else hosts for b in range(hosts)] for a in range(hosts)]
    for a, b in edges:
        hops[a][b] = hops[b][a] = 1
    for middle, a, b in itertools.product(range(hosts), repeat=3):
        hops[a][b] = min(hops[a][b], hops[a][middle] + hops[middle][b])
    return hops


def crossing(collective, inside, ranks, message, part):
    """The bytes that must leave a set of ranks, rank 0 being the root."""
    outside, has_root = ranks - len(inside), 0 in inside
    return {"broadcast": message * has_root, "reduce": message * (not has_root), "allreduce": message,
            "scan": message * any(rank not in inside for rank in range(min(inside), ranks)), "scatter": part * outside * has_root,
            "gather": part * len(inside) * (not has_root), "allgather": part * len(inside), "reduce-scatter": part * outside,
            "all-to-all": part * len(inside) * outside, "barrier": 0}[{"exscan": "scan"}.get(collective, collective)]


def carried(collective, hops, per_host, message, part):
    """The bytes that all directions of all cables must carry together."""
    hosts = len(hops)
    from_root, all_pairs = per_host * sum(hops[0]), per_host ** 2 * sum(map(sum, hops))
    return {"allreduce": 2 * message * (hosts - 1), "scatter": part * from_root, "gather": part * from_root, "all-to-all": part * all_pairs, "barrier": 0,
            **dict.fromkeys(("allgather", "reduce-scatter"), part * per_host * hosts * (hosts - 1))}.get(collective, message * (hosts - 1))


def bound_bytes(edges, per_host, collective, size):
    """The least bytes that the busiest direction of a cable must carry: no schedule takes less than the time that a cable needs for them.

    Two bounds: what must leave a set of hosts, over the cables that leave it, for every set; and what all must carry, over all. Rank r is on host
    r // per_host, and ranks of one host exchange nothing over cables.
    """
    hosts = 1 + max(max(ends) for ends in edges)
    ranks = hosts * per_host
    part = max(8, size // ranks // 8 * 8)  # as part_bytes()
    found = carried(collective, distances(edges, hosts), per_host, size, part) / (2 * len(edges))
    for count in range(1, hosts):
        for inside in itertools.combinations(range(hosts), count):
            cut = sum((a in inside) != (b in inside) for a, b in edges)
            inside_ranks = {rank for rank in range(ranks) if rank // per_host in inside}
            found = max(found, crossing(collective, inside_ranks, ranks, size, part) / cut)
    return found


class Traffic:
    """The bytes that all interfaces have sent since the `with` block began: `cables` {(host, interface): bytes}, and `management`."""

    def __init__(self, lab):
        self.lab, self.cables, self.management = lab, {}, 0

    def __enter__(self):
        self.before = self.lab.counts()
        return self

    def __exit__(self, *_):
        sent = {key: after[0] - self.before[key][0] for key, after in self.lab.counts().items()}
        self.cables = {key: count for key, count in sent.items() if re.match("to[0-9]", key[1])}
        self.management = sum(count for (_, name), count in sent.items() if name.startswith("mgmt"))

    def share(self):
        """The part of all bytes that went over the management network."""
        return self.management / max(1, self.management + sum(self.cables.values()))
