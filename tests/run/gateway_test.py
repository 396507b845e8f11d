#!/usr/bin/python3
"""Ranks on other hosts and on bare metal, behind gateways: every collective, kills, disagreements, lost frames. The boards here are the
bare-metal node as a process of this host (espalier-bare-hosted); tests/hil runs the same on emulated ones."""
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import unittest

import boards
import espalier
import processes
import wire
from boards import BOARD, GATEWAY, HOSTED

REMOTE = f"5,6={GATEWAY} --node-command 'sh -c \"cd /; exec {espalier.NODE} --stdio\"'"


class BadWire(wire.Wire):
    """Frames get lost, come twice, overtake each other, are damaged."""

    def __init__(self, ends):
        self.random, self.lost, self.held = random.Random(1), 0, [None, None]
        super().__init__(ends)

    def carry(self, side, frame):
        frame = bytearray(frame)
        fate = self.random.random()
        send = [frame]
        if fate < 0.03:
            self.lost += 1
            send = []
        elif fate < 0.05:
            send = [frame, frame]
        elif fate < 0.07:
            self.held[side], send = frame, [self.held[side]] if self.held[side] else []
        elif fate < 0.08:
            frame[self.random.randrange(len(frame))] ^= 1 << self.random.randrange(8)
        for each in send:
            self.send(side, each)


class Boards(boards.BoardTest):
    def test_every_collective(self):
        """Eight ranks, four of them boards; logs and results as without boards."""
        files = {collective: self.compile(collective) for collective in espalier.COLLECTIVES}
        for board in (1, 4, 5, 6):
            self.flash(board, *files.values())
        for at, (collective, file) in enumerate(files.items()):
            provider = ("tcp", "mem")[at % 2]
            with self.subTest(collective=collective, provider=provider):
                words = [file, "--bytes", "0" if collective == "barrier" else "8,4000,24000", "--deadline", 20000, "--provider", provider]
                ends = []
                for name, start in (("boards", self.start("1,4-6")), ("hosts", [])):
                    folder = self.path / f"{name}-{collective}"
                    self.right(*words, *start, *espalier.keep(collective, folder))
                    ends.append(espalier.contents(folder))
                self.assertEqual(ends[0], ends[1])
        print(f"{len(files)} collectives over gateways", flush=True)

    def test_boards_choose_as_the_others(self):
        """With a selection every node chooses by itself: Linux nodes by the file, boards by their images."""
        board = self.path / "board.textproto"
        board.write_text((BOARD / "board.textproto").read_text().replace("limits {", "limits { selections: 1"))
        file = self.path / "s.esp"
        made = espalier.told("compile", "--topology", "complete:4", "--collective", "allreduce", "--board", board, "-o", file)
        rows = made["selection"]["rows"]
        self.assertFalse(any(row["needs_commutative"] for row in rows), "then they are others for sum")
        above = rows[1]["from_bytes"]
        self.assertLess(above, 24000, "boards have room for the message")
        for node in (1, 2):
            self.flash(node, file, description=board)
        for size in (above - 4, above):
            results = []
            for name, start in (("boards", self.start("1,2")), ("hosts", [])):
                folder = self.path / f"{name}-{size}"
                found = self.right(file, "--bytes", size, "--deadline", 20000, *start, *espalier.keep("allreduce", folder))
                self.assertEqual(found["algorithm"], rows[0 if size < above else 1]["algorithm"])
                results.append(espalier.contents(folder))
            self.assertEqual(results[0], results[1])

    def test_hop_by_hop(self):
        file = espalier.compile(self.path / "m.esp", "mesh:2x4", "allreduce", "chain", more=("--links", "hop-by-hop"))
        for board in (2, 5):
            self.flash(board, file)
        for provider in ("tcp", "mem"):
            found = self.right(file, "--bytes", "24000", "--deadline", 20000, "--provider", provider, *self.start("2,5"))
            self.assertEqual(found["links"], "hop-by-hop")

    def test_what_is_lost_is_named_by_boards_too(self):
        """A board, and a host."""
        file = self.compile("allreduce")
        for board in (3, 6):
            self.flash(board, file)
        for provider, how, lost, says in (("tcp", "--kill", 6, "killed by signal 9"), ("tcp", "--stop", 6, "silent"),
                                          ("tcp", "--kill", 4, ""), ("mem", "--kill", 4, "")):
            with self.subTest(provider=provider, how=how, lost=lost):
                status, found, error = espalier.run(file, "--bytes", "4000", "--back-to-back", 1000000, "--deadline", 2000, how,
                                                    f"{lost}@1500", "--provider", provider, *self.start("3,6"))
                self.assertEqual(status, 1, error)
                ranks = found["runs"][0]["ranks"]
                self.assertIn(says, ranks[lost]["status"])
                self.assertIn("mps2-an385" if lost == 6 else "", ranks[lost]["status"])
                for rank in ranks[:lost] + ranks[lost + 1:]:
                    self.assertEqual((rank["cause"]["status"], rank["cause"]["peer"]), ("dead link", lost), rank)
                    self.assertLess(rank["after_disturbance_s"], processes.HANG_S, rank)

    def test_a_board_ends_with_its_gateway(self):
        file = self.compile("broadcast", 2)
        self.flash(1, file)
        words = espalier.run_words(file, "--bytes", 8, "--back-to-back", 1000000000, *self.start("1"))
        running = subprocess.Popen([espalier.COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def boards():
                lines = f"{HOSTED}\0", f"--flash\0{self.path}/1.flash"
                return list(processes.living(lambda pid: all(line in processes.read(pid, "cmdline") for line in lines)))
            self.assertTrue(processes.wait_for(boards))
            os.kill(processes.stat(boards()[0])[2], signal.SIGKILL)
            self.assertTrue(processes.wait_for(lambda: not boards()))
        finally:
            running.terminate()
            running.wait()

    def over_a_bad_wire(self, file, **keys):
        """Runs it on board 3 behind a wire that loses frames. Returns stderr."""
        with BadWire([(self.path / "h3", self.path / "g3"), (self.path / "w3", self.path / "b3")]) as bad:
            status, found, error = espalier.run(file, "--bytes", "24000", "--repeat", 10, "--deadline", 20000, *self.start("3", wired=True,
                                                                                                                           **keys))
            self.assertEqual(status, 0, f"{error}{found}")
        self.assertGreater(bad.lost, 10)
        return error

    def test_through_a_bad_wire(self):
        file = self.compile("allreduce")
        self.flash(3, file)
        self.over_a_bad_wire(file)

    def test_what_does_not_fit_is_said(self):
        file = self.compile("allreduce")
        other = self.compile("broadcast")
        for what, flash, words, says in (
                ("nothing to boot", lambda: (self.path / "3.flash").write_bytes(b"\xff" * (1 << 20)), [], "no image boots"),
                ("another node's image", lambda: self.flash(3, file, node=2), [], "its image is for node 2, expected one for 3"),
                ("another schedule", lambda: self.flash(3, other), [], "is of schedule"),
                ("no room", lambda: self.flash(3, file), ["--bytes", "1MiB"], "it has room for 262144 bytes of input"),
                ("no custom operators", lambda: self.flash(3, file), ["--op", "affine", "--bytes", 800], "bad operator")):
            with self.subTest(what=what):
                flash()
                self.fails(3, says, file, *(words or ["--bytes", "8"]), "--deadline", 500, *self.start("3"))

    def link_keys(self):
        for name in ("a.key", "b.key"):
            (self.path / name).write_bytes(os.urandom(16))
            (self.path / name).chmod(0o600)

    def test_boards_with_link_keys(self):
        """Over a line with noise, too. Two boards with the same key: a board's links have the names of its neighbours."""
        self.link_keys()
        file = self.compile("allreduce")
        for board in (3, 4):
            self.flash(board, file)
        status, found, error = espalier.run(file, "--bytes", "8,4000,24000", "--deadline", 20000, *self.start("3-4", keys=("a.key",
                                                                                                                           "a.key")))
        self.assertEqual((status, found["right"]), (0, True), f"{error}{found}")
        self.assertNotIn("dropped", error)
        self.assertIn("its code is wrong; the other end has another link key, the line has noise",
                      self.over_a_bad_wire(file, keys=("a.key", "a.key")))

    def test_link_keys_that_differ(self):
        """The gateway says so long before it gives up."""
        self.link_keys()
        file = self.compile("allreduce")
        self.flash(3, file)
        for keys, says in ((("a.key", "b.key"), "its code is wrong"), (("a.key", ""), "the other end has no link key"),
                           (("", "a.key"), "the other end has a link key, and this end has none")):
            with self.subTest(keys=keys):
                words = espalier.run_words(file, "--bytes", "8", *self.start("3", keys=keys))
                with subprocess.Popen([espalier.COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
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
        file = self.compile("allgather", 4)
        self.flash(3, file)
        self.fails(3, "its firmware takes one count for all ranks", file, "--counts", "8,8,8,9", *self.start("3"))


class Refusals(espalier.Case):
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
                self.refused(espalier.call(*words, program=GATEWAY), says)

    def test_bad_devices_are_told_to_the_launcher(self):
        for device, says in (("carrier-pigeon:a", "carrier-pigeon"), ("unix:/nothing/here/a,b", "/nothing/here/a"),
                             ("tty:/nothing/here,115200", "/nothing/here"), ("udp:70000,localhost:1", "70000")):
            with self.subTest(device=device):
                self.fails(1, says, "--topology", "complete:2", "--bytes", 8, "--start", f"1={GATEWAY} --device {device}")


class Remote(espalier.Case):
    def test_a_node_over_a_byte_stream(self):
        """sh in ssh's place."""
        for collective, algorithm in espalier.COLLECTIVES.items():
            with self.subTest(collective=collective), tempfile.TemporaryDirectory() as folder:
                ends = []
                for name, start in (("remote", ["--start", REMOTE]), ("here", [])):
                    out = pathlib.Path(folder, name)
                    self.right(*espalier.what("complete:8", collective, algorithm), "--bytes", "0" if collective == "barrier"
                               else "8,100000", *espalier.keep(collective, out), *start)
                    ends.append(espalier.contents(out))
                self.assertEqual(ends[0], ends[1])

    def test_a_count_for_each_rank_over_a_byte_stream(self):
        for collective, algorithm in (("scatter", "binomial"), ("all-to-all", "pairwise")):
            with self.subTest(collective=collective):
                self.right(*espalier.what("complete:8", collective, algorithm), "--counts", "random:4:90000", "--repeat", 2, "--start", REMOTE)

    def test_its_end_is_told(self):
        what = [*espalier.what("complete:4"), "--bytes", 8]
        for command, says in ((f"{espalier.NODE} --stdio --surplus", "unknown option --surplus"), ("/nothing/here", "status 127"),
                              ("true", "its host closed the connection"), ("yes", "not part of this protocol")):
            with self.subTest(command=command):
                self.fails(2, says, *what, "--start", f"2={GATEWAY} --node-command '{command}'")


if __name__ == "__main__":
    unittest.main()
