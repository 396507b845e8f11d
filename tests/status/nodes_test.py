#!/usr/bin/env python3
"""`espalier status` of `espalier run`: it names the node, router, board or cable that holds the run up, first, while it runs and by the
records alone.

nodes_test.py    The programs are those of tests/run: $ESPALIER, $ESPALIER_NODE, $ESPALIER_GATEWAY, $ESPALIER_BARE_HOSTED.
A cable is cut in a network namespace of its own, which needs root.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "run"), str(TESTS / "formats")]
import boards
import espalier
import schema
import wire
from processes import HANG_S, alive, wait_for

SCHEMA = json.loads((TESTS.parent / "docs/status.schema.json").read_text())
AFTER_S = 4.5  # from the fault to the end of a run of which the records are read; the others give signs for 3 s more than the culprit
ENDLESS = ["--bytes", 4096, "--back-to-back", 100_000_000]
COMPLETE = espalier.what("complete:6", "allreduce")


class Run:
    """A run with a folder for its records, which ends with the test."""

    def __init__(self, path, *words, before=()):
        path.mkdir(mode=0o700)
        self.path, self.environment = path, {**os.environ, "XDG_RUNTIME_DIR": str(path), "ESPALIER_RECORD": str(path / "records")}
        with open(path / "output", "wb") as output:
            command = [*before, espalier.COMMAND, *espalier.run_words(*words)]
            self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def ask(self, *words):
        """The answer's job; nothing without one. It keeps the schema."""
        time.sleep(0.2)  # other programs run, too
        done = subprocess.run([espalier.COMMAND, "status", "--json", *map(str, words)], env=self.environment, capture_output=True, text=True)
        if done.returncode == 1:
            return None
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert schema.check(found, SCHEMA) == [], schema.check(found, SCHEMA)
        assert len(found["jobs"]) == 1, found
        return found["jobs"][0]

    def text(self):
        return subprocess.run([espalier.COMMAND, "status"], env=self.environment, capture_output=True, text=True).stdout

    def suspected(self):
        """The job, once it has a suspect."""
        found = []

        def has_suspect():
            job = self.ask()
            if job and job["suspects"]:
                found.append(job)
            return bool(found)
        assert wait_for(has_suspect), (self.path / "output").read_text()
        return found[0]

    def kill(self):
        """Ends the launcher, and so all that it started."""
        pids = [rank["process"] for rank in (self.ask() or {"ranks": []})["ranks"]]
        self.process.kill()
        self.process.wait()
        assert wait_for(lambda: not any(map(alive, pids)))

    def close(self):
        if self.process.poll() is None:
            self.kill()


class Nodes(boards.BoardTest):
    def setUp(self):
        super().setUp()
        self.ends = contextlib.ExitStack()
        self.addCleanup(self.ends.close)
        self.runs = 0

    def held(self, *words, deadline=60_000, before=()):
        self.runs += 1
        run = Run(self.path / f"run-{self.runs}", *words, "--deadline", deadline, before=before)
        self.ends.callback(run.close)
        return run

    def is_first(self, job, kinds, ranks, text=""):
        first = job["suspects"][0]
        self.assertIn(first["kind"], kinds, first)
        self.assertEqual(first["ranks"], ranks, first)
        self.assertIn(text, first["text"])

    def test_a_stopped_node(self):
        """Over both providers, two nodes in a process, and a router. The runs are held up at the same time."""
        tree = espalier.what("fattree:k=4,h=1,c=1", "allreduce", "auto")
        cases = ((3, [3], "rank 3 (process", COMPLETE, ["--provider", "tcp"]), (4, [4], "rank 4 (process", COMPLETE, ["--provider", "mem"]),
                 (3, [2], "rank 2 (process", COMPLETE, ["--provider", "mem", "--nodes-per-process", 2]),
                 (4, [4], "router 4 (process", tree, ["--provider", "mem", "--links", "hop-by-hop"]))
        runs = [self.held(*what, *ENDLESS, "--stop", f"{victim}@500", *more) for victim, _, _, what, more in cases]
        for run, (_, first, text, what, _) in zip(runs, cases):
            with self.subTest(what=what, first=text):
                job = run.suspected()
                self.is_first(job, ["stopped"], first, text)
                ranks = {rank["rank"]: rank for rank in job["ranks"]}
                self.assertEqual(sorted(ranks), list(range(job["size"])))
                self.assertEqual(ranks[first[0]]["state"], "stopped")
                self.assertEqual(ranks[4]["role"], "router" if "router" in text else "rank")
                self.assertIn("  4 router " if "router" in text else "  4  ", run.text())
                self.assertTrue(wait_for(lambda: all(self.waits(rank) for rank in run.ask()["ranks"] if rank["state"] != "stopped")))
        self.assertTrue(wait_for(lambda: self.links_agree(runs[1])))
        time.sleep(AFTER_S)
        for run, (_, first, text, what, _) in zip(runs, cases):
            with self.subTest(what=what, first=text, records=True):
                run.kill()
                job = run.ask("--records", run.path / "records")
                self.assertTrue(job["has_ended"])
                self.is_first(job, ["stopped"], first, text)

    @staticmethod
    def waits(rank):
        """Whether the row says for which node it waits, in which step of how many of which call."""
        [communicator] = rank["communicators"]
        waits = communicator.get("waits", {})
        call = communicator["last_calls"][-1]
        return (0 <= waits.get("step", -1) <= waits.get("steps", -1) and waits["steps"] > 0 and "rank" in waits and
                (call["collective"], call["count"], call["type"], call["op"]) == ("allreduce", 1024, "f32", "sum") and
                call["number"] == communicator["calls_begun"] and call["algorithm"])

    @staticmethod
    def links_agree(run):
        """Whether what each node has sent per collective arrived, except from and to the stopped one."""
        ranks = {rank["rank"]: rank for rank in run.ask()["ranks"] if rank["state"] != "stopped"}
        done = {number: rank["communicators"][0]["calls_done"] for number, rank in ranks.items()}
        links = [(number, link["rank"], link) for number, rank in ranks.items() for link in rank["links"] if link["rank"] in ranks]
        sent = {(a, b): link["sent"] / done[a] for a, b, link in links}
        got = {(b, a): link["received"] / done[a] for a, b, link in links}
        return sum(sent.values()) > 0 and sent == got

    def test_a_killed_node(self):
        """The run fails at once; its records are left."""
        run = self.held(*COMPLETE, *ENDLESS, "--provider", "tcp", "--kill", "3@700", deadline=2000)
        self.assertEqual(run.process.wait(timeout=HANG_S), 1)
        self.assertIsNone(run.ask())
        job = run.ask("--records", run.path / "records")
        self.is_first(job, ["ended"], [3], "rank 3 (process")
        self.assertRegex(job["cause"], r"^allreduce of 1024 f32, sum failed: dead link: node \d found its link to node 3 dead$")

    def test_a_node_that_never_starts(self):
        run = self.held(*COMPLETE, *ENDLESS, "--provider", "mem", "--start", "3=sleep 1000 #")
        job = run.suspected()
        self.is_first(job, ["never started"], [3], "rank 3 never started: ranks 0, 1, 2, 4 and 5 wait for links")
        run.kill()
        self.is_first(run.ask("--records", run.path / "records"), ["never started"], [3])

    def test_a_cut_cable(self):
        if os.geteuid() != 0 or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            self.skipTest("only root may make network namespaces")
        script = 'ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0 && exec "$@"'
        run = self.held(*espalier.what("complete:2", "allreduce", "ring"), *ENDLESS, "--provider", "tcp", "--address", "127.0.1.%n",
                        before=["unshare", "-n", "sh", "-c", script, "sh"])
        self.assertTrue(wait_for(lambda: self.calls(run) > 10), (run.path / "output").read_text())
        inside = str(run.ask()["ranks"][0]["process"])
        for source, target in (("127.0.1.1", "127.0.1.2"), ("127.0.1.2", "127.0.1.1")):
            subprocess.run(["nsenter", "-t", inside, "-n", "ip", "rule", "add", "pref", "10", "from", source, "to", target, "blackhole"],
                           check=True)
        self.is_first(run.suspected(), ["cut"], [0, 1], "the link between ranks 0 and 1")
        run.kill()
        self.is_first(run.ask("--records", run.path / "records"), ["cut"], [0, 1])

    @staticmethod
    def calls(run):
        job = run.ask()
        done = [part["calls_done"] for rank in (job or {"ranks": []})["ranks"] for part in rank["communicators"]]
        return min(done) if job and len(done) == job["size"] else 0

    def test_boards(self):
        """One is stopped, one is cut from its gateway, one is killed, and one waits for a stopped host, as its answers tell. The runs are
        held up at the same time; each has another node as its board."""
        file = self.compile("allreduce", 4)
        for board in range(4):
            self.flash(board, file)
        at = self.path
        cable = self.ends.enter_context(Cable([(at / "w0", at / "b0"), (at / "h0", at / "g0")]))
        cut = self.held(file, *ENDLESS, *self.start("0", wired=True))
        stopped = self.held(file, *ENDLESS, "--stop", "1@700", *self.start("1"))
        killed = self.held(file, *ENDLESS, "--kill", "3@700", *self.start("3"), deadline=2000)
        host = self.held(file, *ENDLESS, "--stop", "1@700", *self.start("2"))
        self.assertTrue(wait_for(lambda: self.calls(cut) > 0), (cut.path / "output").read_text())
        cable.is_cut = True
        self.is_first(stopped.suspected(), ["stopped"], [1], "rank 1 (board mps2-an385 at unix:")
        self.assertIn("  1 board  ", stopped.text())
        self.is_first(host.suspected(), ["stopped"], [1], "rank 1 (process")
        self.is_first(cut.suspected(), ["stopped"], [0], "gives no sign")
        self.assertTrue(wait_for(lambda: self.waits(host.ask()["ranks"][2])), host.text())
        board = host.ask()["ranks"][2]
        self.assertEqual((board["role"], board["state"]), ("board", "waiting"))
        self.assertIn("mps2-an385 at unix:", board["board"])
        self.assertGreater(sum(link["sent"] for link in board["links"]), 0)
        self.assertEqual(killed.process.wait(timeout=HANG_S), 1)
        self.is_first(killed.ask("--records", killed.path / "records"), ["failed"], [3], "was killed by signal 9")
        time.sleep(AFTER_S)
        for run, first in ((stopped, 1), (cut, 0)):
            run.kill()
            self.is_first(run.ask("--records", run.path / "records"), ["stopped"], [first], f"rank {first} (board mps2-an385 at unix:")

    def test_a_run_that_ends_right_leaves_no_record(self):
        run = self.held(*COMPLETE, "--bytes", "8,4096", "--provider", "mem")
        self.assertEqual(run.process.wait(timeout=HANG_S), 0)
        self.assertEqual(list((run.path / "records").iterdir()), [])
        self.assertEqual(list((run.path / "espalier").iterdir()), [])

    def test_a_record_folder_that_cannot_be_used(self):
        done = subprocess.run([espalier.COMMAND, *espalier.run_words(*COMPLETE)], env={**os.environ, "ESPALIER_RECORD": "/proc/x"},
                              capture_output=True, text=True)
        self.refused(done, "ESPALIER_RECORD='/proc/x'; expected a folder that this process can write to")


class Cable(wire.Wire):
    is_cut = False

    def carry(self, side, frame):
        if not self.is_cut:
            self.send(side, frame)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
