#!/usr/bin/env python3
"""espalier launch --cables over the hosts of lab.py, whose remote shell (rsh.sh) leads over single cables only.

launch_test.py ESPALIER FOUR
FOUR: the program of examples/four.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import lab as laboratory
from hosts import RSH, alone
from processes import HANG_S, living, read, wait_for

ESPALIER, FOUR = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
OVER_CABLES = str(HERE / "rsh.sh")


class Shape(unittest.TestCase):
    """The hosts of one shape."""
    SHAPE = None
    MANAGEMENT = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.lab = cls.enterClassContext(laboratory.Lab(cls.SHAPE, management=cls.MANAGEMENT))
        for name, pid in zip(cls.lab.names, cls.lab.holders):
            (cls.folder / name).write_text(str(pid))
        cls.lines = [f"{cls.lab.names[a]} {a_name} {cls.lab.names[b]} {b_name}" for a, a_name, b, b_name in cls.lab.cables]
        (cls.folder / "cables").write_text("\n".join(cls.lines) + "\n")

    def words(self, *words, host=0, rsh=OVER_CABLES):
        return self.lab.on(host, ["env", f"ESPALIER_LAB={self.folder}", ESPALIER, "launch", "--cables", "--rsh", rsh, *words])

    def launch(self, *words, text="", **where):
        return subprocess.run(self.words(*words, **where), input=text, capture_output=True, text=True, timeout=HANG_S, check=False)

    def topology(self, names=None, lines=None):
        """A file of the shape's hosts, as `espalier cables --topology` writes it."""
        names = names or self.lab.names
        path = self.folder / "topology"
        nodes = "".join(f'node {{ node: {k} name: "{name}" }}\n' for k, name in enumerate(names))
        cables = "".join('cable {{ end {{ host: "{}" interface: "{}" }} end {{ host: "{}" interface: "{}" }} }}\n'.format(*line.split())
                         for line in lines or self.lines)
        path.write_text(f'name: "cables"\nranks: {len(names)}\n{nodes}{cables}')
        return str(path)

    @contextlib.contextmanager
    def on_host(self, number, what, text):
        path = self.folder / f"{self.lab.names[number]}.{what}"
        path.write_text(text)
        try:
            yield
        finally:
            path.unlink()

    def assert_nothing_left(self, mark):
        self.assertTrue(wait_for(lambda: not living(lambda pid: mark in read(pid, "cmdline") or "launch-daemon" in read(pid, "cmdline"))))


class Triangle(Shape):
    SHAPE = "triangle"
    MANAGEMENT = "last"  # a switch, which is no cable

    def test_the_environment(self):
        program = "echo $ESPALIER_RANK $ESPALIER_SIZE $ESPALIER_CABLES,$ESPALIER_ADDRESS,$ESPALIER_SERVER $(stat -Lc %a $ESPALIER_SECRET_FILE)"
        done = self.launch("-n", "3", "sh", "-c", program)
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines()), done.stderr), (0, [f"[{k}] {k} 3 1,, 600" for k in range(3)], ""))
        # By names, the hosts are reached over the network beside.
        done = self.launch("-n", "6", "--hosts", ",".join(self.lab.names), "sh", "-c", f"echo $(hostname); {program}", rsh=RSH)
        lines = sorted([f"[{k}] box{k // 2}" for k in range(6)] + [f"[{k}] {k} 6 1,, 600" for k in range(6)])
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines()), done.stderr), (0, lines, ""))
        done = subprocess.run([ESPALIER, "launch", "-n", "1", "sh", "-c", "echo $ESPALIER_CABLES."], env={**os.environ, "ESPALIER_CABLES": "1"},
                              capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((done.stdout, done.stderr), ("[0] .\n", ""))

    def test_a_file_names_the_hosts(self):
        done = self.launch("-n", "6", "--topology", self.topology(["box2", "box1", "box0"]), "hostname", host=1)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[{k}] box{2 - k // 2}" for k in range(6)])
        swapped = ["box0 to1 box2 to0", "box0 to2 box1 to0", self.lines[2]]
        done = self.launch("-n", "3", "--topology", self.topology(lines=swapped), "true")
        self.assertEqual(done.returncode, 0)
        for k in (1, 2):
            self.assertIn(f"espalier: to{k} of host box0 leads to host box{k}; expected host box{3 - k}, as {self.folder}/topology says\n", done.stderr)

    def test_missing_hosts(self):
        here = "at to1 of host box0"
        for what, text, reason in (("refuses", "ssh: connect to host x port 22: Connection refused\n", "ssh: connect to host x port 22: Connection refused"),
                                   ("runs", "exec /no/espalier launch-daemon", "sh: 1: exec: /no/espalier: not found"),
                                   ("runs", f"{sys.executable} {pathlib.Path(__file__).parents[1]}/run/hostile_daemon.py 0.0.1 x",
                                    f"it has Espalier 0.0.1; expected {version()}")):
            with self.on_host(1, what, text):
                for file in ((), ("--topology", self.topology())):
                    done = self.launch("-n", "3", *file, "true")
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    first, *others, last = done.stderr.splitlines()
                    self.assertRegex(first, f"^espalier: fe80::[0-9a-f:]+ {here}: {re.escape(reason)}$")
                    self.assertRegex(last, f"cables lead to 2 of 3 hosts, this one included; {'missing: box1' if file else 'expected cables and sshd'}")
                    self.assertTrue(all(re.match("espalier: fe80::[0-9a-f:]+ at to1 of host box2: ", line) for line in others), done.stderr)
        self.assert_nothing_left("true")

    def test_refusals(self):
        stranger = self.topology(["box0", "box1", "box7"], ["box0 to1 box1 to0", "box1 to2 box7 to1"])
        for words, line in (
            (["-n", "4", "true"], "cables lead to 3 of 4 hosts, this one included; expected cables and sshd on all, or fewer ranks (-n)"),
            (["-n", "3", "no-such-program"], "no program 'no-such-program'; expected an executable file"),
            (["-n", "3", "--interface", "eth7", "true"], "--interface 'eth7': 'eth7' names no"),
            (["-n", "3", "--topology", stranger, "true"], "cables lead to 2 of 3 hosts, this one included; missing: box7"),
            (["-n", "2", "--topology", stranger, "true"], "has 3 hosts, and 2 ranks leave some without a rank; expected a rank for each host"),
            (["-n", "4", "--slots", "1", "--topology", stranger, "true"], "the hosts have 3 slots; expected at least 4"),
            (["-n", "3", "--topology", "/no/file", "true"], "/no/file"),
            *(([option, "x", "-n", "3", "true"], option) for option in ("--address", "--job-file", "--join")),
            (["-n", "3", "--max-restarts", "1", "true"], "--max-restarts"),
            (["-n", "3", "--slots", "1", "--hosts", "a", "true"], "--slots"),
        ):
            done = self.launch(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (words, done.stderr))
            self.assertIn(line, done.stderr.splitlines()[-1], words)
        for words in (["--slots", "2"], ["--topology", stranger]):
            done = subprocess.run([ESPALIER, "launch", "-n", "2", *words, "true"], capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual((done.returncode, done.stderr), (2, f"espalier: {words[0]} is about hosts to which cables lead; expected --cables with it\n"))
        done = self.launch("-n", "3", "--topology", stranger, "true", host=2)
        self.assertIn("does not name this host, box2; expected a start on one of its hosts", done.stderr)


class Line(Shape):
    SHAPE = "line4"

    def test_an_example_runs_over_cables(self):
        done = self.launch("-n", "4", FOUR)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[{k}] rank {k} of 4: sum 10, data 42: right" for k in range(4)])

    def test_output_input_and_status(self):
        program = "[ $ESPALIER_RANK != 0 ] || cat; i=0; while [ $i -lt 200 ]; do echo $i $(hostname); i=$((i + 1)); done; exit $((ESPALIER_RANK == 7 ? 9 : 0))"
        done = self.launch("-n", "8", "--slots", "2", "sh", "-c", program, text="one\ntwo\n")
        self.assertEqual((done.returncode, done.stderr), (9, "espalier: rank 7 on host box3 ended with status 9\nespalier: the job failed\n"))
        for rank in range(8):
            lines = [line.removeprefix(f"[{rank}] ") for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
            self.assertEqual(lines, ["one", "two"] * (rank == 0) + [f"{k} box{rank // 2}" for k in range(200)])

    def test_signals_and_the_end(self):
        for number, told in ((signal.SIGINT, 4), (signal.SIGKILL, 0)):
            mark = f"espalier-cables-{number}"
            program = f": {mark}; trap 'echo told; exit 0' INT; echo ready; while :; do sleep 0.05; done"
            job = subprocess.Popen(self.words("-n", "4", "sh", "-c", program), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(sorted(job.stdout.readline() for _ in range(4)), [f"[{k}] ready\n" for k in range(4)])
            job.send_signal(number)
            said, _ = job.communicate(timeout=HANG_S)
            self.assertEqual(sorted(said.splitlines()), [f"[{k}] told" for k in range(told)])
            self.assert_nothing_left(mark)

    def test_the_first_failure_ends_the_others(self):
        done = self.launch("-n", "4", "--kill-on-failure", "sh", "-c", "[ $ESPALIER_RANK = 3 ] && exit 3; exec sleep 1000")
        self.assertEqual(done.returncode, 3, done.stderr)


class Ring(Shape):
    """Behind a cable that falls silent are two hosts; both have another way."""
    SHAPE = "ring4"

    def test_a_broken_cable(self):
        rsh, servers = str(HERE / "remote.py"), []
        for host in range(4):
            servers.append(self.enterContext(subprocess.Popen(self.lab.on(host, [rsh, "serve"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)))
            self.assertEqual(servers[-1].stdout.readline(), "ready\n")
        mark = "espalier-cables-broken"
        program = f": {mark}; i=0; while [ ! -e {self.folder}/over ] || [ $i -lt 20 ]; do echo $i; i=$((i + 1)); sleep 0.1; done; exit $ESPALIER_RANK"
        job = subprocess.Popen(self.words("-n", "4", "sh", "-c", program, rsh=rsh), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [job.stdout.readline() for _ in range(8)]
        behind = self.lab.cables[0]
        self.assertEqual((behind.a, behind.b), (0, 1))
        self.lab.set_silent(behind, True)
        errors = []
        while not any(re.match(r"espalier: host box1 \(fe80::[0-9a-f:]+ at to1 of host box2\) is reached again\n", line) for line in errors):
            errors.append(job.stderr.readline())
            self.assertNotEqual(errors[-1], "", errors)
        (self.folder / "over").touch()
        rest, last = job.communicate(timeout=HANG_S)
        self.assertRegex("".join(errors), r"espalier: host box1 \(fe80::[0-9a-f:]+ at to1 of host box0\) is silent: its cable")
        self.assertIn(job.returncode, (1, 2, 3), last)  # of the rank that ended first
        printed = [line.removesuffix("\n") for line in lines] + rest.splitlines()
        for rank in range(4):
            numbers = [int(line.split()[1]) for line in printed if line.startswith(f"[{rank}] ")]
            self.assertEqual(numbers, list(range(len(numbers))))
            self.assertGreaterEqual(len(numbers), 20)
        self.assert_nothing_left(mark)
        for server in servers:
            server.stdin.close()


class Others(unittest.TestCase):
    def test_each_host_once(self):
        for shape, words, ranks in (("mesh3x3", (), 9), ("star5", ("--slots", "2"), 10)):
            class Each(Shape):
                SHAPE = shape
            try:
                Each.setUpClass()
                each = Each()
                if shape == "star5":  # the system allows sockets for echo requests, as many do
                    subprocess.run(each.lab.on(0, ["sh", "-c", "echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range"]), check=True)
                done = each.launch("-n", str(ranks), *words, "hostname")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                names = sorted(each.lab.names * (ranks // len(each.lab.names)))
                self.assertEqual(sorted(line.split()[1] for line in done.stdout.splitlines()), names)
                self.assertEqual(sorted(int(line[1:line.index("]")]) for line in done.stdout.splitlines()), list(range(ranks)))
            finally:
                Each.doClassCleanups()


def version():
    return subprocess.run([ESPALIER, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


if __name__ == "__main__":
    if reason := laboratory.refusal():
        print(f"SKIP: no hosts can be made here: {reason}")
        sys.exit(77)
    alone()
    unittest.main(argv=sys.argv[:1])
