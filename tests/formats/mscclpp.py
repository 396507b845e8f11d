"""Executes MSCCL++ execution plans on numbers: thread blocks run their operations in order, puts are delivered later, channel by channel
in order, and read their source then. Written from the format's description (docs/formats.md), without code of the command."""
import collections
import json
import random

import definitions

NAMES = {"reducescatter": "reduce-scatter", "alltoall": "all-to-all"}
LIMITS = {"ops": 64, "channels": 16, "per operation": 8, "semaphores": 16}
THREAD, ALL = ("pws", "put", "signal", "wait"), ("re", "copy")


class Wrong(Exception):
    """The plan breaks a rule of the executor, or does not do what its collective must."""


def need(condition, what):
    if not condition:
        raise Wrong(what)


class Plan:
    def __init__(self, text, root):
        whole = json.loads(text)
        self.collective = NAMES.get(whole["collective"], whole["collective"])
        self.root, self.in_place, self.gpus = root, whole["inplace"], whole["gpus"]
        need(whole["protocol"] == "Simple" and whole["name"], "protocol and name")
        need([gpu["id"] for gpu in self.gpus] == list(range(len(self.gpus))), "ids of gpus")
        self.ranks = len(self.gpus)
        self.chunks = max(max(gpu["input_chunks"], gpu["output_chunks"]) for gpu in self.gpus)
        self.ports = []  # by rank and channel: (peer, the number of this channel among those with the peer)
        for gpu in self.gpus:
            need(gpu["input_chunks"] > 0 and gpu["output_chunks"] > 0, "the executor divides by the chunks")
            peers = [peer for group in gpu["channels"] for peer in group["connected_to"]]
            need(all(group["channel_type"] == "port" for group in gpu["channels"]), "a channel that is no port")
            seen = collections.Counter()
            row = []
            for peer in peers:
                row.append((peer, seen[peer]))
                seen[peer] += 1
            self.ports.append(row)
            self.check_blocks(gpu, len(row))
        for rank, row in enumerate(self.ports):
            for peer, number in row:
                need((rank, number) in self.ports[peer], f"channels of {rank} and {peer}")

    @staticmethod
    def check_blocks(gpu, ports):
        need(len(gpu["semaphores"]) <= LIMITS["semaphores"], "semaphores")
        need([block["id"] for block in gpu["threadblocks"]] == list(range(len(gpu["threadblocks"]))), "ids of thread blocks")
        for block in gpu["threadblocks"]:
            need(len(block["ops"]) <= LIMITS["ops"], f"{len(block['ops'])} operations")
            ids = [id for group in block["channels"] for id in group["channel_ids"]]
            buffers = [id for group in block["remote_buffer_refs"] for id in group["remote_buffer_ids"]]
            need(len(ids) <= LIMITS["channels"] and all(id < ports for id in ids), "channels")
            need(all(id < len(gpu["remote_buffers"]) for id in buffers), "remote buffers")
            acted = None  # by one thread or all of them, since the last nop
            for op in block["ops"]:
                name = op["name"]
                need(len(op.get("channel_ids", ())) <= LIMITS["per operation"], "channels of an operation")
                if name == "nop":
                    acted = None
                    continue
                single = name in THREAD or (name == "flush" and len(op["channel_ids"]) == 1)
                # What all threads do, and what one does, are in order only with a nop between them.
                need(acted in (None, "thread") if single else acted is None or name == "sem_acquire",
                     f"{name} without a nop before it")
                acted = "thread" if single else "all"


class Run:
    def __init__(self, plan, seed, order):
        self.plan, self.order, self.dice = plan, order, random.Random(seed)
        chunks = plan.gpus[0]["output_chunks"] * plan.ranks if plan.collective in ("scatter", "reduce-scatter") else plan.chunks
        self.given = definitions.inputs(plan.collective, plan.ranks, chunks, plan.root, seed)
        self.memory = []
        for gpu, row in zip(plan.gpus, self.given):
            buffers = {"i": row + [None] * (gpu["input_chunks"] - len(row)), "o": [None] * gpu["output_chunks"], "s": [None] * gpu["scratch_chunks"]}
            if plan.in_place:
                buffers["o"] = buffers["i"]
            self.memory.append(buffers)
        self.done = [[0] * len(gpu["threadblocks"]) for gpu in plan.gpus]
        self.semaphores = [[one["init_value"] for one in gpu["semaphores"]] for gpu in plan.gpus]
        self.queues = {(rank, port): collections.deque() for rank, row in enumerate(plan.ports) for port in range(len(row))}
        self.signals = collections.Counter()

    def port(self, rank, block, op, at=0):
        ids = [id for group in self.plan.gpus[rank]["threadblocks"][block]["channels"] for id in group["channel_ids"]]
        return rank, ids[op["channel_ids"][at]]

    def next(self, rank, block):
        ops = self.plan.gpus[rank]["threadblocks"][block]["ops"]
        return ops[self.done[rank][block]] if self.done[rank][block] < len(ops) else None

    def ready(self, rank, block):
        op = self.next(rank, block)
        if op is None:
            return False
        if op["name"] == "wait":
            return all(self.signals[self.port(rank, block, op, at)] > 0 for at in range(len(op["channel_ids"])))
        if op["name"] == "flush":
            return all(not self.queues[self.port(rank, block, op, at)] for at in range(len(op["channel_ids"])))
        return op["name"] != "sem_acquire" or all(self.semaphores[rank][id] > 0 for id in op["semaphore_ids"])

    def read(self, rank, buffer):
        values = self.memory[rank][buffer["type"]][buffer["index"]:buffer["index"] + buffer["size"]]
        need(buffer["index"] >= 0 and len(values) == buffer["size"] and None not in values, f"rank {rank} reads {buffer}")
        return values

    def write(self, rank, kind, index, values):
        need(0 <= index <= len(self.memory[rank][kind]) - len(values), f"rank {rank} writes {kind} {index}")
        self.memory[rank][kind][index:index + len(values)] = values

    def perform(self, rank, block):
        op, gpu = self.next(rank, block), self.plan.gpus[rank]
        name = op["name"]
        if name == "wait":
            for at in range(len(op["channel_ids"])):
                self.signals[self.port(rank, block, op, at)] -= 1
        elif name == "signal":
            for at in range(len(op["channel_ids"])):
                self.queues[self.port(rank, block, op, at)].append(("signal",))
        elif name == "pws":
            port = self.port(rank, block, op)
            ids = [id for group in gpu["threadblocks"][block]["remote_buffer_refs"] for id in group["remote_buffer_ids"]]
            target = op["dst_buff"][0]
            remote = gpu["remote_buffers"][ids[target["buffer_id"]]]
            need(remote["rank"] == self.plan.ports[rank][port[1]][0], "a put into another rank's buffer than the channel's")
            need(target["size"] == op["src_buff"][0]["size"], "sizes of a put")
            self.queues[port].append(("put", op["src_buff"][0], remote["type"], target["index"]))
            self.queues[port].append(("signal",))
        elif name in ("re", "copy"):
            sources = [self.read(rank, one) for one in op["src_buff"]]
            need(len(sources) == (2 if name == "re" else 1) and op.get("reduce_op") == ("sum" if name == "re" else None), f"{op}")
            self.write(rank, op["dst_buff"][0]["type"], op["dst_buff"][0]["index"], [sum(one) % definitions.MODULUS for one in zip(*sources)])
        elif name in ("sem_acquire", "sem_release"):
            for id in op["semaphore_ids"]:
                self.semaphores[rank][id] += 1 if name == "sem_release" else -1
        else:
            need(name in ("nop", "flush"), f"operation {name}")
        self.done[rank][block] += 1

    def deliver(self, port):
        what = self.queues[port].popleft()
        peer, number = self.plan.ports[port[0]][port[1]]
        if what[0] == "put":
            self.write(peer, what[2], what[3], self.read(port[0], what[1]))
        else:
            self.signals[peer, self.plan.ports[peer].index((port[0], number))] += 1

    def run(self):
        everything = [(rank, block) for rank, gpu in enumerate(self.plan.gpus) for block in range(len(gpu["threadblocks"]))]
        while True:
            able = [one for one in everything if self.ready(*one)]
            full = [port for port, queue in self.queues.items() if queue]
            if not able and not full:
                break
            late = self.order == "late" and able
            if full and not late and (not able or self.order == "early" or self.dice.random() < 0.5):
                self.deliver(self.dice.choice(full))
            else:
                self.perform(*self.dice.choice(able))
        for rank, block in everything:
            need(self.next(rank, block) is None, f"rank {rank}, thread block {block} waits forever at {self.next(rank, block)}")
        need(not any(self.signals.values()), "signals that no operation waits for")
        for rank, row in enumerate(definitions.outputs(self.plan.collective, self.given, self.plan.root)):
            need(self.memory[rank]["o"][:len(row)] == row, f"rank {rank} has another result than {self.plan.collective} defines")


def execute(text, root):
    plan = Plan(text, root)
    for seed, order in ((1, "any"), (2, "any"), (3, "late"), (4, "early")):
        Run(plan, seed, order).run()
    return plan
