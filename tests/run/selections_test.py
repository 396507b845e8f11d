#!/usr/bin/python3
"""Selections on real processes: nodes choose by themselves, from schedule files and from images, what simulation chooses, with
bitwise the same results and logs on either side of a crossover; nodes with another table take no part."""
import unittest

import espalier

RANKS = 6
TOPOLOGY = f"complete:{RANKS}"


class Selections(espalier.FolderTest):
    def setUp(self):
        super().setUp()
        self.file = self.path / "s.esp"
        self.table = self.compile(self.file)
        self.rows = [row for row in self.table["rows"] if row["needs_commutative"]]
        self.assertGreaterEqual(len(self.rows), 2)
        self.above = self.rows[1]["from_bytes"]
        self.below = self.above - 4
        self.assertLess(self.above, 1 << 20, "a crossover that a test can reach")

    def compile(self, path, *more):
        return espalier.told("compile", "--topology", TOPOLOGY, "--collective", "allreduce", "-o", path, *more)["selection"]

    def run_file(self, *more, status=0):
        found, value, error = espalier.run(self.file, "--provider", "mem", *more)
        self.assertEqual(found, status, error)
        return value, error

    def row_of(self, size):
        return [row for row in self.rows if row["from_bytes"] <= size][-1]

    def test_results_and_logs_are_those_of_the_simulation(self):
        for size in self.below, self.above:
            with self.subTest(size=size):
                folders = [self.path / f"{what}-{size}" for what in ("simulated", "run")]
                words = [["--bytes", size, "--type", "f32", *espalier.keep("allreduce", folder)] for folder in folders]
                simulated = espalier.told("simulate", self.file, *words[0])
                value, _ = self.run_file(*words[1])
                self.assertEqual(value["algorithm"], self.row_of(size)["algorithm"])
                self.assertEqual(value["algorithm"], simulated["algorithm"])
                self.assertEqual(value["chosen"], simulated["chosen"])
                self.assertEqual(value["runs"][0]["blocks"], simulated["blocks"])
                found, expected = map(espalier.contents, folders)
                self.assertEqual(len(found), 2 * RANKS)
                self.assertEqual(found, expected)

    def test_sizes_of_several_schedules(self):
        value, _ = self.run_file("--bytes", f"8,{self.below},{self.above}")
        found = [(schedule["algorithm"], run["bytes"]) for schedule in value["schedules"] for run in schedule["runs"]]
        self.assertEqual(found, [(self.row_of(size)["algorithm"], size) for size in (8, self.below, self.above)])
        value, _ = self.run_file("--bytes", "8", "--op", "affine")
        first = [row for row in self.table["rows"] if not row["needs_commutative"]][0]
        self.assertEqual(value["algorithm"], first["algorithm"])
        _, error = self.run_file("--bytes", f"{self.below},{self.above}", "--kill", "1@10", status=2)
        self.assertIn("--kill is for one schedule, and the selection takes 2 for these sizes", error)

    def images(self, file, name):
        espalier.said("image", "build", file, "--board", espalier.ROOT / "boards/linux-x86_64", "--release", "1.0.0", "-o",
                      self.path / f"{name}-%r.img")
        return str(self.path / f"{name}-%r.img")

    def test_images_have_the_table(self):
        images = self.images(self.file, "node")
        value, _ = self.run_file("--image", images, "--unsigned", "--bytes", f"{self.below},{self.above}")
        self.assertEqual([schedule["algorithm"] for schedule in value["schedules"]],
                         [self.row_of(size)["algorithm"] for size in (self.below, self.above)])
        checked = espalier.call("--check", "--topology", TOPOLOGY, "--image", images, "--unsigned", "--node", 1,
                                program=espalier.NODE)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("boot: selection 0: programs 0 to", checked.stdout)
        self.assertIn(f"from {self.above} bytes, operators that commute: program ", checked.stdout)

    # Another model decides otherwise, and its digest is in the selection's.
    def test_nodes_with_another_table_take_no_part(self):
        model = self.path / "model.textproto"
        model.write_text("link { link_class: FABRIC line { alpha_ps: 40000000 beta_fs_per_byte: 1000000 } }\n")
        other = self.compile(self.path / "other.esp", "--model", model)
        self.assertNotEqual(other["digest"], self.table["digest"])
        self.images(self.file, "node")
        self.images(self.path / "other.esp", "other")
        (self.path / "other-2.img").replace(self.path / "node-2.img")
        value, error = self.run_file("--image", str(self.path / "node-%r.img"), "--unsigned", "--bytes", 8, status=1)
        self.assertIsNone(value)
        self.assertRegex(error, "rank 2 .*nodes of two releases run nothing together")


if __name__ == "__main__":
    unittest.main()
