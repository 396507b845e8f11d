#!/usr/bin/python3
"""Collectives on the topology's own links: each node has an endpoint for each lane to a neighbour, and nothing else.

hop_by_hop_test.py            a sample, over mem
hop_by_hop_test.py --whole    eleven collectives on every topology below, over mem; 64 nodes as 64 processes
"""
import math
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

import espalier
import processes
from espalier import COLLECTIVES, COMBINE, PER_RANK

WHOLE = "--whole" in sys.argv
BROKEN = f"file:{espalier.ROOT}/examples/topologies/broken-mesh.textproto"
TOPOLOGIES = ["mesh:4x4", "mesh:3x5", "fattree:k=4,h=2,c=1", "fattree:k=4,h=2,c=k", "fattree:k=2,h=4,c=1",
              "fattree:k=4x2x2,c=k", "crossbar:4x4", "crossbar:2x2x4", BROKEN, "mesh:8x8"]
LEAF = {"broadcast", "scatter", "gather", "allgather", "all-to-all"}
CROSSBAR = {"broadcast": "crossbar-a", "reduce": "crossbar-b"}
SIZES = [1, 64 << 10, 4 << 20]  # of a rank's whole buffer


def links(topology):
    """The topology's directed links, by the formulas of its family: {(from, to): lanes}."""
    if topology == BROKEN:
        whole = links("mesh:4x4")
        return {ends: lanes for ends, lanes in whole.items() if set(ends) != {5, 6}}
    family, numbers = topology.split(":")
    found = {}
    if family == "mesh":
        rows, columns = map(int, numbers.split("x"))
        for node in range(rows * columns):
            if node % columns + 1 < columns:
                found[node, node + 1] = found[node + 1, node] = 1
            if node + columns < rows * columns:
                found[node, node + columns] = found[node + columns, node] = 1
        return found
    if family == "crossbar":
        sizes = [int(size) for size in numbers.split("x")][::-1]
        lanes = [1] + [2] * (len(sizes) - 1)
        for node in range(math.prod(sizes)):
            module = node - node % sizes[0]
            found.update({(node, other): 1 for other in range(module, module + sizes[0]) if other != node})
    else:
        words = dict(word.split("=") for word in numbers.split(","))
        sizes = [int(size) for size in words["k"].split("x")] * int(words.get("h", 1))
        lanes = [math.prod(sizes[:level]) if words["c"] == "k" else 1 for level in range(len(sizes))]
    below, first = 0, math.prod(sizes)  # first node of the level, and first node of the level above
    for level, size in enumerate(sizes):
        for node in range(below, first):
            parent = first + (node - below) // size
            found[node, parent] = found[parent, node] = lanes[level]
        below, first = first, first + (first - below) // size
    return found


def algorithm_on(topology, collective):
    """The algorithm made for the topology's family, otherwise one for any topology."""
    if topology.startswith("fattree") and collective in LEAF:
        return "leaf"
    if topology.startswith("crossbar") and collective in CROSSBAR:
        return CROSSBAR[collective]
    return COLLECTIVES[collective]


def endpoints(found):
    """The process table's rows without the addresses, which the system chose: {(node, peer, lane)}; and {address: peer address}."""
    rows = [(node["node"], one) for node in found["processes"] for one in node["endpoints"]]
    return ({(node, one["peer"], one["lane"]) for node, one in rows},
            {one["address"]: one["peer_address"] for _, one in rows})


def expected(topology):
    return {(one, other, lane) for (one, other), lanes in links(topology).items() for lane in range(lanes)}


class HopByHop(espalier.Case):
    def check(self, topology, collective, algorithm, provider="mem", sizes=SIZES, more=()):
        """Runs it hop by hop; every result is right and the endpoints are the topology's lanes. Returns the run's output."""
        ranks = 64 if topology == "mesh:8x8" else 15 if topology == "mesh:3x5" else 16
        if collective in PER_RANK:
            sizes = [max(1, size // ranks) for size in sizes]
        if collective == "barrier":
            sizes = [0]
        words = ["--type", "u8", "--op", "sum"] if collective in COMBINE else []
        if algorithm in CROSSBAR.values():
            words += ["--run-length", 2]  # otherwise one schedule per run length that suits a size
        with self.subTest(topology=topology, collective=collective, algorithm=algorithm, provider=provider):
            found = self.right(*espalier.what(topology, collective, algorithm), "--links", "hop-by-hop", "--provider", provider, "--bytes",
                               ",".join(map(str, sizes)), "--deadline", 60000, *words, *more)
            self.assertEqual([run["bytes"] for run in found["runs"]], sizes)
            self.assertEqual(found["links"], "hop-by-hop")
            table, joined = endpoints(found)
            self.assertEqual(table, expected(topology))
            self.assertEqual(len(joined), len(table), "an endpoint each")
            self.assertTrue(all(joined[joined[address]] == address for address in joined), "in pairs")
            return found

    def test_collectives(self):
        for topology in TOPOLOGIES:
            for collective in COLLECTIVES:
                if WHOLE or (topology, collective) in SAMPLE:
                    self.check(topology, collective, algorithm_on(topology, collective))

    def test_over_tcp(self):
        self.check("fattree:k=4,h=2,c=k", "all-to-all", "leaf", provider="tcp", sizes=[1, 64 << 10])
        self.check("mesh:4x4", "allreduce", "two-tree", provider="tcp")

    def test_routers_combine(self):
        """A fat tree of 64 ranks and 21 routers, several to a process, and a crossbar's ports and switch."""
        for collective, provider in (("allreduce", "mem"), ("scan", "tcp")):
            found = self.check("fattree:k=4,h=3,c=1", collective, "in-network", provider, sizes=[1, 64 << 10],
                               more=["--nodes-per-process", 17])
            self.assertEqual(len(found["processes"]), 85)
            self.assertEqual([run["steps"] for run in found["runs"]], [2 * 3 + run["blocks"] - 1 for run in found["runs"]])
        found = self.right(*espalier.what("crossbar:2x2x4", "allreduce", "in-network"), "--provider", "mem", "--op", "affine", "--bytes",
                           "8,100000", "--nodes-per-process", 23, "--deadline", 60000)
        self.assertEqual(found["links"], "hop-by-hop")

    def test_nodes_share_a_process(self):
        found = self.check("mesh:8x8", "allreduce", "two-tree", sizes=[64 << 10], more=["--nodes-per-process", 16])
        self.assertEqual(len({node["pid"] for node in found["processes"]}), 4)


SAMPLE = ({("mesh:4x4", collective) for collective in ("reduce", "scatter", "gather", "exscan", "barrier")}
          | {("mesh:3x5", "scan"), ("fattree:k=4,h=2,c=1", "allreduce"), ("fattree:k=4,h=2,c=k", "allgather"),
             ("fattree:k=2,h=4,c=1", "reduce-scatter"), ("fattree:k=4x2x2,c=k", "all-to-all"), ("crossbar:4x4", "reduce"),
             ("crossbar:2x2x4", "broadcast"), ("crossbar:2x2x4", "allreduce"), (BROKEN, "all-to-all"),
             ("mesh:8x8", "broadcast")})


MEMORY = "/memfd:espalier"


class Memory(unittest.TestCase):
    def test_a_process_has_mapped_its_neighbours_memory_alone(self):
        """The evidence is the memory map that the system shows of running nodes, not their own report."""
        topology = "mesh:4x4"
        words = espalier.run_words(*espalier.what(topology), "--links", "hop-by-hop", "--provider", "mem", "--bytes", 1000, "--back-to-back", 1000000000)
        run = subprocess.Popen([espalier.COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wanted = {(node, peer) for node, peer, _ in expected(topology)}
            while (mapped := self.mapped(run.pid)) != wanted:
                self.assertIsNone(run.poll(), run.stderr.read() if run.poll() is not None else "")
                self.assertLessEqual(mapped, wanted, "no more than the neighbours' at any time")
                time.sleep(0.1)
        finally:
            run.terminate()
            run.communicate()

    @staticmethod
    def mapped(parent):
        """{(node, peer)} of the children of `parent`: node's process has mapped a file in memory that peer's process made."""
        made, used = {}, {}  # by node: inodes
        for pid in processes.nodes(parent):
            try:
                words = processes.read(pid, "cmdline").split("\0")
                node = int(words[words.index("--node") + 1])
                files = pathlib.Path(f"/proc/{pid}/fd").iterdir()
                made[node] = {file.stat().st_ino for file in files if os.readlink(file).startswith(MEMORY)}
                used[node] = {int(line.split()[4]) for line in processes.read(pid, "maps").splitlines() if MEMORY in line}
            except (FileNotFoundError, ProcessLookupError, ValueError):
                continue
        return {(node, peer) for node in used for peer in made if peer != node and (used[node] - made[node]) & made[peer]}


class Defaults(espalier.FolderTest):
    def links_of(self, *words):
        found = self.right(*words, "--provider", "tcp", "--bytes", 1000)
        self.assertEqual("processes" in found, found["links"] == "hop-by-hop")
        return found["links"]

    def test_a_hop_by_hop_schedule_runs_hop_by_hop(self):
        leaf = espalier.what("fattree:k=2,h=2,c=1", "gather", "leaf")
        chain = espalier.what("mesh:1x4", "broadcast", "chain")
        self.assertEqual(self.links_of(*leaf), "hop-by-hop")
        self.assertEqual(self.links_of(*leaf, "--links", "routed"), "routed")
        self.assertEqual(self.links_of(*chain), "hop-by-hop")
        self.assertEqual(self.links_of(*chain[:1], "mesh:2x2", *chain[2:]), "routed")
        self.assertEqual(self.links_of(*chain[:1], "complete:4", *chain[2:]), "routed")
        self.assertEqual(self.links_of(*chain[:1], "complete:4", *chain[2:], "--links", "hop-by-hop"), "hop-by-hop")

    def test_the_table_is_printed(self):
        done = espalier.call("run", *espalier.what("mesh:1x3", "broadcast", "chain"), "--links", "hop-by-hop", "--ranks", "--node-binary",
                             espalier.NODE)
        self.assertEqual(done.returncode, 0, done.stderr)
        at = r"127.0.0.1:(\d+) *"
        table = re.search(r"rank 0 \(row 0, column 0\) +\d+ +0 +0  " + at + r"rank 1 \(row 0, column 1\)  " + at + r"\n"
                          r"rank 1 \(row 0, column 1\) +\d+ +0 +0  " + at + r"rank 0 \(row 0, column 0\)  " + at + r"\n"
                          r" +1 +0  " + at + r"rank 2 \(row 0, column 2\)  " + at + r"\n", done.stdout)
        self.assertIsNotNone(table, done.stdout)
        self.assertEqual(table.group(1, 2), table.group(4, 3))
        self.assertIn("4 endpoints, each joined to its peer's and to no other", done.stdout)

    def test_a_schedule_that_leaves_its_links_is_refused(self):
        file = espalier.compile(self.path / "b.esp", "mesh:2x2", "broadcast", "chain")
        self.refused(espalier.run_text(file, "--links", "hop-by-hop"), "mesh:2x2", "espalier compile --links hop-by-hop",
                     "rank 1 (row 0, column 1) exchanges messages with rank 2 (row 1, column 0)")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--whole"], verbosity=2)
