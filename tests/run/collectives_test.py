#!/usr/bin/python3
"""Every collective by every algorithm that `espalier list` names, on real processes: every rank's bytes are checked.

collectives_test.py            a sample, over mem. One run in ONE_EACH has a process per node, in turn, the others one per TOGETHER
                               nodes, for starting sixteen processes takes longer than what they do then
collectives_test.py --whole    16 ranks, sizes 1 B to 8 MiB (a rank's part where counts are per rank), over mem and tcp; a
                               fat tree of 16 ranks with its five routers as processes. All-to-all needs 5 GiB of memory

collectives_test.py [--whole] --only NAME[,NAME...] [--providers mem,tcp] says what it runs and how long that took, and
runs nothing else: NAME is a collective (scan) or one with an algorithm (scan/chain)
"""
import sys
import time
import unittest

import espalier
from espalier import COMBINE, PER_RANK, ROOTED, offers
from sample import sampled


def option(name):
    """The words of `name A,B,...` of the command line, which unittest does not see any more; none: []."""
    if name not in sys.argv:
        return []
    at = sys.argv.index(name)
    words = sys.argv[at + 1].split(",")
    del sys.argv[at:at + 2]
    return words


ONLY = option("--only")
WHOLE = "--whole" in sys.argv
PROVIDERS = option("--providers") or (["mem", "tcp"] if WHOLE else [])
RANKS = 16
MIB = 1 << 20
TOGETHER, ONE_EACH = 8, 8


def chosen():
    """The offers that --only names; all without it."""
    found = []
    for offer in offers():
        if not ONLY or {offer["collective"], f"{offer['collective']}/{offer['algorithm']}"} & set(ONLY):
            found.append(offer)
    assert found, f"espalier list names none of {ONLY}"
    return found


def sizes(collective):
    if collective == "barrier":
        return [0]
    if WHOLE:
        return [1, 7, 1000, 65537, MIB, 8 * MIB]
    return [1, 65537]


def topology(offer):
    if offer["routers"]:
        return "fattree:k=4,h=2,c=1"
    if offer["needs_odd_ranks"]:
        return "complete:15"
    if offer["algorithm"] == "fractional-mesh":
        return "mesh:2x4"  # there is a known embedding, with root 0
    kinds = {"hosts:HxR": "hosts:4x4", "mesh:RxC": "mesh:4x4", "meshes, tori and rings": "mesh:4x4", "tori and rings": "torus:4x4",
             "tori, rings and hypercubes": "torus:4x4"}
    return "crossbar:4x4" if "crossbar" in offer["topologies"] else kinds.get(offer["topologies"], f"complete:{RANKS}")


class Collectives(espalier.Case):
    runs = 0

    @classmethod
    def providers(cls):
        return PROVIDERS or ["mem"]

    @classmethod
    def together(cls):
        """The nodes per process of the next run."""
        cls.runs += 1
        return 1 if WHOLE or ONLY or sampled(cls.runs, ONE_EACH) else TOGETHER

    def check(self, offer, provider, *words, root=0, bytes=None):
        name = offer["collective"]
        listed = bytes or sizes(name)
        if offer["max_run_length"] and "--run-length" not in words:
            words = (*words, "--run-length", "own")  # one schedule for all sizes
        together = self.together()
        if together > 1:
            words = (*words, "--nodes-per-process", together)
        status, found, error = espalier.run(*espalier.what(topology(offer), name, offer["algorithm"]), "--root", root, "--provider",
                                            provider, "--bytes", ",".join(map(str, listed)), "--deadline", 60000, *words)
        where = f"{name} by {offer['algorithm']}, root {root}, {provider} {words}: {error}"
        self.assertEqual(status, 0, where)
        self.assertTrue(found["right"], where)
        self.assertEqual([run["bytes"] for run in found["runs"]], listed, where)
        self.assertEqual(found["bytes_are"], "per rank" if name in PER_RANK else "whole message")
        ranks = 15 if offer["needs_odd_ranks"] else 8 if offer["algorithm"] == "fractional-mesh" else RANKS
        got = {"broadcast": set(range(ranks)) - {root}, "reduce": {root}, "gather": {root},
               "exscan": set(range(1, ranks))}.get(name, set(range(ranks)))
        for run in found["runs"]:
            self.assertEqual({rank["rank"] for rank in run["ranks"] if rank.get("right")}, got, where)
            nodes = ranks + (5 if offer["routers"] else 0)
            self.assertEqual(len({node["pid"] for node in run["ranks"] + run["routers"]}), -(-nodes // together), where)
        return found

    def test_every_algorithm(self):
        for offer in chosen():
            for provider in self.providers():
                with self.subTest(collective=offer["collective"], algorithm=offer["algorithm"], provider=provider):
                    begin = time.monotonic()
                    words = ["--type", "u8", "--op", "sum"] if offer["collective"] in COMBINE else []
                    root = 5 if offer["collective"] in ROOTED and offer["algorithm"] != "fractional-mesh" else 0
                    self.check(offer, provider, *words, root=root)
                    if ONLY:
                        print(f"{offer['collective']} by {offer['algorithm']} over {provider}, "
                              f"{len(sizes(offer['collective']))} sizes: right, {time.monotonic() - begin:.1f} s", flush=True)

    def test_the_order_of_ranks_is_kept(self):
        """Checked by a sum of maps, which do not commute; refused if the operator must commute."""
        refused = 0
        for offer in offers():
            if offer["collective"] not in COMBINE or (offer["needs_commutative"] and offer["collective"] not in ROOTED):
                continue
            for root in (0, 5) if offer["collective"] == "reduce" and offer["algorithm"] != "fractional-mesh" else (0,):
                provider = self.providers()[0]
                with self.subTest(collective=offer["collective"], algorithm=offer["algorithm"], root=root):
                    if offer["needs_commutative"]:
                        words = espalier.what(topology(offer), offer["collective"], offer["algorithm"])
                        status, _, error = espalier.run(*words, "--root", root, "--provider", provider, "--op", "affine", "--bytes",
                                                        "8,4096", "--nodes-per-process", self.together())
                        self.assertIn(status, (0, 2), error)
                        if status == 2:
                            self.assertIn("does not commute", error)
                            refused += 1
                        continue
                    self.check(offer, provider, "--op", "affine", root=root, bytes=[8, 4096])
        self.assertGreater(refused, 0)

    def test_every_rank_has_another_count(self):
        """Every algorithm with a count per rank; of those that pass an all-to-all's parts on, the refusal."""
        refused = 0
        for offer in offers():
            name = offer["collective"]
            if name not in PER_RANK:
                continue
            for provider in self.providers():
                with self.subTest(collective=name, algorithm=offer["algorithm"], provider=provider):
                    words = espalier.what(topology(offer), name, offer["algorithm"])
                    status, found, error = espalier.run(*words, "--provider", provider, "--counts", "random:3:5000", "--repeat", 2,
                                                        "--nodes-per-process", self.together(), "--deadline", 60000)
                    if status == 2 and name == "all-to-all":
                        self.assertIn("passes parts on", error)
                        refused += 1
                        continue
                    self.assertEqual(status, 0, error)
                    self.assertTrue(found["right"])
                    self.assertEqual(found["bytes_are"], "longest part")
                    self.assertEqual(len(found["counts"]), RANKS ** 2 if name == "all-to-all" else RANKS)
                    self.assertEqual(found["runs"][0]["bytes"],
                                     max(found["counts"]) * (4 if name in COMBINE else 1))
        self.assertGreater(refused, 0)

    def test_parameters(self):
        by_name = {(offer["collective"], offer["algorithm"]): offer for offer in offers()}
        for run in (1, 3):
            self.check(by_name["broadcast", "fractional"], "mem", "--run-length", run, bytes=[100000])
        found = self.right(*espalier.what("complete:16", "broadcast", "fractional"), "--provider", "mem", "--bytes", "8,8388608",
                           "--deadline", 60000)
        self.assertEqual(found["algorithm"], "fractional")
        self.assertEqual([one["runs"][0]["bytes"] for one in found["schedules"]], [8, 8388608])
        self.assertIn("fractional, run length 1, chosen for 8 bytes", found["schedules"][0]["chosen"])
        for value in ("2", "9/5"):
            self.check(by_name["broadcast", "lambda-tree"], "mem", "--lambda", value, bytes=[5000])
        for words in ((), ("--ratio", "0.58"), ("--ratio", "3/4", "--lambda", "9/5")):
            self.check(by_name["broadcast", "alpha-tree"], "mem", *words, root=3, bytes=[5000])
        self.check(by_name["broadcast", "alpha-table"], "mem", "--lambda", "9/5", root=3, bytes=[5000])
        self.check(by_name["allreduce", "combine"], "mem", "--lambda", "3", "--op", "max", bytes=[5000])
        for words in (("--radix", 2), ("--radix", 5), ("--radix", 3, "--lambda", "9/5"), ("--lambda", 4)):
            for collective in ("broadcast", "reduce", "scatter", "gather"):
                operator = ("--op", "affine") if collective == "reduce" else ()
                self.check(by_name[collective, "knomial"], "mem", *words, *operator, root=5, bytes=[5000])

    def test_routers_are_nodes_with_names(self):
        offer = next(offer for offer in offers() if offer["collective"] == "allgather" and offer["routers"])
        found = self.check(offer, "tcp", bytes=[3000])
        routers = found["runs"][0]["routers"]
        self.assertEqual([router["router"] for router in routers], [16, 17, 18, 19, 20])
        self.assertEqual(routers[4]["name"], "router 20 (level 2)")
        for router in routers:
            self.assertFalse(router["checked"])
            self.assertNotIn("sha256", router)


class Together(espalier.Case):
    """Several nodes in one process and thread."""

    def test_nodes_share_processes(self):
        for provider in ("tcp", "mem"):
            for together in (5, 16):
                with self.subTest(provider=provider, together=together):
                    found = self.right(*espalier.what("complete:16", "allreduce", "two-tree"), "--provider", provider, "--bytes",
                                       "0,8,70000", "--nodes-per-process", together)
                    pids = [rank["pid"] for rank in found["runs"][0]["ranks"]]
                    self.assertEqual(len(set(pids)), -(-16 // together))
                    self.assertTrue(all(pids[i] == pids[i - i % together] for i in range(16)))

    def test_ranks_with_their_routers(self):
        found = self.right(*espalier.what("fattree:k=4,h=2,c=1", "broadcast", "leaf-multiport"), "--provider", "mem", "--bytes", "100000",
                           "--nodes-per-process", 21)
        run = found["runs"][0]
        self.assertEqual(len({node["pid"] for node in run["ranks"] + run["routers"]}), 1)

    def test_many_nodes(self):
        for ranks, together in ((64, 16), (100, 50)):
            found = self.right(*espalier.what(f"complete:{ranks}", "broadcast", "two-tree"), "--provider", "mem", "--bytes", "8,100000",
                               "--nodes-per-process", together)
            self.assertEqual(len(found["runs"][0]["ranks"]), ranks)

    def test_a_killed_process_is_all_its_nodes(self):
        status, found, error = espalier.run(*espalier.what("complete:16", "broadcast", "two-tree"), "--provider", "mem", "--bytes", 4096,
                                            "--back-to-back", 100_000_000, "--deadline", 2000, "--nodes-per-process", 4, "--kill", "9@300")
        self.assertEqual(status, 1, error)
        causes = set()
        for rank in found["runs"][0]["ranks"]:
            self.assertTrue(rank["failed"], rank)
            self.assertEqual(rank.get("disturbed", False), 8 <= rank["rank"] < 12, rank)
            if 8 <= rank["rank"] < 12:
                self.assertIn("killed", rank["status"])
            else:
                causes.add((rank["cause"]["status"], rank["cause"]["detector"], rank["cause"]["peer"]))
        self.assertEqual(len(causes), 1, causes)
        status, detector, peer = causes.pop()
        self.assertEqual(status, "dead link")
        self.assertIn(peer, range(8, 12))
        self.assertNotIn(detector, range(8, 12))


class Routers(unittest.TestCase):
    """A killed or stopped router is detected like a rank. Without it the tree falls into parts: one cause in each."""

    def check(self, provider, disturbance, victim):
        status, found, error = espalier.run(*espalier.what("fattree:k=4,h=2,c=1", "broadcast", "leaf"), "--provider", provider, "--bytes",
                                            4096, "--back-to-back", 100_000_000, "--deadline", 4000, disturbance, f"{victim}@500")
        self.assertEqual(status, 1, error)
        run = found["runs"][0]
        for node in run["ranks"] + run["routers"]:
            number = node.get("rank", node.get("router"))
            self.assertTrue(node["failed"], node)
            self.assertEqual(node.get("disturbed", False), number == victim)
            if number == victim:
                continue
            self.assertIn("cause", node, node["status"])
            self.assertIn(f"router {victim}", node["status"])
            cause = node["cause"]
            parent = number if number >= 16 else 16 + number // 4
            # The neighbour of the victim in the node's part of the tree.
            nearest = parent if victim == 20 else number if parent == victim else 20
            self.assertEqual((cause["status"], cause["detector"], cause["peer"]), ("dead link", nearest, victim))

    def test_killed(self):
        for provider in ("tcp", "mem"):
            for victim in (17, 20):
                with self.subTest(provider=provider, victim=victim):
                    self.check(provider, "--kill", victim)

    def test_stopped(self):
        self.check("mem", "--stop", 18)


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--whole"], verbosity=2,
                  defaultTest="Collectives.test_every_algorithm" if ONLY else None)
