#!/usr/bin/python3
"""One of 16 nodes is killed, or stopped, in the middle of collectives: all others end with one cause.

kill_test.py [--times K] [--provider P]    (default: once, over tcp and mem; with --times the others also end within twice the
                                           deadline, which needs processors that nobody else keeps busy)
"""
import re
import sys
import unittest

import disturbed
import espalier

TIMES = int(sys.argv[sys.argv.index("--times") + 1]) if "--times" in sys.argv else 1
PROVIDERS = [sys.argv[sys.argv.index("--provider") + 1]] if "--provider" in sys.argv else ["tcp", "mem"]


class Kill(disturbed.Disturbed):
    in_time = "--times" in sys.argv

    def test_killed(self):
        for time in range(TIMES):
            for provider in PROVIDERS:
                for victim, collective, size in ((5, "allreduce", 4096), (0, "broadcast", 1 << 20), (15, "reduce", 8)):
                    with self.subTest(provider=provider, victim=victim, collective=collective, time=time):
                        self.check(provider, "--kill", victim, collective, size)

    def test_stopped(self):
        for time in range(TIMES):
            for provider in PROVIDERS:
                for victim, collective, size in ((5, "allreduce", 4096), (0, "broadcast", 1 << 20)):
                    with self.subTest(provider=provider, victim=victim, collective=collective, time=time):
                        self.check(provider, "--stop", victim, collective, size)

    def test_on_a_mesh(self):
        """With an endpoint for each link to a neighbour and no others: the cause goes from node to node."""
        for time in range(TIMES):
            for provider in PROVIDERS:
                for disturbance, victim, collective, size in (("--kill", 5, "allreduce", 4096),
                                                              ("--stop", 0, "broadcast", 1 << 20)):
                    with self.subTest(provider=provider, disturbance=disturbance, victim=victim, time=time):
                        self.check(provider, disturbance, victim, collective, size, mesh="mesh:4x4")

    def test_counts_the_collectives_of_all_repetitions(self):
        status, found, error = espalier.run("--topology", "mesh:2x2", "--collective", "allreduce", "--bytes", 8, "--provider", "mem",
                                            "--repeat", 1_000_000, "--stop", "2@1000", "--deadline", 500)
        self.assertEqual(status, 1, error)
        runs = found["runs"][0]
        counts = [int(re.search(r"; (\d+) collectives were complete since the start$", node["status"])[1]) for node in runs["ranks"] if node["rank"] != 2]
        self.assertGreater(min(counts), 0)
        self.assertLessEqual(max(counts) - min(counts), 1, counts)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
