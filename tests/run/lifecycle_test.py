#!/usr/bin/python3
"""A run leaves nothing behind, however it ends: no process, no temporary directory, no shared memory."""
import os
import signal
import socket
import subprocess
import unittest

import espalier
from processes import alive, has_memory, nodes as nodes_of, wait_for

ENDLESS = [*espalier.what("complete:4", "broadcast", "two-tree"), "--bytes", "4096", "--back-to-back", "1000000000", "--node-binary",
           espalier.NODE]


class Lifecycle(espalier.FolderTest):
    def start(self, *words):
        """Starts an endless run; returns, once all its nodes run, (process, pids of the nodes)."""
        process = subprocess.Popen([espalier.COMMAND, "run", *ENDLESS, *words], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=dict(os.environ, TMPDIR=str(self.path)))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)

        def running():
            self.assertIsNone(process.poll(), "the run ended by itself")
            nodes = nodes_of(process.pid)
            return len(nodes) == 4 and all(map(has_memory, nodes))

        self.assertTrue(wait_for(running))
        return process, nodes_of(process.pid)

    def test_interrupted(self):
        for provider in ("tcp", "mem"):
            for number in (signal.SIGINT, signal.SIGTERM):
                process, nodes = self.start("--provider", provider)
                process.send_signal(number)
                self.assertEqual(process.wait(), 1)
                self.assertIn("broken off", process.stderr.read())
                self.assertEqual([node for node in nodes if alive(node)], [])
                self.assertEqual(list(self.path.iterdir()), [])

    def test_the_launcher_is_killed(self):
        for provider in ("tcp", "mem"):
            process, nodes = self.start("--provider", provider)
            process.kill()
            process.wait()
            self.assertTrue(wait_for(lambda: not any(map(alive, nodes))))
            self.assertEqual(list(self.path.iterdir()), [])

    def test_a_node_ends_with_its_channel(self):
        file = espalier.compile(self.path / "b.esp", "complete:2")
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        node = subprocess.Popen([espalier.NODE, "--schedule", file, "--node", "1", "--control", str(theirs.fileno())],
                                pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True)
        theirs.close()
        self.assertTrue(mine.recv(65536), "its Hello")
        self.assertTrue(alive(node.pid))
        mine.close()
        self.assertEqual(node.wait(), 1)
        self.assertEqual(node.stderr.read(), "")
        node.stderr.close()

    def test_a_bar_while_nodes_start(self):
        """On a terminal alone, once it takes a second; it is cleared at the end."""
        slow = self.path / "slow"
        slow.write_text("#!/bin/sh\nsleep 1.5\nexec \"$@\"\n")
        slow.chmod(0o755)
        words = ["run", "--topology", "complete:4", "--bytes", "8", "--launch-prefix", slow, "--node-binary", espalier.NODE]
        leader, follower = os.openpty()
        done = subprocess.run([espalier.COMMAND, *words], stdout=subprocess.PIPE, stderr=follower)
        os.close(follower)
        shown = os.read(leader, 1 << 16).decode()
        os.close(leader)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(shown, r"\rstarting nodes \[[#.]{30}\] +\d+%")
        self.assertTrue(shown.endswith("\r\033[K"), shown)
        self.assertEqual(espalier.call(*words).stderr, "")

    def test_nodes_that_do_not_start(self):
        def fails(status, words, *texts):
            self.refused(espalier.call("run", *ENDLESS[:-2], *words), *texts, status=status)

        node = ["--node-binary", espalier.NODE]
        fails(1, ["--node-binary", "/bin/false"], "rank", "ended with status 1")
        fails(2, [*node, "--launch-prefix", "/nowhere/at/all"], "cannot run /nowhere/at/all")
        fails(2, [*node, "--launch-prefix", "env", "--address", "203.0.113.1"], "rank", "cannot open tcp on 203.0.113.1")
        fails(1, [*node, "--launch-prefix", "timeout -s KILL 0.001"], "rank", "killed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
