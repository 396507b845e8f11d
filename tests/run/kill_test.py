#!/usr/bin/python3
"""One of 16 nodes is killed, or stopped, in the middle of collectives: all others end in time with one cause.

kill_test.py [--times K]    (default 1)
"""
import sys
import unittest

import espalier

RANKS = 16
DEADLINE = 2.0  # s
TIMES = int(sys.argv[sys.argv.index("--times") + 1]) if "--times" in sys.argv else 1


class Kill(unittest.TestCase):
    def check(self, provider, disturbance, victim, collective, size):
        status, found, error = espalier.run(
            "--topology", f"complete:{RANKS}", "--collective", collective, "--algorithm", "two-tree", "--provider",
            provider, "--bytes", size, "--back-to-back", 100_000_000, "--deadline", int(DEADLINE * 1000), disturbance,
            f"{victim}@700")
        self.assertEqual(status, 1, error)
        ranks = found["runs"][0]["ranks"]
        self.assertEqual(len(ranks), RANKS)
        causes = set()
        for rank in ranks:
            self.assertTrue(rank["failed"], rank)
            self.assertEqual(rank.get("disturbed", False), rank["rank"] == victim)
            if rank["rank"] == victim:
                continue
            self.assertIn("cause", rank, rank["status"])
            causes.add((rank["cause"]["status"], rank["cause"]["detector"], rank["cause"]["peer"]))
            self.assertLessEqual(rank["after_disturbance_s"], 2 * DEADLINE, rank["status"])
        self.assertEqual(len(causes), 1, causes)
        status, detector, peer = causes.pop()
        self.assertEqual((status, peer), ("dead link", victim), "the dead link, no live rank blamed")
        self.assertNotEqual(detector, victim)

    def test_killed(self):
        for time in range(TIMES):
            for provider in ("tcp", "shm"):
                for victim, collective, size in ((5, "allreduce", 4096), (0, "broadcast", 1 << 20), (15, "reduce", 8)):
                    with self.subTest(provider=provider, victim=victim, collective=collective, time=time):
                        self.check(provider, "--kill", victim, collective, size)

    def test_stopped(self):
        for time in range(TIMES):
            for provider in ("tcp", "shm"):
                for victim, collective, size in ((5, "allreduce", 4096), (0, "broadcast", 1 << 20)):
                    with self.subTest(provider=provider, victim=victim, collective=collective, time=time):
                        self.check(provider, "--stop", victim, collective, size)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
