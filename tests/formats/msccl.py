"""Executes MSCCL XML on numbers: thread blocks run their steps in order, connections are first in, first out, and `depid`/`deps` wait.
Written from the format's description (docs/formats.md), without code of the command."""
import random
import xml.etree.ElementTree

import definitions

NAMES = {"broadcast": "broadcast", "reduce": "reduce", "allreduce": "allreduce", "scatter": "scatter", "gather": "gather",
         "allgather": "allgather", "reduce_scatter": "reduce-scatter", "reducescatter": "reduce-scatter", "alltoall": "all-to-all"}
# By reader: thread blocks per GPU, steps per thread block, channels, the spelling of reduce-scatter, whether it reads scatter and gather. All
# store the thread block that a step waits for in a signed byte, offsets in 16 bits, and at most 4095 elements of a file.
READERS = {"rccl": (64, 64, 128, "reducescatter", True), "executor": (1024, 64, 32, "reducescatter", True),
           "msccl": (216, 256, 32, "reduce_scatter", False)}
LOOSEST = 1024, 256, 128
TYPES = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")


class Wrong(Exception):
    """The file breaks a rule of the format, or does not do what its collective must."""


def need(condition, what):
    if not condition:
        raise Wrong(what)


def number(element, name):
    need(name in element.attrib, f"{element.tag} has no {name}")
    try:
        value = int(element.attrib[name])
    except ValueError:
        raise Wrong(f"{element.tag}: {name} is not a number") from None
    need(-1 <= value < 1 << 31 or name in ("minBytes", "maxBytes"), f"{element.tag}: {name} is {value}")
    return value


class Step:
    def __init__(self, element):
        need(element.tag == "step" and element.get("type") in TYPES, f"{element.tag} {element.attrib}")
        self.type = element.get("type")
        self.number, self.count = number(element, "s"), number(element, "cnt")
        self.source = element.get("srcbuf"), number(element, "srcoff")
        self.target = element.get("dstbuf"), number(element, "dstoff")
        self.wait = number(element, "depid"), number(element, "deps")
        self.announces = number(element, "hasdep")
        need(self.announces in (0, 1), f"hasdep is {self.announces}")
        need(self.source[0] in ("i", "o", "s") and self.target[0] in ("i", "o", "s"), f"a buffer of {element.attrib}")
        self.sends = self.type in ("s", "rcs", "rrs", "rrcs")
        self.receives = self.type in ("r", "rcs", "rrs", "rrc", "rrcs")
        self.reads = self.type not in ("r", "rcs", "nop")
        self.writes = self.type in ("r", "rcs", "rrc", "rrcs", "cpy", "re")


class Algorithm:
    """A file, checked as MSCCL's readers do."""

    def __init__(self, text):
        try:
            root = xml.etree.ElementTree.fromstring(text)
        except xml.etree.ElementTree.ParseError as error:
            raise Wrong(str(error)) from None
        need(root.tag == "algo", root.tag)
        for name in ("name", "proto", "coll"):
            need(name in root.attrib, f"algo has no {name}")
        for name in ("minBytes", "maxBytes"):
            number(root, name)
        need(root.get("proto") in ("Simple", "LL", "LL128"), "proto")
        need(root.get("coll") in NAMES, f"coll {root.get('coll')}")
        self.collective = NAMES[root.get("coll")]
        self.ranks, self.chunks, channels = number(root, "ngpus"), number(root, "nchunksperloop"), number(root, "nchannels")
        need(1 <= channels <= LOOSEST[2] and self.ranks >= 1 and self.chunks >= 1, "channels, gpus and chunks")
        places = number(root, "inplace"), number(root, "outofplace")
        need(places in ((0, 1), (1, 0), (1, 1)), f"inplace and outofplace {places}")
        self.in_place = places == (1, 0)
        need([number(gpu, "id") for gpu in root] == list(range(self.ranks)), "ids of gpus")
        self.sizes, self.gpus = [], []
        used = set()
        for gpu in root:
            sizes = {letter: number(gpu, f"{letter}_chunks") for letter in "ios"}
            need(min(sizes.values()) >= 0, f"a buffer of {sizes}")
            self.sizes.append(sizes)
            need([number(tb, "id") for tb in gpu] == list(range(len(gpu))) and len(gpu) <= LOOSEST[0], "ids of thread blocks")
            rows = []
            peers = {}
            for tb in gpu:
                to, source, channel = number(tb, "send"), number(tb, "recv"), number(tb, "chan")
                rank = len(self.gpus)
                need(all(-1 <= peer < self.ranks and peer != rank for peer in (to, source)) and 0 <= channel < channels, f"tb {tb.attrib}")
                for way in ((0, to), (1, source)):
                    if way[1] >= 0:
                        need(way[1] not in peers.setdefault((way[0], channel), set()), "two thread blocks for one connection")
                        peers[way[0], channel].add(way[1])
                used.add(channel)
                steps = [Step(step) for step in tb]
                need([step.number for step in steps] == list(range(len(steps))) and len(steps) <= LOOSEST[1], "numbers of steps")
                for step in steps:
                    need((step.wait[0] < 0) == (step.wait[1] < 0), "depid without deps")
                    need(step.wait[0] < len(gpu) and (step.wait[0] < 0 or step.wait[1] < len(gpu[step.wait[0]])), "a step to wait for")
                    need(0 <= step.count < 72 and (step.type == "nop" or step.count > 0), "cnt")
                    need(not step.sends or to >= 0, "a send without a peer")
                    need(not step.receives or source >= 0, "a receive without a peer")
                    for active, (buffer, offset) in ((step.reads, step.source), (step.writes, step.target)):
                        need(not active or 0 <= offset <= sizes[buffer] - step.count, f"rank {rank}: chunk {offset} of {buffer}")
                rows.append((to, source, channel, steps))
            need(all(len(group) <= 32 for group in peers.values()), "more than 32 peers on a channel")
            for _, _, _, steps in rows:
                for step in steps:
                    if step.wait[0] >= 0:
                        need(rows[step.wait[0]][3][step.wait[1]].announces == 1, "a wait for a step without hasdep")
            self.gpus.append(rows)
        for sizes in self.sizes:
            need(self.collective != "all-to-all" or self.chunks % self.ranks == 0, "chunks of ranks")
            for letter, parted in (("i", self.collective in ("allgather", "gather")),
                                   ("o", self.collective in ("reduce-scatter", "scatter"))):
                factor = self.ranks if parted else 1
                need(sizes[letter] in (0, self.chunks // factor) and self.chunks % factor == 0, f"{letter}_chunks {sizes[letter]}")
        self.root = self.find_root()
        self.spelling, self.channels = root.get("coll"), channels

    def check_reader(self, reader):
        """The limits of one reader, as its source has them."""
        blocks, steps, channels, reduce_scatter, has_scatter_and_gather = READERS[reader]
        need(self.channels <= channels and self.ranks <= 1024, f"{reader}: {self.channels} channels, {self.ranks} GPUs")
        need(self.collective != "reduce-scatter" or self.spelling == reduce_scatter, f"{reader}: coll {self.spelling}")
        need(self.collective not in ("scatter", "gather") or has_scatter_and_gather, f"{reader}: coll {self.spelling}")
        for rank, rows in enumerate(self.gpus):
            need(len(rows) <= blocks, f"{reader}: rank {rank} has {len(rows)} thread blocks")
            need(1 + self.ranks + sum(1 + len(row[3]) for row in rows) <= 4095, f"{reader}: rank {rank} has too many elements")
            for row in rows:
                need(len(row[3]) <= steps, f"{reader}: rank {rank} has {len(row[3])} steps in a thread block")
                need(all(step.wait[0] <= 127 and max(step.source[1], step.target[1]) <= 32767 for step in row[3]), f"{reader}: a number of rank {rank}")

    def find_root(self):
        letter = "i" if self.collective in ("broadcast", "scatter") else "o" if self.collective in ("reduce", "gather") else None
        holders = [rank for rank, sizes in enumerate(self.sizes) if letter and sizes[letter] > 0]
        need(letter is None or len(holders) == 1, f"{len(holders)} ranks could be the root")
        return holders[0] if holders else 0


class Run:
    """One execution. `depth`: steps that a connection holds. `order`: a generator of random numbers, or "first" or "last"."""

    def __init__(self, algorithm, seed=1, depth=8, order=None):
        self.algorithm, self.depth = algorithm, depth
        self.order = order or random.Random(seed)
        self.given = definitions.inputs(algorithm.collective, algorithm.ranks, algorithm.chunks, algorithm.root, seed)
        self.memory = {(rank, *self.place(rank, ("i", at))): value for rank, row in enumerate(self.given) for at, value in enumerate(row)}
        self.done = [[0] * len(rows) for rows in algorithm.gpus]
        self.clocks = [[{} for _ in rows] for rows in algorithm.gpus]
        self.published = [[[] for _ in rows] for rows in algorithm.gpus]  # the clock after each step
        self.connections = {}
        self.uses = {}  # of a chunk: (last write, reads since), as (thread block, step)

    def place(self, rank, place):
        """In place, the input is the part of the output that it belongs to, or the other way round."""
        buffer, at = place
        if not self.algorithm.in_place or buffer == "s":
            return place
        parted = {"i": ("allgather", "gather"), "o": ("reduce-scatter", "scatter")}[buffer]
        part = self.algorithm.chunks // self.algorithm.ranks
        return "io", at + (rank * part if self.algorithm.collective in parted else 0)

    def ready(self, rank, tb):
        to, source, channel, steps = self.algorithm.gpus[rank][tb]
        at = self.done[rank][tb]
        if at == len(steps):
            return False
        step = steps[at]
        if step.wait[0] >= 0 and self.done[rank][step.wait[0]] <= step.wait[1]:
            return False
        if step.receives and not self.connections.get((source, rank, channel)):
            return False
        return not step.sends or len(self.connections.get((rank, to, channel), ())) < self.depth

    def touch(self, rank, tb, place, writes):
        """Every two uses of a chunk, one of them a write, must be ordered by waits and messages."""
        clock = self.clocks[rank][tb]
        key = (rank, *self.place(rank, place))
        write, reads = self.uses.get(key, (None, []))
        for other in ([write] if write else []) + (reads if writes else []):
            need(other[0] == tb or clock.get((rank, other[0]), 0) > other[1], f"rank {rank}: nothing orders two uses of {place}")
        use = tb, self.done[rank][tb]
        self.uses[key] = (use, []) if writes else (write, reads + [use])

    def read(self, rank, tb, place):
        self.touch(rank, tb, place, False)
        value = self.memory.get((rank, *self.place(rank, place)))
        need(value is not None, f"rank {rank} reads {place}, which nothing wrote")
        return value

    def write(self, rank, tb, place, value):
        self.touch(rank, tb, place, True)
        self.memory[rank, *self.place(rank, place)] = value % definitions.MODULUS

    def perform(self, rank, tb):
        to, source, channel, steps = self.algorithm.gpus[rank][tb]
        step = steps[self.done[rank][tb]]
        clock = self.clocks[rank][tb]
        joined = []
        if step.wait[0] >= 0:
            joined.append(self.published[rank][step.wait[0]][step.wait[1]])
        values = []
        if step.receives:
            values, its_clock = self.connections[source, rank, channel].pop(0)
            need(len(values) == step.count, f"rank {rank} receives {len(values)} chunks, expected {step.count}")
            joined.append(its_clock)
        for other in joined:
            for key, value in other.items():
                clock[key] = max(clock.get(key, 0), value)
        if step.reads and step.writes:  # all threads of the block move its chunks, in any order
            (a, first), (b, second) = (self.place(rank, place) for place in (step.source, step.target))
            need(a != b or first == second or abs(first - second) >= step.count, f"rank {rank}: a step reads a chunk of {b} that it writes")
        for k in range(step.count if step.type != "nop" else 0):
            here, there = (step.source[0], step.source[1] + k), (step.target[0], step.target[1] + k)
            if step.reads:
                value = self.read(rank, tb, here)
                if step.type == "re":
                    value += self.read(rank, tb, there)
                if step.receives:
                    values[k] = (values[k] + value) % definitions.MODULUS
                else:
                    values.append(value)
            if step.writes:
                self.write(rank, tb, there, values[k])
        self.done[rank][tb] += 1
        clock[rank, tb] = self.done[rank][tb]
        self.published[rank][tb].append(dict(clock))
        if step.sends:
            self.connections.setdefault((rank, to, channel), []).append((values, dict(clock)))

    def run(self):
        everything = [(rank, tb) for rank, rows in enumerate(self.algorithm.gpus) for tb in range(len(rows))]
        while True:
            able = [one for one in everything if self.ready(*one)]
            if not able:
                break
            if self.order in ("first", "last"):
                self.perform(*able[0 if self.order == "first" else -1])
            else:
                self.order.shuffle(able)
                for one in able:
                    if self.ready(*one):
                        self.perform(*one)
        for rank, tb in everything:
            need(self.done[rank][tb] == len(self.algorithm.gpus[rank][tb][3]), f"rank {rank}, tb {tb} waits forever")
        need(not any(self.connections.values()), "messages that no step receives")
        right = definitions.outputs(self.algorithm.collective, self.given, self.algorithm.root)
        for rank, row in enumerate(right):
            for at, value in enumerate(row):
                need(self.memory.get((rank, *self.place(rank, ("o", at)))) == value,
                     f"rank {rank} has another result than {self.algorithm.collective} defines")


def execute(text, least_depth=1, reader=None):
    """Raises Wrong, or returns the algorithm: every order that is tried gives the right results, and `reader` takes it."""
    algorithm = Algorithm(text)
    if reader:
        algorithm.check_reader(reader)
    for seed, depth, order in ((1, 8, None), (2, least_depth, None), (3, 8, None), (4, least_depth, "first"), (5, 8, "last")):
        Run(algorithm, seed, depth, order).run()
    return algorithm
