#!/usr/bin/env python3
"""The bounds of measure.py next to those that the verifier certifies and to the steps of proven schedules, and near.py on three hosts.

measure_test.py BUILD
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
import lab as cables
import measure

BUILD = None
SHAPES = [shape for shape in cables.SHAPES if shape != "islands"]


def of_all(shape, collective, per_host=1):
    """The bound as a multiple of the whole message."""
    size = 1 << 20 if collective not in measure.PER_RANK else 8192 * per_host * cables.size_of(shape)
    return measure.bound_bytes(cables.SHAPES[shape], per_host, collective, size) / size


class Bounds(unittest.TestCase):
    def certified(self, folder, shape, collective):
        """What the verifier says of packed trees on the shape."""
        lanes = {ends: cables.SHAPES[shape].count(ends) for ends in cables.SHAPES[shape]}
        links = "".join(f"link {{ from: {a} to: {b} capacity: {count} }}\n" for (a, b), count in lanes.items())
        topology, schedule = pathlib.Path(folder, "graph"), pathlib.Path(folder, "schedule")
        topology.write_text(f'name: "graph"\nranks: {cables.size_of(shape)}\n{links}', encoding="utf-8")
        espalier = measure.Programs(BUILD).espalier
        subprocess.run([espalier, "compile", "--topology", f"file:{topology}", "--collective", collective, "--algorithm", "packed-trees", "--links", "hop-by-hop",
                        "-o", schedule], check=True, capture_output=True)
        return json.loads(subprocess.run([espalier, "verify", schedule, "--format", "json"], check=True, capture_output=True).stdout)

    def test_no_schedule_is_faster_and_cuts_are_those_of_the_verifier(self):
        with tempfile.TemporaryDirectory() as folder:
            for shape in SHAPES:
                for collective in ("broadcast", "allreduce", "allgather", "reduce-scatter"):
                    found, mine = self.certified(folder, shape, collective), of_all(shape, collective)
                    segments = found["certificate"]["segments"]
                    cut = max(bound["b"] / bound["d"] / segments for bound in found["certificate"]["bounds"])
                    with self.subTest(shape=shape, collective=collective):
                        self.assertGreaterEqual(found["steps_at_most"] * (1 + 1e-9), mine * segments * found["proven_blocks"])
                        if collective == "allreduce":  # here all directions together limit the rate more than a cut may
                            self.assertGreaterEqual(mine * (1 + 1e-9), cut)
                        else:
                            self.assertAlmostEqual(mine, cut)

    def test_known_bounds(self):
        for shape, bound in {"triangle": 2 / 3, "ring4": 3 / 4, "line4": 1, "star5": 1, "four-less-one": 3 / 5, "mesh3x3": 2 / 3}.items():
            self.assertAlmostEqual(of_all(shape, "allreduce"), bound)
        self.assertAlmostEqual(of_all("line4", "all-to-all", 2), 2)  # 4 ranks send 4 of 8 parts each over the middle
        self.assertAlmostEqual(of_all("line4", "scatter", 2), 3 / 4)
        self.assertAlmostEqual(of_all("star5", "scatter"), 1 / 5)
        self.assertEqual(of_all("mesh3x3", "barrier"), 0)


class Near(unittest.TestCase):
    def test_nodes_on_three_hosts(self):
        if reason := cables.refusal():
            self.skipTest(reason)
        done = subprocess.run([sys.executable, HERE / "near.py", BUILD, "--shapes", "triangle", "--collectives", "allreduce", "allgather", "--nodes", "packed-trees",
                               "--bytes", "65536", "--mbits", "100", "--turns", "1", "--repeat", "1", "--management", "last"],
                              capture_output=True, text=True, check=True)
        rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| triangle")]
        self.assertEqual([row[1:3] for row in rows], [["allreduce", "packed-trees"], ["allgather", "packed-trees"]])
        for row in rows:
            self.assertGreater(float(row[7]), 0.5)  # nothing is twice as fast as sockets
            self.assertGreater(float(row[3]), 1)
        self.assertRegex(done.stderr, r"triangle: 0\.\d\d% of the bytes over the management network")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
