#!/usr/bin/env python3
"""espalier-bench under several launchers: every collective, right results, and what it refuses.

bench_test.py ESPALIER BENCH
A launcher that is not installed is skipped with its reason.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from launchers import AS_ROOT, environment, start_slurm

ESPALIER, BENCH = (os.path.abspath(path) for path in sys.argv[1:3])
COLLECTIVES = ["broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather", "reduce-scatter", "all-to-all",
               "barrier"]
HANG_S = 300  # what has not ended by then never will


def bench(launcher, *words, env=None):
    return subprocess.run([*launcher, BENCH, *words], env=env or environment(**AS_ROOT), capture_output=True, text=True, timeout=HANG_S, check=False)


def launch(ranks):
    return [ESPALIER, "launch", "-n", str(ranks)]


class Bench(unittest.TestCase):
    def test_every_collective_is_right(self):
        """As text, warm and cold; also with persistent plans, with a root, with shared buffers, and over each provider."""
        for words in ((), ("--persistent", "--root", "2"), ("--provider", "tcp"), ("--provider", "mem", "--op", "max", "--type", "i16"),
                      ("--provider", "mem", "--persistent"), ("--shared",)):
            done = bench(launch(4), "--bytes", "8,20000", "--repeat", "2", "--warmup", "1", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            # An algorithm's parameters are more words.
            lines = [re.sub(r", (radix|run length) \d+", "", line).removeprefix("[0] ").split() for line in done.stdout.splitlines()]
            rows = lines[2:]
            self.assertEqual([row[1] for row in rows], [name for name in COLLECTIVES for _ in (0, 1)][:-1])
            for row in rows:
                self.assertEqual(len(row), len(lines[1]) - 2, row)  # "warm us" and "cold us" are two words
                self.assertEqual(row[-1], "0", row)
                self.assertGreater(min(float(row[6]), float(row[7])), 0, row)

    def test_a_dead_link_names_the_deadline(self):
        """Rank 1 is stopped, as if others kept the processors busy for longer than the deadline."""
        stops = f'if [ "$ESPALIER_RANK" = 1 ]; then (sleep 4; kill -STOP $$) & fi; exec "{BENCH}" "$@"'
        done = subprocess.run([*launch(2), "--kill-on-failure", "sh", "-c", stops, "bench", "--deadline", "700", "--bytes", "8", "--repeat", "1000000"],
                              capture_output=True, text=True, timeout=HANG_S, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"dead link.*; a rank that says nothing for 700\.000 ms counts as dead \(--deadline\)")

    def check_json(self, name, words, env=None):
        done = bench(words, "--collective", "allreduce,scatter", "--bytes", "1KiB", "--repeat", "5", "--format", "json", "--start", "warm",
                     env=env)
        self.assertEqual(done.returncode, 0, (name, done.stderr))
        rows = json.loads("".join(line.removeprefix("[0] ") + "\n" for line in done.stdout.splitlines()))
        self.assertEqual([(row["collective"], row["bytes"], row["ranks"], row["wrong"], len(row["warm_s"])) for row in rows],
                         [("allreduce", 1024, 3, 0, 5), ("scatter", 1024, 3, 0, 5)], name)
        for row, moved, share in zip(rows, (1024, 3 * 1024), (4 / 3, 2 / 3)):
            self.assertAlmostEqual(row["algbw_bytes_per_s"] * sorted(row["warm_s"])[2], moved)
            self.assertAlmostEqual(row["busbw_bytes_per_s"], row["algbw_bytes_per_s"] * share)
            self.assertNotIn("cold_s", row)

    def test_json_under_each_launcher(self):
        launchers = {"espalier": launch(3), "mpirun.openmpi": ["mpirun.openmpi", "--oversubscribe", "-n", "3"],
                     "mpiexec.mpich": ["mpiexec.mpich", "-n", "3"]}
        for name, words in launchers.items():
            if not shutil.which(words[0]):
                print(f"{name}: skipped, not installed")
                continue
            self.check_json(name, words)
        with contextlib.ExitStack() as ends:
            slurm, reason = start_slurm(ends)
            if not slurm:
                print(f"srun: skipped, {reason}")
                return
            for kind in slurm.kinds():
                self.check_json(f"srun --mpi={kind}", ["srun", "-O", f"--mpi={kind}", "-n", "3"], slurm.env)

    def test_schedules(self):
        """A schedule serves its collective and root; one that serves nothing that is measured is refused."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "s.esp")
            subprocess.run([ESPALIER, "compile", "--topology", "complete:3", "--collective", "reduce", "--algorithm", "chain", "--root", "1",
                            "-o", file], check=True, stdout=subprocess.DEVNULL)
            measured = ("--bytes", "1KiB", "--repeat", "1", "--schedule", file)
            done = bench(launch(3), *measured, "--root", "1", "--collective", "reduce,barrier")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f" {file} ", done.stdout.splitlines()[2])
            for words in (("--collective", "broadcast", "--root", "1"), ("--collective", "reduce")):
                done = bench(launch(3), *measured, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(f"--schedule '{file}': reduce with root 1 is not measured; expected another --collective or --root, or no such "
                              "schedule", done.stderr)

    def test_refusals(self):
        for words, line in (
            (["--collective", "allreduces"], "unknown collective 'allreduces'; 'espalier list' names all"),
            (["--collective", "broadcast", "--op", "sum"], "none of the collectives combines; expected no --op and no --type"),
            (["--collective", "reduce", "--op", "summ"], "summ"),
            (["--collective", "reduce", "--bytes", "6"], "6 bytes"),
            (["--bytes", "1x"], "--bytes '1x'"),
            (["--root", "0x"], "--root '0x'"),
            (["--root", "1"], "--root 1 is not one of 1 rank"),
            (["--repeat", "0"], "--repeat '0'"),
            (["--schedule", "/no/such"], "the schedule: cannot read '/no/such'"),
            (["--provider", "none such"], 'provider "none such": libfabric has no such provider'),
            (["--provider", "shm"], 'provider "shm": a peer that is stopped or killed can block all processes that share its memory; expected mem'),
            (["--authenticate"], "unknown option '--authenticate'"),
        ):
            done = bench([], *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (words, done.stderr))
            self.assertIn(line, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
