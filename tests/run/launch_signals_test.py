#!/usr/bin/env python3
"""Signals to `espalier launch` and `espalier run`: what the launcher does with them, and what it inherits from its parent.

A sample of signals.py; ESPALIER_WHOLE=1 takes all 1,000 signals.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import signals
from espalier import COMMAND, NODE
from processes import HANG_S, stat, wait_for
from sample import seed

SAMPLE = 30


def start(*words, stdout=subprocess.PIPE, ignored=(), **more):
    def prepare():
        signals.prepare_child()
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
    return subprocess.Popen([COMMAND, "launch", *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True,
                            start_new_session=True, preexec_fn=prepare, **more)


class Launch(unittest.TestCase):
    def ends(self, job, status):
        out, errors = job.communicate(timeout=HANG_S)
        self.assertEqual(job.returncode, status, out + errors)
        return out

    def test_the_first_signal_reaches_the_ranks_and_ends_the_job(self):
        for name in signals.SIGNALS:
            number = getattr(signal, f"SIG{name}")
            job = start("-n", "2", "sh", "-c", f"trap 'echo told; exit 0' {name}; echo ready; while :; do sleep 0.05; done")
            self.assertEqual([job.stdout.readline()[4:] for _ in range(2)], ["ready\n"] * 2)
            job.send_signal(number)
            self.assertEqual(sorted(self.ends(job, 0).splitlines()), ["[0] told", "[1] told"], name)

    def test_a_second_signal_kills_the_ranks(self):
        for first, second in (("TERM", "INT"), ("INT", "HUP"), ("HUP", "TERM"), ("QUIT", "QUIT")):
            job = start("-n", "2", "sh", "-c", "trap '' TERM INT HUP QUIT; echo ready; while :; do sleep 0.05; done")
            for _ in range(2):
                job.stdout.readline()
            job.send_signal(getattr(signal, f"SIG{first}"))
            time.sleep(0.2)
            self.assertIsNone(job.poll(), first)
            job.send_signal(getattr(signal, f"SIG{second}"))
            self.ends(job, 128 + signal.SIGKILL)

    def test_ranks_that_go_on_are_killed_after_the_grace_time(self):
        job = start("-n", "2", "--grace", "1", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
        for _ in range(2):
            job.stdout.readline()
        began = time.monotonic()
        job.send_signal(signal.SIGTERM)
        self.ends(job, 128 + signal.SIGKILL)
        self.assertGreaterEqual(time.monotonic() - began, 1)

    def test_ignored_signals_stay_ignored(self):
        ignored = (signal.SIGHUP, signal.SIGUSR1)
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        program = f"echo ready; while [ ! -e {folder}/go ]; do sleep 0.05; done; grep SigIgn /proc/self/status"
        job = start("-n", "2", "sh", "-c", program, ignored=ignored)
        for _ in range(2):
            job.stdout.readline()
        for number in ignored:
            job.send_signal(number)
        time.sleep(0.3)
        pathlib.Path(folder, "go").touch()
        masks = {int(line.split()[-1], 16) for line in self.ends(job, 0).splitlines()}
        self.assertEqual(masks, {sum(1 << (number - 1) for number in ignored)})

    def test_sigchld_ignored_by_the_parent(self):
        job = start("-n", "2", "sh", "-c", "true; echo ok; grep SigIgn /proc/self/status", ignored=(signal.SIGCHLD,))
        self.assertEqual(sorted(self.ends(job, 0).splitlines()),
                         sorted(f"[{rank}] {text}" for rank in range(2) for text in ("ok", "SigIgn:\t0000000000000000")))
        done = subprocess.run([COMMAND, "run", "--node-binary", NODE, "--topology", "complete:2", "--bytes", "8"], capture_output=True,
                              check=False, timeout=HANG_S, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_reader_that_does_not_read_delays_no_signal(self):
        for streams in ({}, {"stderr": subprocess.STDOUT}):
            pipe, end = os.pipe()
            words = [COMMAND, "launch", "-n", "2", "sh", "-c", "yes; :"]
            job = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=end, **{"stderr": subprocess.DEVNULL, **streams},
                                   start_new_session=True, preexec_fn=signals.prepare_child)
            os.close(end)
            time.sleep(1)  # until the pipe is full
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                job.send_signal(number)
                time.sleep(0.1)
            self.assertIn(job.wait(HANG_S), (128 + signal.SIGTERM, 128 + signal.SIGKILL))
            os.close(pipe)

    def test_a_stopped_launcher_stops_its_ranks(self):
        job = start("-n", "2", "sh", "-c", "echo $$; exec sleep 1000")
        ranks = [int(job.stdout.readline()[4:]) for _ in range(2)]
        job.send_signal(signal.SIGTSTP)
        self.assertTrue(wait_for(lambda: [stat(pid)[1] for pid in (job.pid, *ranks)] == ["T"] * 3))
        job.send_signal(signal.SIGCONT)
        self.assertTrue(wait_for(lambda: "T" not in [stat(pid)[1] for pid in (job.pid, *ranks)]))
        job.send_signal(signal.SIGTERM)
        self.ends(job, 128 + signal.SIGTERM)


class Run(unittest.TestCase):
    def test_a_stopped_launcher_blames_no_node(self):
        words = [COMMAND, "run", "--node-binary", NODE, "--topology", "complete:2", "--collective", "allreduce", "--bytes", "8",
                 "--provider", "mem", "--deadline", "100", "--back-to-back", "1000000000"]
        job = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=signals.prepare_child)
        time.sleep(3)
        job.send_signal(signal.SIGSTOP)
        time.sleep(4.5)  # silent for more than 2 D + 3 s, after which a launcher gives a node up
        job.send_signal(signal.SIGCONT)
        time.sleep(1.5)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGTERM)
        out, errors = job.communicate(timeout=HANG_S)
        self.assertEqual((job.returncode, out, errors), (1, "", "espalier: broken off: Terminated\n"))


class Campaign(unittest.TestCase):
    def test_no_signal_is_lost(self):
        whole = os.environ.get("ESPALIER_WHOLE") == "1"
        words = ["--trials", "1000"] if whole else ["--trials", str(SAMPLE), "--seed", str(seed()), "--jobs", "2"]
        done = subprocess.run([sys.executable, signals.__file__, *words], capture_output=True, text=True, check=False)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
