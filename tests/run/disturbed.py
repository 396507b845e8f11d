"""The checks of a run of which one node is killed or stopped, for the tests of this folder."""
import espalier
from processes import HANG_S

DEADLINE = 2.0  # s


class Disturbed(espalier.Case):
    # Whether the others must end within twice the deadline, for which they need processors that nobody else keeps busy. In virtual time
    # they always must (collectives/simulation/failures_test.cc).
    in_time = False

    def check(self, provider, disturbance, victim, collective, size, ranks=16, after_ms=700, more=(), mesh=None):
        """All others end with one cause, which names the victim. Returns stderr of the run, and its ranks.

        Runs routed, or hop by hop on the links of a mesh that stays connected without the victim.
        """
        where = ["--topology", mesh, "--links", "hop-by-hop"] if mesh else ["--topology", f"complete:{ranks}"]
        status, found, error = espalier.run(*where, "--collective", collective, "--algorithm", "two-tree", "--provider", provider, "--bytes", size,
                                            "--back-to-back", 100_000_000, "--deadline", int(DEADLINE * 1000), disturbance,
                                            f"{victim}@{after_ms}", *more)
        self.assertEqual(status, 1, error)
        self.assertIsNotNone(found, error)
        nodes = found["runs"][0]["ranks"]
        self.assertEqual(len(nodes), ranks)
        causes = set()
        latest = 2 * DEADLINE if self.in_time else HANG_S
        for node in nodes:
            self.assertTrue(node["failed"], node)
            self.assertEqual(node.get("disturbed", False), node["rank"] == victim)
            if node["rank"] == victim:
                continue
            self.assertIn("cause", node, node["status"])
            causes.add((node["cause"]["status"], node["cause"]["detector"], node["cause"]["peer"]))
            self.assertLessEqual(node["after_disturbance_s"], latest, node["status"])
        self.assertEqual(len(causes), 1, causes)
        cause, detector, peer = causes.pop()
        self.assertEqual((cause, peer), ("dead link", victim), "the dead link, no live rank blamed")
        self.assertNotEqual(detector, victim)
        return error, nodes
