#!/usr/bin/python3
"""A node over shm is killed, or stopped, while it holds the lock of its own or of a peer's queue in shared memory.

hold.cc keeps the victim waiting there until the signal arrives, so the test does not depend on luck. Skipped with libfabric 2.x, whose lock the
interposer does not find (docs/using.md): a process that needs a lock of a stopped peer waits inside libfabric 2.1 without limit.

queue_lock_test.py [--times K]    (default: once; with --times the others also end within twice the deadline, which needs processors
                                  that nobody else keeps busy)
"""
import ctypes
import os
import re
import sys
import unittest

import disturbed
import espalier

LIBRARY = os.environ.get("ESPALIER_HOLD", str(espalier.ROOT / "build/tests/run/libhold.so"))
TIMES = int(sys.argv[sys.argv.index("--times") + 1]) if "--times" in sys.argv else 1


def libfabric_version():
    """Returns (major, minor)."""
    version = ctypes.CDLL("libfabric.so.1").fi_version()
    return version >> 16, version & 0xffff


class QueueLock(disturbed.Disturbed):
    in_time = "--times" in sys.argv

    def hold(self, whose, count, disturbance, victim, collective, size, ranks, mesh=None):
        with self.subTest(whose=whose, count=count, disturbance=disturbance, victim=victim, ranks=ranks, mesh=mesh):
            prefix = (f"env LD_PRELOAD={LIBRARY} HOLD_MY_RANK=%r HOLD_RANK={victim} HOLD_WHOSE={whose} "
                      f"HOLD_COUNT={count}")
            held = []
            # On a busy machine the victim may not have reached that lock yet. All delays are below the deadline, before
            # which no node may declare a waiting victim dead.
            for after_ms in (500, 1000, 1500, 1500, 1500):
                error, nodes = self.check("shm", disturbance, victim, collective, size, ranks, after_ms,
                                          ("--launch-prefix", prefix), mesh)
                held = re.findall(r"holds /dev/shm/(\d+):", error)
                if held:
                    break
            self.assertEqual(len(held), 1, f"the signal came before the victim stood there: {error}")
            owner = [node["rank"] for node in nodes if node["pid"] == int(held[0])]
            self.assertEqual(owner == [victim], whose == "own", (owner, error))
            left = [name for name in os.listdir("/dev/shm") if name.split(":")[0] in {str(node["pid"]) for node in nodes}]
            self.assertEqual(left, [])

    def test_own(self):
        for _ in range(TIMES):
            self.hold("own", 1, "--stop", 5, "allreduce", 4096, 16)
            self.hold("own", 20, "--kill", 0, "broadcast", 1 << 20, 16)
            self.hold("own", 5, "--stop", 1, "allreduce", 8, 2)

    def test_peer(self):
        for _ in range(TIMES):
            self.hold("peer", 1, "--stop", 5, "allreduce", 4096, 16)
            self.hold("peer", 3, "--kill", 5, "allreduce", 4096, 16)
            self.hold("peer", 30, "--stop", 0, "broadcast", 1 << 20, 16)
            self.hold("peer", 2, "--kill", 15, "reduce", 8, 16)
            self.hold("peer", 2, "--stop", 0, "allreduce", 8, 2)
            self.hold("peer", 3, "--kill", 2, "allreduce", 4096, 3)

    def test_on_a_mesh(self):
        """Each link has queues of its own there: a victim that holds the lock of one blocks no other link."""
        for _ in range(TIMES):
            self.hold("own", 20, "--kill", 5, "allreduce", 4096, 16, "mesh:4x4")
            self.hold("peer", 3, "--stop", 6, "allreduce", 4096, 16, "mesh:4x4")
            self.hold("peer", 30, "--kill", 0, "broadcast", 1 << 20, 16, "mesh:4x4")


if __name__ == "__main__":
    if libfabric_version() >= (2, 0):
        print("skipped: the interposer does not find the lock of shm of libfabric {}.{}".format(*libfabric_version()))
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
