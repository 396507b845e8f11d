"""Checks a lower bound from its witness and the topology alone; shares nothing with the verifier.

A collective is a list of items (origins, targets, multiplicity): each block of an item must get from every origin to every
target. None stands for all ranks. An item crosses a cut of nodes U if an origin is in U and a target is not. If d messages
may cross per step, and every counted item needs `before` steps to reach the cut and `after` steps beyond it, then T steps
suffice only if T >= before + ceil(items / d) + after.
"""
import heapq
from math import ceil


class Graph:
    """A topology: the line that `certificates` prints, or `espalier topology --format json`."""

    def __init__(self, line):
        self.ranks = line["ranks"]
        self.columns = line.get("columns", 0)
        self.links = {(link["from"], link["to"]): link["capacity"] for link in line["links"]}
        self.nodes = line["nodes"] if isinstance(line["nodes"], int) else len(line["nodes"])
        self.out = [sorted(v for u, v in self.links if u == node) for node in range(self.nodes)]
        self.into = [sorted(u for u, v in self.links if v == node) for node in range(self.nodes)]
        self.is_tree = len(self.links) == 2 * (self.nodes - 1) and all((v, u) in self.links for u, v in self.links)

    def away(self, ends, next_nodes, without=None):
        """The distance of each node from the nearest of `ends`; a link `without` or a node is left out."""
        away = dict.fromkeys(ends, 0)
        queue = list(away)
        for node in queue:
            for on in next_nodes[node]:
                if on not in away and (node, on) != without and on != without:
                    away[on] = away[node] + 1
                    queue.append(on)
        return away

    def spread(self, node, parent):
        """The fewest steps from a node of a tree to all ranks away from `parent`, one send per step; None: there are none."""
        steps = sorted((s for on in self.out[node] if on != parent for s in [self.spread(on, node)] if s is not None), reverse=True)
        if not steps:
            return 0 if node < self.ranks else None
        return max(turn + 1 + s for turn, s in enumerate(steps))

    def route(self, node, to):
        """XY on a mesh, otherwise the neighbour with the lowest number of those one link nearer (SHORTEST)."""
        if self.columns and node // self.columns != to // self.columns and node % self.columns == to % self.columns:
            yield node, node + (self.columns if to > node else -self.columns)
        elif self.columns:
            yield node, node + (1 if to % self.columns > node % self.columns else -1)
        else:
            away = self.away([to], self.into)
            yield node, min(on for on in self.out[node] if away[on] == away[node] - 1)


class Checker:
    def __init__(self, graph, facts):
        self.graph, self.facts = graph, facts
        self.p, self.send, self.latency = facts["ranks"], facts["send_ticks"], facts["latency_ticks"]
        self.per_message, self.ports = facts["segments_per_message"], facts["port_model"]
        self.unit = self.send == self.latency == 1
        self.by_hops = facts["neighbours_only"] and self.unit
        self.one_send = self.ports != "multiport"
        self.one_receive = self.ports in ("one-port duplex", "simplex")

    def items(self):
        root, all_parts = self.facts["root"], self.facts["segments"]
        others = [rank for rank in range(self.p) if rank != root]
        return {"broadcast": [(root, None, all_parts)], "reduce": [(None, root, all_parts)],
                "allreduce": [(None, None, all_parts)], "barrier": [(None, None, all_parts)],
                "scatter": [(root, rank, 1) for rank in others], "gather": [(rank, root, 1) for rank in others],
                "allgather": [(rank, None, 1) for rank in range(self.p)],
                "reduce-scatter": [(None, rank, 1) for rank in range(self.p)],
                "all-to-all": [(u, v, 1) for u in range(self.p) for v in range(self.p) if u != v],
                }.get(self.facts["collective"])  # None: a scan, where each rank's data go to all ranks after it

    def crossing(self, inside, tails, heads, before=0, after=0):
        """The blocks that cross from `inside` (by `tails` and `heads`), and need that many steps before and after."""
        graph = self.graph
        to_cut, from_cut = graph.away(tails, graph.into), graph.away(heads, graph.out)
        here = [rank for rank in range(self.p) if rank in inside]
        there = [rank for rank in range(self.p) if rank not in inside]
        if not here or not there:
            return 0
        if self.items() is None:
            soon = min(to_cut[rank] for rank in here), min(from_cut[rank] for rank in there)
            return self.facts["segments"] if min(here) < max(there) and before <= soon[0] and after <= soon[1] else 0
        all_here, all_there = max(to_cut[rank] for rank in here), max(from_cut[rank] for rank in there)
        if graph.is_tree and self.one_receive and len(heads) == 1:
            all_here = graph.spread(tails[0], heads[0])
        if graph.is_tree and self.one_send and len(tails) == 1:
            all_there = graph.spread(heads[0], tails[0])
        return sum(many for origin, target, many in self.items()
                   if (origin is None or origin in inside) and (target is None or target not in inside)
                   and before <= (all_here if origin is None else to_cut[origin])
                   and after <= (all_there if target is None else from_cut[target]))

    def reach(self, fan):
        """The steps in which one block reaches all ranks, if each holder passes on `fan` messages per send time."""
        holders = []
        while not holders or holders[-1] < self.p:
            t = len(holders)
            holders.append(1 if t < self.latency else holders[t - self.send] + fan * holders[t - self.latency])
        return len(holders) - 1

    def fans(self, receives):
        fans = [0] * self.graph.nodes
        for (u, v), capacity in self.graph.links.items():
            fans[v if receives else u] += capacity
        return fans[:self.p]

    def by_cut(self, blocks, lanes, before=0, after=0):
        """(a, b, d) of the bound."""
        d = lanes * self.per_message
        assert self.by_hops or before == after == 0, "distances count only where each message goes one hop in one step"
        return (before + after + self.latency - self.send) * d, blocks * self.send, d

    def cut(self, w):
        inside = set(w["from"]) if "from" in w else set(range(self.graph.nodes)) - set(w["from_all_except"])
        links = {link: capacity for link, capacity in self.graph.links.items() if link[0] in inside and link[1] not in inside}
        tails, heads = sorted({u for u, _ in links}), sorted({v for _, v in links})
        if w["limit"] == "links":
            assert self.facts["links_suffice"] or self.facts["neighbours_only"], "links are not counted"
            assert {(link["from"], link["to"]): link["capacity"] for link in w["links"]} == links, "not the links that cross"
            lanes = sum(links.values())
        elif w["limit"] == "pairs":
            lanes = sum(max(1, self.graph.links.get((u, v), 0)) for u in range(self.p) if u in inside
                        for v in range(self.p) if v not in inside)
        else:
            allowed, ends = (self.one_send, tails) if w["limit"] == "senders" else (self.one_receive, heads)
            assert self.by_hops and allowed and w["nodes"] == ends, "not the ports that limit the cut"
            lanes = len(ends)
        if not self.by_hops:  # messages go along routes, or take several ticks
            tails, heads = sorted(inside), sorted(set(range(self.graph.nodes)) - inside)
        return self.by_cut(self.crossing(inside, tails, heads, w["before"], w["after"]), lanes, w["before"], w["after"])

    def tree_link(self, w):
        assert self.graph.is_tree and (self.facts["links_suffice"] or self.facts["neighbours_only"])
        u, v = w["from"], w["to"]
        inside = set(self.graph.away([u], self.graph.out, (u, v)))
        lanes = 1 if self.by_hops and self.one_send else self.graph.links[u, v]
        return self.by_cut(self.crossing(inside, [u], [v], w["before"], w["after"]), lanes, w["before"], w["after"])

    def branches(self, w):
        graph, node, rest, blocks = self.graph, w["node"], set(range(self.graph.nodes)) - {w["node"]}, 0
        assert self.by_hops and (self.one_receive if w["receives"] else self.one_send), "the port is not limited"
        both = [sorted({*graph.out[u], *graph.into[u]}) for u in range(graph.nodes)]
        while rest:
            part = set(graph.away([min(rest)], both, node))
            rest -= part
            if w["receives"]:
                blocks += self.crossing(part, sorted(part & set(graph.into[node])), [node], w["before"], w["after"])
            else:
                blocks += self.crossing(set(range(graph.nodes)) - part, [node], sorted(part & set(graph.out[node])),
                                        w["before"], w["after"])
        return self.by_cut(blocks, 1, w["before"], w["after"])

    def port(self, w):
        others = set(range(self.p)) - {w["rank"]}
        inside = others if w["receives"] else {w["rank"]}
        everyone = list(range(self.graph.nodes))
        # Every item must reach all ranks from this one, or come to it from all.
        near, far = (1, 0) if w["receives"] else (0, 1)
        spreads = self.items() is None and w["rank"] == 0 or self.items() is not None and all(
            item[far] is None and item[near] in (None, w["rank"]) for item in self.items())
        wait = self.reach(w["fan"]) - self.latency if spreads else 0
        assert w["after"] == wait, f"{wait} steps remain after the last block has left"
        blocks = self.crossing(inside, everyone, everyone)
        if w["limit"] == "links":
            fans = self.fans(w["receives"])
            assert self.facts["links_suffice"] and self.unit and w["fan"] >= max(fans)
            return self.by_cut(blocks, fans[w["rank"]])[0] + wait * fans[w["rank"]] * self.per_message, blocks, \
                fans[w["rank"]] * self.per_message
        assert self.one_receive if w["receives"] else self.one_send, "the port is not limited"
        return wait + self.latency - self.send, ceil(blocks / self.per_message) * self.send, 1

    def reached(self, w):
        assert w["receives"] == (self.facts["collective"] in ("reduce", "gather"))
        if not (w["fan"] == 1 and (self.one_receive if w["receives"] else self.one_send)):
            assert self.facts["links_suffice"] and self.unit and w["fan"] >= max(self.fans(w["receives"])), \
                "holders pass on more messages per step"
        return self.reach(w["fan"]), 0, 1

    def messages(self, _):
        segments, nodes = self.facts["segments"], self.graph.nodes if self.facts["routers_run"] else self.p
        each = {"allreduce": 2 * (self.p - 1) * segments, "scatter": self.p - 1, "gather": self.p - 1}.get(
            self.facts["collective"], (self.p - 1) * segments)  # allgather, ...: a segment per rank
        wait = self.latency - self.send
        if self.ports == "simplex":
            return (0, each, nodes // 2 * self.per_message) if self.unit else (0, 2 * self.send * each, nodes * self.per_message)
        assert self.one_send and not self.facts["routers_run"], "routers send too"
        if self.facts["collective"] == "allgather":
            return wait, ceil((self.p - 1) / self.per_message) * self.send, 1
        assert self.facts["collective"] == "allreduce"
        return wait * self.p * self.per_message, self.send * each, self.p * self.per_message

    def hops(self, w):
        u, v = w["from"], w["to"]
        needs = u < v if self.items() is None else any(
            origin in (None, u) and target in (None, v) for origin, target, _ in self.items())
        assert self.facts["neighbours_only"] and needs, "rank %d needs nothing of rank %d" % (v, u)
        return self.latency * self.graph.away([u], self.graph.out)[v], 0, 1

    def routes(self, w):
        assert self.facts["direct"] and self.facts["links_suffice"] and self.facts["collective"] == "all-to-all"
        crossing = set()
        for u, v in ((u, v) for u in range(self.p) for v in range(self.p) if u != v):
            node = u
            while node != v:
                (link,) = self.graph.route(node, v)
                if link == (w["from"], w["to"]):
                    crossing.add((u, v))
                node = link[1]
        assert {(pair["from"], pair["to"]) for pair in w["pairs"]} == crossing, "not the pairs whose route has the link"
        lanes = self.graph.links[w["from"], w["to"]]
        return (self.latency - self.send) * lanes, len(crossing) * self.send, lanes

    def lengths(self, w):
        """Whatever lengths the links have: a block takes up at least the distance from its origin to its target, and a step offers the sum
        of all lanes times their lengths."""
        assert (self.facts["links_suffice"] or self.facts["neighbours_only"]) and self.facts["collective"] == "all-to-all"
        lengths = {(link["from"], link["to"]): link["length"] for link in w["links"]}
        assert set(lengths) <= set(self.graph.links) and min(lengths.values()) > 0, "not lengths of links; those left out are 0"
        distances = 0
        for origin in range(self.p):
            away, queue = {}, [(0, origin)]
            while queue:
                distance, node = heapq.heappop(queue)
                if node in away:
                    continue
                away[node] = distance
                for on in self.graph.out[node]:
                    heapq.heappush(queue, (distance + lengths.get((node, on), 0), on))
            distances += sum(away[rank] for rank in range(self.p))
        return self.by_cut(distances, sum(self.graph.links[link] * length for link, length in lengths.items()))

    def check(self, bound):
        """Raises AssertionError if the witness does not prove ceil((a + b N) / d)."""
        witness = bound["witness"]
        proven = {"cut": self.cut, "tree link": self.tree_link, "branches": self.branches, "port": self.port,
                  "reach": self.reached, "messages": self.messages, "hops": self.hops, "routes": self.routes,
                  "lengths": self.lengths,
                  "arrival": lambda _: (self.latency if self.p > 1 else 0, 0, 1)}[witness["kind"]](witness)
        a, b, d = bound["a"], bound["b"], bound["d"]
        # Both are lines in N: the bound must not be above the proven one at N = 1 nor grow faster.
        assert (a + b) * proven[2] <= (proven[0] + proven[1]) * d and b * proven[2] <= proven[1] * d, \
            f"ceil(({a} + {b} N) / {d}) is above what the witness proves: ceil(({proven[0]} + {proven[1]} N) / {proven[2]})"
