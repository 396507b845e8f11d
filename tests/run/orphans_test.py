#!/usr/bin/python3
"""Launchers that are killed, terminated or interrupted at random moments from 0 to 2 s leave nothing: no process and no file.
Every way to launch nodes gets its kills.

orphans_test.py [--kills K] [--only KIND,...] [--seed S]    (default: 2 kills of each kind)

The whole campaign: orphans_test.py --kills 200. The table at the end says how many kills came before the first node, while nodes
started, and while all of them ran.
"""
import argparse
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import espalier
from processes import descendants, has_memory, read, wait_for

GATEWAY = os.environ.get("ESPALIER_GATEWAY", str(espalier.ROOT / "build/firmware/gateway/espalier-gateway"))
HOSTED = os.environ.get("ESPALIER_BARE_HOSTED", str(espalier.ROOT / "build/firmware/bare/espalier-bare-hosted"))
BOARD = espalier.ROOT / "boards/mps2-an385"
NETWORK = f"espalier-orphans-{os.getpid()}"
MOMENTS_S = 2.0  # kills come within this time, half of them in its first eighth, while nodes start
HANG_S = 30.0  # what has not ended by then never will
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
MARK = "ESPALIER_ORPHANS"  # a variable that every descendant of a launcher inherits
NODE = espalier.NODE
REMOTE = """sh -c 'ip netns exec "$1" sh -c "$2"' rsh"""
RUN_WORDS = ["run", "--collective", "allreduce", "--algorithm", "two-tree", "--bytes", "4096", "--back-to-back", "1000000000",
             "--node-binary", NODE, "--topology"]
RUN = [*RUN_WORDS, "complete:8"]
MEASURE = ["measure", "--receivers", "2,4", "--repeat", "1000", "--node-binary", NODE]
TUNE = ["measure", "--candidates", "complete:8", "--model", "DEVICES/model", "--collective", "allreduce", "--rounds", "1000", "--node-binary",
        NODE, "-o", "DEVICES/tuned"]
# The process of the prefix is not the node's in "child"; the node leaves the process group in "session".
KINDS = {
    "tcp": [*RUN, "--provider", "tcp"],
    "tcp-64": [*RUN_WORDS, "complete:64", "--provider", "tcp"],
    "tcp-threads": [*RUN, "--provider", "tcp", "--nodes-per-process", "4"],
    "mem": [*RUN, "--provider", "mem"],
    "mem-threads": [*RUN, "--provider", "mem", "--nodes-per-process", "4"],
    "tcp-prefix": [*RUN, "--provider", "tcp", "--launch-prefix", "env A=%r"],
    "mem-child": [*RUN, "--provider", "mem", "--launch-prefix", "timeout 1000"],
    "tcp-netns": [*RUN, "--provider", "tcp", "--launch-prefix", f"ip netns exec {NETWORK}"],
    "tcp-start": [*RUN, "--provider", "tcp", "--start", f"0-7=env A=%r {shlex.quote(NODE)}"],
    "mem-session": [*RUN, "--provider", "mem", "--start", f"3,5=setsid {shlex.quote(NODE)}"],
    "gateway": [*RUN, "--provider", "tcp", "--start", f"1,4-6={GATEWAY} --node-command '{NODE} --stdio'"],
    "board": [*RUN, "--provider", "tcp", "--start", f"2,5={GATEWAY} --device unix:DEVICES/g%r,DEVICES/b%r --start '{HOSTED} "
              "--device unix:DEVICES/b%r,DEVICES/g%r --flash DEVICES/%r.flash --unsigned'"],
    "launch": ["launch", "-n", "8", "sleep", "1000"],
    "launch-netns": ["launch", "-n", "8", "--hosts", NETWORK, "--address", "127.0.0.1", "--rsh", REMOTE, "sleep", "1000"],
    "measure": [*MEASURE, "--provider", "mem"],
    "tune": [*TUNE, "--provider", "mem"],
}
MOMENTS = ("no node yet", "starting", "running", "ended")


class Kill:
    """One launcher and its end. left: a line on each thing that it left behind."""

    def __init__(self, words, number, moment_s, folder, devices):
        mark = f"{MARK}={os.getpid()}-{time.monotonic_ns()}"
        self.left = []
        environment = os.environ | dict([mark.split("=")]) | {"TMPDIR": str(folder)}
        launcher = subprocess.Popen([espalier.COMMAND, *[word.replace("DEVICES", str(devices)) for word in words]], cwd=folder,
                                    env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(moment_s)
        nodes = [pid for pid, name in descendants(mark).items() if name in ("espalier-node", "sleep")]
        self.moment = "ended" if launcher.poll() is not None else "no node yet" if not nodes \
            else "running" if all(has_memory(node) or "/sleep\n" in read(node, "maps") for node in nodes) else "starting"
        begin = time.monotonic()
        launcher.send_signal(number)
        try:
            launcher.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self.left.append("the launcher does not end")
        wait_for(lambda: not descendants(mark), HANG_S)
        orphans = descendants(mark)
        self.seconds = time.monotonic() - begin
        self.left += [f"process {pid} ({name})" for pid, name in orphans.items()]
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        launcher.wait()
        wait_for(lambda: not descendants(mark))
        for path in sorted(folder.rglob("*"), reverse=True):
            self.left.append(str(path))
            path.rmdir() if path.is_dir() else path.unlink()


class Orphans(unittest.TestCase):
    arguments = argparse.Namespace(kills=2, only=list(KINDS), seed=1)
    rows = []

    @classmethod
    def setUpClass(cls):
        dice = random.Random(cls.arguments.seed)
        count = cls.arguments.kills * len(cls.arguments.only)
        cls.moments = [((i + dice.random()) / count) ** 3 * MOMENTS_S for i in range(count)]
        dice.shuffle(cls.moments)

    @classmethod
    def tearDownClass(cls):
        print(f"\n{'kind':12} kills {'  '.join(f'{moment:>11}' for moment in MOMENTS)}  left something  longest until nothing is left")
        for kind, kills in cls.rows:
            counts = "  ".join(f"{sum(kill.moment == moment for kill in kills):11}" for moment in MOMENTS)
            print(f"{kind:12} {len(kills):5} {counts}  {sum(bool(kill.left) for kill in kills):14}  "
                  f"{max(kill.seconds for kill in kills):.2f} s")

    def prepare(self, kind, devices):
        if kind.endswith("-netns"):
            for words in (["netns", "add", NETWORK], ["-n", NETWORK, "link", "set", "lo", "up"]):
                done = subprocess.run(["ip", *words], capture_output=True, text=True)
                if done.returncode != 0:
                    self.skipTest(f"no network namespace: {done.stderr.strip()}")
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", NETWORK])
        if kind == "tune":
            espalier.said("measure", "--receivers", 2, "--repeat", 3, "--bytes", "8,64KiB", "--node-binary", NODE, "-o", devices / "model")
        if kind == "board":
            file = espalier.compile(devices / "s.esp", "complete:8", "allreduce")
            for node in (2, 5):
                espalier.make_flash(devices / f"{node}.flash", [file], BOARD, node)

    def check(self, kind):
        kills = []
        # Device sockets are the user's: a killed gateway leaves them, and the next one replaces them.
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/tmp") as devices:
            self.prepare(kind, pathlib.Path(devices))
            self.rows.append((kind, kills))
            offset = list(KINDS).index(kind)
            for i in range(self.arguments.kills):
                number, moment = SIGNALS[(offset + i) % len(SIGNALS)], self.moments.pop()
                with self.subTest(kind=kind, signal=number.name, after_s=round(moment, 4)):
                    kills.append(Kill(KINDS[kind], number, moment, pathlib.Path(folder), devices))
                    self.assertEqual(kills[-1].left, [], f"it was {kills[-1].moment}")
                    self.assertNotEqual(kills[-1].moment, "ended", "the launcher ended by itself")


def load_tests(loader, _, pattern):
    del pattern
    for kind in Orphans.arguments.only:
        setattr(Orphans, "test_" + kind.replace("-", "_"), lambda self, kind=kind: self.check(kind))
    return loader.loadTestsFromTestCase(Orphans)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=2, help="of each kind")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    Orphans.arguments = parser.parse_args()
    if unknown := set(Orphans.arguments.only) - set(KINDS):
        parser.error(f"unknown kind {unknown.pop()}; expected {', '.join(KINDS)}")
    if Orphans.arguments.kills < 1:
        parser.error("--kills: expected at least 1")
    sys.stdout.reconfigure(line_buffering=True)
    unittest.main(argv=sys.argv[:1])
