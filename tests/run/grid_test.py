#!/usr/bin/python3
"""Cases of the grid on real processes: every algorithm that `espalier list` names, 2 to 16 ranks, every class of root and of
topology, N from 1 to 12, with an operator that does not commute wherever the order of ranks is kept. Every rank's bytes are checked.

grid_test.py            every tenth case
grid_test.py --whole    all 420
"""
import math
import os
import sys
import unittest

import espalier

WHOLE = "--whole" in sys.argv
if WHOLE:
    sys.argv.remove("--whole")
WHOLE = WHOLE or "ESPALIER_WHOLE" in os.environ
CASES, STRIDE = 420, 11
BLOCK = 4096  # of the block table without a model, for messages below 1 MiB
# Of each class of topology those of at most 16 ranks, the smallest first.
MESHES = [f"mesh:{r}x{c}" for r, c in ((1, 2), (1, 3), (2, 2), (1, 5), (2, 3), (1, 7), (2, 4), (3, 3), (2, 5), (3, 4), (1, 13), (2, 7), (3, 5), (4, 4))]
CROSSBARS = ["crossbar:" + "x".join(map(str, sizes)) for sizes in (
    (1, 2), (2, 2), (2, 3), (3, 2), (2, 4), (2, 2, 2), (4, 3), (3, 2, 2), (3, 5), (4, 4), (2, 2, 2, 2))]
HOSTS = [f"hosts:{h}x{r}" for h, r in ((1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (1, 7), (4, 2), (3, 3), (5, 2), (3, 4), (2, 7), (5, 3), (4, 4))]
FAT_TREES = [f"fattree:k={k},h={h},c={c}" for k, h in ((2, 1), (2, 2), (3, 1), (2, 3), (4, 1), (3, 2), (4, 2)) for c in (1, "k")]
FAT_TREES += ["fattree:k=2x3,c=1", "fattree:k=4x3,c=k", "fattree:k=3x2x2,c=1"]
TORI = ["ring:2", "ring:3", "torus:2x2", "hypercube:2", "ring:5", "torus:2x3", "hypercube:3", "torus:2x2x2", "torus:3x3", "ring:11", "torus:2x2x3",
        "torus:3x4", "torus:4x4", "hypercube:4"]
COMPLETE = [f"complete:{p}" for p in range(2, 17)]


def topologies(offer):
    """The topologies to try, by the words of `list`."""
    words = offer["topologies"]
    for start, names in (("meshes, tori", [name for pair in zip(MESHES, TORI) for name in pair]), ("mesh", MESHES), ("tori", TORI),
                         ("hosts", HOSTS), ("crossbar", CROSSBARS), ("topologies with routers", FAT_TREES + CROSSBARS + HOSTS)):
        if words.startswith(start):
            return names
    if "fat tree" in words or "fattree" in words:
        return [name for name in FAT_TREES if not words.endswith("c=1") or name.endswith("c=1")]
    # All classes in turn, so that neighbouring numbers are of different ones.
    mixed = []
    for i in range(15):
        mixed += [COMPLETE[i], MESHES[i % len(MESHES)], CROSSBARS[i % len(CROSSBARS)], FAT_TREES[i % len(FAT_TREES)],
                  HOSTS[i % len(HOSTS)], TORI[i % len(TORI)]]
    return mixed


def ranks_of(topology):
    text = topology.split(":")[1]
    if topology.startswith("fattree"):
        arities, height = text.split(",")[:2]
        arities = [int(part) for part in arities[2:].split("x")]
        return math.prod(arities) if len(arities) > 1 else arities[0] ** int(height[2:])
    if topology.startswith("hypercube"):
        return 2 ** int(text)
    return math.prod(int(part) for part in text.split("x"))


def words_of(offer, number, topology):
    """The command line of case `number`."""
    collective, ranks = offer["collective"], ranks_of(topology)
    words = [*espalier.what(topology, collective, offer["algorithm"]), "--provider", ("tcp", "mem")[number % 2], "--deadline", 60000]
    if collective in espalier.ROOTED:
        words += ["--root", (0, ranks - 1, ranks // 2)[number // 2 % 3]]
    if collective in espalier.COMBINE:
        words += ["--op", "sum", "--type", "u8"] if offer["needs_commutative"] else ["--op", "affine"]
    if collective != "barrier":
        blocks = 1 + number * 5 % 12
        size = (blocks - 1) * BLOCK + (8, BLOCK // 2, BLOCK)[number // 3 % 3]
        words += ["--bytes", f"{size},{size + 8 * BLOCK}" if blocks <= 4 else size]
    return words


class Grid(unittest.TestCase):
    def run_case(self, offer, number):
        """Runs the case on the first topology, from a place that depends on the number, that the algorithm takes."""
        names = topologies(offer)
        for i in range(len(names)):
            words = words_of(offer, number, names[(number * 7 + i) % len(names)])
            status, found, error = espalier.run(*words)
            if status == 2 and i + 1 < len(names):
                self.assertNotIn("Traceback", error)
                continue
            self.assertEqual(status, 0, f"{words}: {error}")
            self.assertTrue(found["right"], words)
            return words
        return self.fail(f"{offer['collective']} by {offer['algorithm']} refuses every topology")

    def test_cases(self):
        offers = espalier.offers()
        done, providers, kinds = 0, set(), set()
        # A third is the least that every algorithm gets: 420 cases, at most 140 algorithms.
        self.assertLessEqual(len(offers), CASES // 3)
        for number in range(0, CASES, 1 if WHOLE else STRIDE):
            offer = offers[number % len(offers)]
            with self.subTest(number=number, collective=offer["collective"], algorithm=offer["algorithm"]):
                words = self.run_case(offer, number // len(offers) + number)
                providers.add(words[7])
                kinds.add(words[1].split(":")[0])
                done += 1
        self.assertEqual(providers, {"tcp", "mem"})
        self.assertLessEqual({"complete", "mesh", "crossbar", "fattree"}, kinds)
        print(f"{done} of {CASES} cases on real processes, {len(offers)} algorithms")


if __name__ == "__main__":
    unittest.main()
