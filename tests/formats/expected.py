"""What each node does for one message, from `espalier show --format json` and docs/descriptor.md: order, sizes, dependencies."""
import json

import schedules

PER_RANK = ("scatter", "gather", "allgather", "reduce-scatter", "all-to-all")
OWN = {("scatter", "output"), ("gather", "input"), ("allgather", "input"), ("reduce-scatter", "output")}
ORDER = {"send": 0, "receive": 1, "combine": 2, "copy": 2}


def blocks_of(facts, size):
    """N for a message of `size` bytes (elements of one byte)."""
    whole = size * facts["ranks"] if facts["collective"] in PER_RANK else size
    rule = [rule for rule in facts["block_rules"] if rule["from_bytes"] <= whole][-1]
    segment = -(-whole // facts["segments"])
    blocks = max(1, -(-segment // rule["block_bytes"])) if rule["block_bytes"] else 1
    return blocks + ((facts["residue"] - blocks) % facts["residue_mod"] if facts["residue_mod"] else 0)


class Expected:
    """By node, in order: (kind, peer, number on its link, bytes, operations that must be over)."""

    def __init__(self, file, size):
        self.facts = json.loads(schedules.espalier("show", file, "--rank", "0", "--format", "json"))
        self.blocks = blocks_of(self.facts, size)
        self.facts = json.loads(schedules.espalier("show", file, "--blocks", self.blocks, "--format", "json"))
        self.whole = size * self.facts["ranks"] if self.facts["collective"] in PER_RANK else size
        self.nodes = [self.node(program) for program in self.facts["programs"]]

    def length(self, place):
        segment = -(-self.whole // self.facts["segments"])
        block = -(-segment // self.blocks)
        total = 0
        for k in range(place["segments"]):
            begin = min((place["segment"] + k) % self.facts["segments"] * segment, self.whole)
            end = min(begin + segment, self.whole)
            total += max(0, min(begin + (place["block"] + 1) * block, end) - min(begin + place["block"] * block, end))
        return total

    def cells(self, place):
        """What memory it is: slots, or blocks of segments; a buffer for one segment has only the node's own."""
        for k in range(place["segments"]):
            yield (place["buffer"], place["slot"] + k) if "slot" in place else (place["buffer"], place["segment"] + k, place["block"])

    def node(self, program):
        rows, numbers, writer, readers = [], {}, {}, {}
        for one in sorted(program["steps"], key=lambda one: (one["step"], ORDER[one["kind"]])):
            at, after = len(rows), set()
            for name in ("a", "b"):
                for cell in self.cells(one[name]) if name in one else ():
                    after |= {writer[cell]} if cell in writer else set()
                    readers.setdefault(cell, set()).add(at)
            for cell in self.cells(one["into"]) if "into" in one else ():
                after |= ({writer[cell]} if cell in writer else set()) | readers.pop(cell, set())
                writer[cell] = at
            link = one["kind"], one.get("peer")
            numbers[link] = numbers.get(link, -1) + 1
            rows.append((one["kind"], one.get("peer"), numbers[link], self.length(one["a" if one["kind"] == "send" else "into"]), after - {at}))
        return rows


def play(nodes):
    """Runs (kind, peer, tag, dependencies) of each node: complaints if an operation never starts. A message arrives by sender and tag."""
    done = [[False] * len(node) for node in nodes]
    arrived = set()
    changed = True
    while changed:
        changed = False
        for rank, node in enumerate(nodes):
            for at, (kind, peer, tag, after) in enumerate(node):
                if done[rank][at] or not all(done[rank][before] for before in after) or (kind == "receive" and (peer, rank, tag) not in arrived):
                    continue
                if kind == "send":
                    arrived.add((rank, peer, tag))
                if kind == "receive":
                    arrived.remove((peer, rank, tag))
                done[rank][at] = changed = True
    return [f"node {rank} never does {at}" for rank, row in enumerate(done) for at, over in enumerate(row) if not over] + [str(one) for one in arrived]
