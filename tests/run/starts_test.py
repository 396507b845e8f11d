#!/usr/bin/python3
"""Nodes that another command starts: espalier run --start."""
import pathlib
import unittest

import espalier

WHAT = [*espalier.what("complete:8", "allreduce", "two-tree"), "--bytes", "8,100000"]


class Starts(espalier.FolderTest):
    def test_the_shell_makes_the_words(self):
        """Quotes, variables and redirections; %r and %n."""
        node = self.path / "a node"
        node.symlink_to(espalier.NODE)
        self.assertEqual(espalier.run(*WHAT, "--start", f"3,5-6=\"{node}\" 2>'{self.path}/%r and %n'")[0], 0)
        self.assertEqual(sorted(path.name for path in self.path.iterdir()), ["3 and 4", "5 and 6", "6 and 7", "a node"])

    def test_each_has_a_process_and_the_others_share(self):
        found = self.right(*WHAT, "--nodes-per-process", 3, "--start", f"3=env A=1 {espalier.NODE}", "--start", f"5,6={espalier.NODE}")
        pids = [rank["pid"] for rank in found["runs"][-1]["ranks"]]
        self.assertEqual([pids.index(pid) for pid in pids], [0, 0, 0, 3, 4, 5, 6, 7])

    def test_what_does_not_start_is_named(self):
        for command, words in (("/nothing/here %r", "ended with status 127; it was started as: /nothing/here 5"),
                               ("sleep 0; exit 3 #", "ended with status"),
                               (f"{espalier.NODE} --surplus", "unknown option --surplus")):
            with self.subTest(command=command):
                done = espalier.run_text(*WHAT, "--start", f"5={command}")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                said = (done.stderr.splitlines() or [""])
                self.assertTrue(any(words in line for line in said), done.stderr)
                self.assertIn("rank 5", said[-1])

    def test_a_kill_meets_the_node(self):
        status, found, error = espalier.run(*WHAT[:-1], 4096, "--back-to-back", 1000000, "--deadline", 500, "--kill", "3@300",
                                            "--start", f"3={espalier.NODE}")
        self.assertEqual(status, 1, error)
        ranks = found["runs"][0]["ranks"]
        self.assertIn("killed by signal 9", ranks[3]["status"])
        for rank in ranks[:3] + ranks[4:]:
            self.assertEqual((rank["cause"]["status"], rank["cause"]["peer"]), ("dead link", 3))

    def test_a_hostile_node(self):
        """One line names the node, the number and its limit; nothing is read beyond a packet, and no escape is printed."""
        for how, says in (("words", "one\\x1b[2Jtwo\\x0athree\\x9b4m"),
                          ("lanes", "its Hello has 4294967295 lanes; expected at most 128"),
                          ("address", "its Hello has an address of 2147483648 bytes; expected at most 256"),
                          ("log", "reports a log of 2147483648 records"),
                          ("retired", "2147483648 of them retired; expected at most"),
                          ("ready", "sent Ready while loading its schedule"), ("mapped", "sent Mapped while running"),
                          ("flag", "reports record 0 of its log with a flag that is neither 0 nor 1"),
                          ("kind", "reports record 0 of its log of kind 255; expected a send"),
                          ("waiting", "sent a packet that is not part of the control protocol"),
                          ("link", "reports record 0 of its log on link 200; expected one of its")):
            with self.subTest(how=how):
                hostile = f"'{pathlib.Path(__file__).parent}/hostile.py' {how} '{espalier.NODE}'"
                done = espalier.run_text(*WHAT[:-1], 4096, "--trace", self.path / "trace", "--start", f"5={hostile}")
                said = done.stdout + done.stderr
                self.assertEqual(done.returncode, 1, said)
                lines = [line for line in said.splitlines() if says in line]
                self.assertEqual(len(lines), 1, said)
                self.assertIn("rank 5", lines[0])
                self.assertTrue(said.replace("\n", "").isprintable(), said)


if __name__ == "__main__":
    unittest.main()
