#!/usr/bin/python3
"""Collectives on real processes: every rank's bytes against a reference made here.

run_test.py            a sample, a minute
run_test.py --whole    broadcast for p in 2, 3, 5, 8, 16, 23, roots 0, 1, p-1, sizes 0 to 64 MiB, over tcp and mem; and all of
                       collectives_test.py --whole
"""
import hashlib
import os
import pathlib
import sys
import tempfile
import unittest

import espalier

EDGES = [0, 1, 4095, 4096, 4097]
LARGE = 64 << 20
WHOLE = "--whole" in sys.argv


class Broadcast(espalier.FolderTest):
    def check(self, provider, ranks, root, sizes, algorithm="auto", topology=None):
        """One start, all sizes; the command's own checks."""
        status, found, error = espalier.run(
            "--topology", topology or f"complete:{ranks}", "--collective", "broadcast", "--algorithm", algorithm, "--root", root,
            "--provider", provider, "--bytes", ",".join(map(str, sizes)))
        where = f"{algorithm}, p = {ranks}, root {root}, {provider}: {error}"
        self.assertEqual(status, 0, where)
        found_runs = espalier.runs(found)
        self.assertEqual([run["bytes"] for run in found_runs], sizes, where)
        for run in found_runs:
            self.assertEqual(len({rank["pid"] for rank in run["ranks"]}), ranks, where)
            self.assertEqual(len({rank["sha256"] for rank in run["ranks"]}), 1, where)
            self.assertEqual([rank["rank"] for rank in run["ranks"] if rank["checked"]],
                             [rank for rank in range(ranks) if rank != root], where)
            self.assertTrue(all(rank["right"] for rank in run["ranks"] if rank["checked"]), where)

    def test_sizes_around_a_page(self):
        cases = ([(p, root) for p in (2, 3, 5, 8, 16, 23) for root in sorted({0, 1, p - 1})] if WHOLE else
                 [(2, 1), (3, 2), (5, 1), (16, 0)])
        for provider in ("tcp", "mem"):
            for ranks, root in cases:
                with self.subTest(provider=provider, ranks=ranks, root=root):
                    self.check(provider, ranks, root, EDGES + ([LARGE] if WHOLE else [1 << 20]))

    def test_shared_processors_are_named(self):
        """The time of nodes that take turns is not that of a fabric: said in the text and in the JSON, unless nodes may be elsewhere."""
        words = [*espalier.what("complete:3", "broadcast", "chain"), "--provider", "mem", "--bytes", "64"]
        line = "3 nodes share 1 processor and take turns"
        all_processors = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(all_processors)})
        try:
            done = espalier.run_text(*words)
            self.assertIn(line, done.stdout, done.stderr)
            self.assertEqual(espalier.run(*words)[1]["processors"], 1)
            elsewhere = [*words, "--launch-prefix", "env NODE=%r"]
            self.assertNotIn("take turns", espalier.run_text(*elsewhere).stdout)
            self.assertNotIn("processors", espalier.run(*elsewhere)[1])
        finally:
            os.sched_setaffinity(0, all_processors)

    def test_named_algorithms(self):
        for algorithm in ("two-tree", "chain", "binary", "binomial"):
            with self.subTest(algorithm=algorithm):
                self.check("mem", 7, 3, [0, 4097, 300000], algorithm)

    def test_authenticated_payloads(self):
        """Short messages, and long ones, whose code needs another write."""
        words = [*espalier.what("complete:5", "allreduce", "two-tree"), "--authenticate-data"]
        found = self.right(*words, "--provider", "tcp", "--bytes", "0,4096,4MiB")
        for run in espalier.runs(found):
            self.assertTrue(all(rank["right"] for rank in run["ranks"]), run)
        status, _, error = espalier.run(*words, "--provider", "mem", "--bytes", "8")
        self.assertEqual((status, error), (2, "espalier: --authenticate-data: mem cannot authenticate payloads; expected --provider tcp\n"))

    def test_a_provider_for_joined_programs(self):
        words = [*espalier.what("complete:2", "barrier", "dissemination"), "--provider", "mem+tcp"]
        status, _, error = espalier.run(*words)
        self.assertEqual((status, error), (2, "espalier: --provider mem+tcp is for programs that join a job; expected tcp, mem or another\n"))

    def test_auto_takes_a_schedule_for_each_size(self):
        words = ["--topology", "complete:8", "--collective", "allreduce", "--provider", "mem", "--type", "u8", "--bytes"]
        found = self.right(*words, "8,16,4MiB")
        self.assertEqual(found["algorithm"], "auto")
        self.assertEqual([len(schedule["runs"]) for schedule in found["schedules"]], [2, 1])
        self.assertEqual([run["bytes"] for run in espalier.runs(found)], [8, 16, 4 << 20])
        names = [schedule["algorithm"] for schedule in found["schedules"]]
        self.assertNotEqual(*names)
        for schedule, size in zip(found["schedules"], ("8 bytes", "4194304 bytes")):
            self.assertIn(f"chosen for {size}", schedule["chosen"])
            self.assertIn("default constants", schedule["chosen"])
        done = espalier.run_text(*words, "8,4MiB")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in names:
            self.assertRegex(done.stdout, f"auto: {name}.*, chosen for")
        done = espalier.run_text(*words, "8,4MiB", "--kill", "1@5")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--kill is for one schedule, and auto takes 2", done.stderr)
        # Operators that do not commute keep the order of ranks.
        self.right(*words[:6], "--op", "affine", "--bytes", "8")

    def test_topologies_from_files(self):
        examples = pathlib.Path(__file__).parents[2] / "examples/topologies"
        for name, ranks in (("broken-mesh", 16), ("uneven-tree", 10)):
            with self.subTest(topology=name):
                self.check("mem", ranks, 1, [0, 4097, 300000], topology=f"file:{examples / name}.textproto")

    def test_a_large_message(self):
        self.check("tcp", 3, 1, [LARGE])
        self.check("mem", 3, 2, [LARGE])

    def test_one_schedule_file_serves_every_size(self):
        file = espalier.compile(self.path / "b.esp", "complete:4")
        before = file.read_bytes()
        for sizes in ("1", str(LARGE)):
            self.right("--bytes", sizes, file)
        self.assertEqual(file.read_bytes(), before)

    def test_a_file_reaches_every_rank(self):
        message = pathlib.Path(espalier.NODE).read_bytes()
        out = self.path / "out"
        found = self.right(*espalier.what("complete:6", "broadcast", "two-tree"), "--root", 1, "--input", espalier.NODE, "--output", out)
        self.assertEqual(sorted(entry.name for entry in out.iterdir()), [f"rank-{rank}.bin" for rank in range(6)])
        for rank in range(6):
            self.assertEqual((out / f"rank-{rank}.bin").read_bytes(), message)
            self.assertEqual(found["runs"][0]["ranks"][rank]["sha256"], hashlib.sha256(message).hexdigest())

    def test_one_rank(self):
        self.check("tcp", 1, 0, [0, 5])

    def test_repetitions_are_timed(self):
        found = self.right(*espalier.what("complete:4", "broadcast", "two-tree"), "--bytes", "8,64KiB", "--repeat", 5, "--warmup", 2)
        for run, size in zip(found["runs"], (8, 65536)):
            self.assertEqual(run["bytes"], size)
            self.assertEqual(len(run["times_s"]), 5)
            self.assertEqual(len(run["span_s"]), 5)
            self.assertTrue(all(seconds > 0 for seconds in run["times_s"]))

    def test_back_to_back(self):
        for provider in ("tcp", "mem"):
            self.right(*espalier.what("complete:5", "broadcast", "two-tree"), "--bytes", "0,8,5000,70000", "--back-to-back", 500,
                       "--provider", provider)

    def test_blocks_with_checksums(self):
        self.right(*espalier.what("complete:5", "broadcast", "two-tree"), "--bytes", "1000000", "--check-blocks")

    def test_through_a_prefix_with_addresses(self):
        found = self.right(*espalier.what("complete:3", "broadcast", "two-tree"), "--launch-prefix", "env RANK=%r", "--address",
                           "127.0.0.%n")
        self.assertEqual(len({rank["pid"] for rank in found["runs"][0]["ranks"]}), 3)


class Simulated(espalier.Case):
    """A run leaves the files that its simulation leaves, to the byte: results, and what every node did."""

    def same(self, folder, topology, collective, algorithm, bytes, *words, root=0):
        file = espalier.compile(folder / "s.esp", topology, collective, algorithm, root=root)
        espalier.said("simulate", file, "--bytes", bytes, *words, *espalier.keep(collective, folder / "simulated"), "--jitter", 0.5)
        self.right(file, "--bytes", bytes, *words, *espalier.keep(collective, folder / "real"), "--provider", "mem")
        real = espalier.contents(folder / "real")
        self.assertEqual(espalier.contents(folder / "simulated"), real)
        return real

    def test_files(self):
        cases = [("complete:5", "broadcast", "two-tree", 70000, [], 2, 5, 5),
                 ("complete:4", "allreduce", "chain", 40000, ["--type", "i16", "--op", "max"], 0, 4, 4),
                 ("complete:4", "scan", "chain", 4096, ["--op", "affine"], 0, 4, 4),
                 ("complete:3", "barrier", "dissemination", 0, [], 0, 0, 3),
                 ("fattree:k=2,h=2,c=1", "gather", "leaf", 1000, [], 1, 1, 7)]
        for topology, collective, algorithm, bytes, words, root, results, nodes in cases:
            with self.subTest(collective=collective), tempfile.TemporaryDirectory() as folder:
                found = self.same(pathlib.Path(folder), topology, collective, algorithm, bytes, *words, root=root)
                self.assertEqual(len([name for name in found if name.endswith(".bin")]), results)
                logs = [content for name, content in found.items() if name.endswith(".events")]
                self.assertEqual(len(logs), nodes)
                for log in logs:
                    self.assertTrue(log and len(log) % 16 == 0, len(log))


class Reductions(espalier.Case):
    def test_types_and_operators(self):
        cases = [("reduce", "two-tree", 7, 0, "f32", "sum"), ("reduce", "chain", 6, 5, "f64", "product"),
                 ("allreduce", "two-tree", 8, 0, "i32", "sum"), ("allreduce", "chain", 5, 0, "bf16", "max"),
                 ("allreduce", "two-tree", 3, 0, "u8", "xor"), ("allreduce", "two-tree", 2, 0, "f16", "sum"),
                 ("reduce", "two-tree", 16, 15, "i64", "min"), ("reduce", "chain", 1, 0, "f32", "sum")]
        for provider in ("tcp", "mem"):
            for collective, algorithm, ranks, root, kind, operator in cases:
                with self.subTest(provider=provider, collective=collective, algorithm=algorithm, ranks=ranks):
                    found = self.right(*espalier.what(f"complete:{ranks}", collective, algorithm), "--root", root, "--type", kind, "--op",
                                       operator, "--bytes", "0,8,40000,1MiB", "--repeat", 2, "--provider", provider)
                    checked = [rank["rank"] for rank in found["runs"][0]["ranks"] if rank["checked"]]
                    self.assertEqual(checked, list(range(ranks)) if collective == "allreduce" else [root])


if WHOLE:
    from collectives_test import Collectives, Routers, Together  # noqa: F401

if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--whole"], verbosity=2)
