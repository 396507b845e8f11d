#!/usr/bin/python3
"""Ranks on other hosts and on bare metal, behind gateways: every collective, kills, disagreements, lost frames. The boards here are the
bare-metal node as a process of this host (espalier-bare-hosted); tests/hil runs the same on emulated ones."""
import json
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import disturbed
import espalier

GATEWAY = os.environ.get("ESPALIER_GATEWAY", str(espalier.ROOT / "build/firmware/gateway/espalier-gateway"))
HOSTED = os.environ.get("ESPALIER_BARE_HOSTED", str(espalier.ROOT / "build/firmware/bare/espalier-bare-hosted"))
BOARD = espalier.ROOT / "boards/mps2-an385"
COLLECTIVES = [("broadcast", "two-tree"), ("reduce", "two-tree"), ("allreduce", "two-tree"), ("scan", "two-tree"), ("exscan", "chain"),
               ("scatter", "binomial"), ("gather", "binomial"), ("allgather", "ring"), ("reduce-scatter", "ring"),
               ("all-to-all", "pairwise"), ("barrier", "dissemination")]


class Wire:
    """Joins two unix datagram sockets, badly: frames get lost, come twice, overtake each other, are damaged."""

    def __init__(self, ends, seed):
        self.random = random.Random(seed)
        self.sockets = []
        for path, _ in ends:
            self.sockets.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            self.sockets[-1].bind(str(path))
        self.others = [str(other) for _, other in ends]
        self.lost = self.frames = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def carry(self):
        held = [None, None]
        while not self.ended.is_set():
            for ready in select.select(self.sockets, [], [], 0.05)[0]:
                side = self.sockets.index(ready)
                frame = bytearray(ready.recv(65536))
                self.frames += 1
                fate = self.random.random()
                send = [frame]
                if fate < 0.03:
                    self.lost += 1
                    send = []
                elif fate < 0.05:
                    send = [frame, frame]
                elif fate < 0.07:
                    held[side], send = frame, [held[side]] if held[side] else []
                elif fate < 0.08:
                    frame[self.random.randrange(len(frame))] ^= 1 << self.random.randrange(8)
                for each in send:
                    try:
                        self.sockets[1 - side].sendto(each, self.others[1 - side])
                    except OSError:
                        pass  # the receiver has not started, or has ended

    def end(self):
        self.ended.set()
        self.thread.join()
        for each in self.sockets:
            each.close()


class Boards(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir="/tmp")
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def flash(self, board, *schedules, node=None, description=BOARD):
        """A flash that boots these schedules' programs of the node. description: of the board."""
        flash = self.path / f"{board}.flash"
        flash.unlink(missing_ok=True)
        image = self.path / "image"
        for words in (["build", *schedules, "--board", description, "--node", board if node is None else node, "--release", "1.0.0",
                       "-o", image],
                      ["install", image, "--board", description, "--flash", flash, "--unsigned", "--confirmed"]):
            done = espalier.call("image", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            if words[0] == "install":
                image.unlink()
        return flash

    def start(self, boards, wired=False, keys=("", "")):
        """The words of --start for these boards. wired: gateway and board address the two ends of a Wire instead of each other. keys:
        the link keys of gateway and board, files in the test's folder."""
        at = self.path
        of_gateway, of_board = (f"--link-key {at}/{key}" if key else "" for key in keys)
        board, gateway = ("h%r", "w%r") if wired else ("b%r", "g%r")
        return ["--start", f"{boards}={GATEWAY} --device unix:{at}/g%r,{at}/{board} --console {at}/console-%r {of_gateway} --start '"
                f"{HOSTED} {of_board} --device unix:{at}/b%r,{at}/{gateway} --flash {at}/%r.flash --unsigned'"]

    def compile(self, collective, algorithm, ranks=8, root=0):
        return espalier.compile(self.path / f"{collective}.esp", f"complete:{ranks}", collective, algorithm, root)

    def test_every_collective(self):
        """Eight ranks, four of them boards; logs and results as without boards."""
        files = {collective: self.compile(collective, algorithm) for collective, algorithm in COLLECTIVES}
        for board in (1, 4, 5, 6):
            self.flash(board, *files.values())
        for at, (collective, file) in enumerate(files.items()):
            provider = ("tcp", "mem")[at % 2]
            with self.subTest(collective=collective, provider=provider):
                words = [file, "--bytes", "0" if collective == "barrier" else "8,4000,24000", "--deadline", 20000, "--provider", provider]
                ends = []
                for name, start in (("boards", self.start("1,4-6")), ("hosts", [])):
                    out = [word for what in espalier.kept(collective) for word in (f"--{what}", self.path / (name + what))]
                    status, found, error = espalier.run(*words, *start, *out)
                    self.assertEqual(status, 0, f"{error}{found}")
                    self.assertTrue(found["right"])
                    ends.append({path.name: path.read_bytes() for what in espalier.kept(collective)
                                 for path in (self.path / (name + what)).iterdir()})
                self.assertEqual(ends[0], ends[1])
        print(f"{len(files)} collectives over gateways", flush=True)

    def test_boards_choose_as_the_others(self):
        """With a selection every node chooses by itself: Linux nodes by the file, boards by their images."""
        board = self.path / "board.textproto"
        board.write_text((BOARD / "board.textproto").read_text().replace("limits {", "limits { selections: 1"))
        file = self.path / "s.esp"
        done = espalier.call("compile", "--topology", "complete:4", "--collective", "allreduce", "--board", board, "-o", file,
                             "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["selection"]["rows"]
        self.assertFalse(any(row["needs_commutative"] for row in rows), "then they are others for sum")
        above = rows[1]["from_bytes"]
        self.assertLess(above, 24000, "boards have room for the message")
        for node in (1, 2):
            self.flash(node, file, description=board)
        for size in (above - 4, above):
            results = []
            for name, start in (("boards", self.start("1,2")), ("hosts", [])):
                folder = self.path / f"{name}-{size}"
                status, found, error = espalier.run(file, "--bytes", size, "--deadline", 20000, *start, "--output", folder,
                                                    "--events", folder)
                self.assertEqual(status, 0, f"{error}{found}")
                self.assertEqual(found["algorithm"], rows[0 if size < above else 1]["algorithm"])
                results.append({path.name: path.read_bytes() for path in folder.iterdir()})
            self.assertEqual(results[0], results[1])

    def test_hop_by_hop(self):
        file = self.path / "m.esp"
        self.assertEqual(espalier.call("compile", "--topology", "mesh:2x4", "--collective", "allreduce", "--algorithm", "chain",
                                       "--links", "hop-by-hop", "-o", file).returncode, 0)
        for board in (2, 5):
            self.flash(board, file)
        for provider in ("tcp", "mem"):
            status, found, error = espalier.run(file, "--bytes", "24000", "--deadline", 20000, "--provider", provider, *self.start("2,5"))
            self.assertEqual(status, 0, f"{error}{found}")
            self.assertEqual(found["links"], "hop-by-hop")

    def test_a_lost_board_is_named(self):
        file = self.compile("allreduce", "two-tree")
        for board in (3, 6):
            self.flash(board, file)
        for how, says in (("--kill", "killed by signal 9"), ("--stop", "silent")):
            with self.subTest(how=how):
                status, found, error = espalier.run(file, "--bytes", "4000", "--back-to-back", 1000000, "--deadline", 2000, how,
                                                    "6@1500", *self.start("3,6"))
                self.assertEqual(status, 1, error)
                ranks = found["runs"][0]["ranks"]
                self.assertIn(says, ranks[6]["status"])
                self.assertIn("mps2-an385", ranks[6]["status"])
                for rank in ranks[:6] + ranks[7:]:
                    self.assertEqual((rank["cause"]["status"], rank["cause"]["peer"]), ("dead link", 6), rank)
                    self.assertLess(rank["after_disturbance_s"], disturbed.HANG_S, rank)

    def test_a_lost_host_is_named_by_boards_too(self):
        file = self.compile("allreduce", "two-tree")
        for board in (3, 6):
            self.flash(board, file)
        for provider in ("tcp", "mem"):
            status, found, error = espalier.run(file, "--bytes", "4000", "--back-to-back", 1000000, "--deadline", 2000, "--kill", "4@1500",
                                                "--provider", provider, *self.start("3,6"))
            self.assertEqual(status, 1, error)
            ranks = found["runs"][0]["ranks"]
            for rank in ranks[:4] + ranks[5:]:
                self.assertEqual((rank["cause"]["status"], rank["cause"]["peer"]), ("dead link", 4), rank)

    def test_a_board_ends_with_its_gateway(self):
        file = self.compile("broadcast", "two-tree", 2)
        self.flash(1, file)
        running = subprocess.Popen([espalier.COMMAND, "run", str(file), "--node-binary", espalier.NODE, "--bytes", "8",
                                    "--back-to-back", "1000000000", *self.start("1")],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            board = self.await_process(HOSTED, f"--flash {self.path}/1.flash")
            os.kill(self.parent(board), signal.SIGKILL)
            self.await_end(board)
        finally:
            running.terminate()
            running.wait()

    @staticmethod
    def processes():
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    pass

    def await_process(self, program, words):
        while True:
            for pid, line in self.processes():
                if line.startswith(program) and words in line:
                    return pid
            time.sleep(0.01)

    @staticmethod
    def parent(pid):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])

    def await_end(self, pid):
        while any(other == pid for other, line in self.processes() if line):
            time.sleep(0.01)

    def test_through_a_bad_wire(self):
        file = self.compile("allreduce", "two-tree")
        self.flash(3, file)
        wire = Wire([(self.path / "h3", self.path / "g3"), (self.path / "w3", self.path / "b3")], 1)
        try:
            status, found, error = espalier.run(file, "--bytes", "24000", "--repeat", 10, "--deadline", 20000,
                                                *self.start("3", wired=True))
            self.assertEqual(status, 0, f"{error}{found}")
        finally:
            wire.end()
        self.assertGreater(wire.lost, 10)

    def test_what_does_not_fit_is_said(self):
        file = self.compile("allreduce", "two-tree")
        other = self.compile("broadcast", "two-tree")
        for what, flash, words, says in (
                ("nothing to boot", lambda: (self.path / "3.flash").unlink(missing_ok=True), [], "no image boots"),
                ("another node's image", lambda: self.flash(3, file, node=2), [], "its image is for node 2, expected one for 3"),
                ("another schedule", lambda: self.flash(3, other), [], "is of schedule"),
                ("no room", lambda: self.flash(3, file), ["--bytes", "1MiB"], "it has room for 262144 bytes of input"),
                ("no custom operators", lambda: self.flash(3, file), ["--op", "affine", "--bytes", 800], "bad operator")):
            with self.subTest(what=what):
                flash()
                if what == "nothing to boot":
                    (self.path / "3.flash").write_bytes(b"\xff" * (1 << 20))
                done = espalier.call("run", file, "--node-binary", espalier.NODE, *(words or ["--bytes", "8"]), "--deadline", 500,
                                     *self.start("3"))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(says, done.stderr + done.stdout)
                self.assertIn("rank 3", done.stderr + done.stdout)

    def link_keys(self):
        for name in ("a.key", "b.key"):
            (self.path / name).write_bytes(os.urandom(16))
            (self.path / name).chmod(0o600)

    def test_boards_with_link_keys(self):
        """Over a line with noise, too. Two boards with the same key: a board's links have the names of its neighbours."""
        self.link_keys()
        file = self.compile("allreduce", "two-tree")
        for board in (3, 4):
            self.flash(board, file)
        status, found, error = espalier.run(file, "--bytes", "8,4000,24000", "--deadline", 20000,
                                            *self.start("3-4", keys=("a.key", "a.key")))
        self.assertEqual(status, 0, f"{error}{found}")
        self.assertTrue(found["right"])
        self.assertNotIn("dropped", error)
        wire = Wire([(self.path / "h3", self.path / "g3"), (self.path / "w3", self.path / "b3")], 2)
        try:
            status, found, error = espalier.run(file, "--bytes", "24000", "--repeat", 10, "--deadline", 20000,
                                                *self.start("3", wired=True, keys=("a.key", "a.key")))
            self.assertEqual(status, 0, f"{error}{found}")
        finally:
            wire.end()
        self.assertIn("its code is wrong; the other end has another link key, the line has noise", error)

    def test_link_keys_that_differ(self):
        """The gateway says so long before it gives up."""
        self.link_keys()
        file = self.compile("allreduce", "two-tree")
        self.flash(3, file)
        for keys, says in ((("a.key", "b.key"), "its code is wrong"), (("a.key", ""), "the other end has no link key"),
                           (("", "a.key"), "the other end has a link key, and this end has none")):
            with self.subTest(keys=keys):
                words = [espalier.COMMAND, "run", file, "--node-binary", espalier.NODE, "--bytes", "8", *self.start("3", keys=keys)]
                with subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
                    lines = []
                    for line in running.stderr:
                        lines.append(line)
                        if "dropped" in line:
                            break
                    running.terminate()
                    running.stderr.read()
                self.assertIn(says, lines[-1], lines)
                self.assertIn("the gateway dropped a frame of the agent's channel to ", lines[-1])

    def test_a_board_takes_one_count(self):
        file = self.compile("allgather", "ring", ranks=4)
        self.flash(3, file)
        done = espalier.call("run", file, "--node-binary", espalier.NODE, "--counts", "8,8,8,9", *self.start("3"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("its firmware takes one count for all ranks", done.stderr + done.stdout)
        self.assertIn("rank 3", done.stderr + done.stdout)


class Refusals(unittest.TestCase):
    def test_bad_command_lines(self):
        node = ["--node", 1, "--control", 3, "--schedule", "/nothing"]
        for words, says in (
                ([], "no --device; expected exactly one"),
                (["--device", "unix:a,b", "--node-command", "true", *node], "both --device and --node-command"),
                (["--node-command", "true", "--start", "true", *node], "--start applies only to a board at a --device"),
                (["--node-command", "true", "--link-key", "k", *node], "--link-key applies only to a board at a --device"),
                (["--node-command", "true", "--console", "log", *node], "--console applies only to a board at a --device"),
                (["--device", "unix:a,b", "--console", "log", *node], "expected --start as well"),
                (["--device", "unix:a,b", *node[:4], "--flash", "f", "--unsigned"], "--flash has no effect on a board at a --device"),
                (["--device", "unix:a,b", *node[:4], "--image=i", "--unsigned"], "--image has no effect on a board at a --device"),
                (["--device"], "no value after --device"), (["--device", "", *node], "no value after --device"),
                (["--device", "unix:a,b", *node, "--surplus"], "unknown option --surplus"),
                (["--device", "unix:a,b", *node, "--provider", "shm"], "share its memory; expected mem"),
                (["--device", "unix:a,b", "--schedule", "x", "--node", 1, "--check"], "one --node I and one --control FD"),
                (["--device", "unix:a,b", *node, "--node", 2, "--control", 4], "one --node I and one --control FD")):
            with self.subTest(words=words):
                done = espalier.call(*words, program=GATEWAY)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_bad_devices_are_told_to_the_launcher(self):
        for device, says in (("carrier-pigeon:a", "carrier-pigeon"), ("unix:/nothing/here/a,b", "/nothing/here/a"),
                             ("tty:/nothing/here,115200", "/nothing/here"), ("udp:70000,localhost:1", "70000")):
            with self.subTest(device=device):
                done = espalier.call("run", "--node-binary", espalier.NODE, "--topology", "complete:2", "--bytes", 8, "--start",
                                     f"1={GATEWAY} --device {device}")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertIn("rank 1", done.stderr)


class Remote(unittest.TestCase):
    def test_a_node_over_a_byte_stream(self):
        """sh in ssh's place."""
        command = f"5,6={GATEWAY} --node-command 'sh -c \"cd /; exec {espalier.NODE} --stdio\"'"
        for collective, algorithm in COLLECTIVES:
            with self.subTest(collective=collective), tempfile.TemporaryDirectory() as folder:
                ends = []
                for start in (["--start", command], []):
                    out = [word for what in espalier.kept(collective) for word in (f"--{what}", f"{folder}/{len(ends)}/{what}")]
                    status, found, error = espalier.run("--topology", "complete:8", "--collective", collective, "--algorithm", algorithm,
                                                        "--bytes", "0" if collective == "barrier" else "8,100000", *out, *start)
                    self.assertEqual(status, 0, f"{error}{found}")
                    ends.append({path.name: path.read_bytes() for path in pathlib.Path(folder, str(len(ends))).glob("*/*")})
                self.assertEqual(ends[0], ends[1])

    def test_a_count_for_each_rank_over_a_byte_stream(self):
        command = f"5,6={GATEWAY} --node-command 'sh -c \"cd /; exec {espalier.NODE} --stdio\"'"
        for collective, algorithm in (("scatter", "binomial"), ("all-to-all", "pairwise")):
            with self.subTest(collective=collective):
                status, found, error = espalier.run("--topology", "complete:8", "--collective", collective, "--algorithm", algorithm,
                                                    "--counts", "random:4:90000", "--repeat", 2, "--start", command)
                self.assertEqual(status, 0, f"{error}{found}")
                self.assertTrue(found["right"])

    def test_its_end_is_told(self):
        what = ["--topology", "complete:4", "--collective", "broadcast", "--algorithm", "two-tree", "--bytes", 8]
        for command, says in ((f"{espalier.NODE} --stdio --surplus", "unknown option --surplus"), ("/nothing/here", "status 127"),
                              ("true", "its host closed the connection"), ("yes", "not part of this protocol")):
            with self.subTest(command=command):
                done = espalier.call("run", "--node-binary", espalier.NODE, *what, "--start", f"2={GATEWAY} --node-command '{command}'")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(says, done.stderr)
                self.assertIn("rank 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
