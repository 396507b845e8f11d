#!/usr/bin/python3
"""The runner of rigs on real nodes of this host: clusters, and that every bad image that it makes is refused for the expected
reason."""
import os
import subprocess
import unittest

import bad_image
import hil
import rig as rigs
import verdict
from hil_test import COMMAND, HERE, LIST, NODE, RIG, Folder

GATEWAY = os.environ.get("ESPALIER_GATEWAY", str(rigs.ROOT / "build/firmware/gateway/espalier-gateway"))
BARE = os.environ.get("ESPALIER_BARE", str(rigs.ROOT / "build/firmware/bare/espalier-bare-hosted"))


class Clusters(Folder):
    """Clusters of real nodes."""

    def run_real(self, rig, tests):
        done = subprocess.run([HERE / "hil.py", self.write(rig, tests), "--output", self.path / "out", "--espalier", COMMAND,
                               "--node", NODE], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_two_nodes(self):
        status, output = self.run_real(RIG.replace("/bin/true", NODE).replace("tests:", 'provider: "mem" deadline_ms: 1000 tests:'),
                                       LIST + 'kill {} refuse: "corrupted"')
        self.assertEqual(status, 0, output)
        self.assertIn("host-0 (rank 0) killed, named by all within", output)
        self.assertIn("host-0 (rank 0): corrupt", output)
        self.assertIn("3 passed, 0 failed", output)

    def test_behind_gateways(self):
        """A bare-metal node as a process of this host, on a carrier; a Linux node as if over ssh; and a node of this host."""
        far = self.path / "far"
        far.write_text("#!/bin/sh\nshift\nexec sh -c \"$*\"\n")  # like ssh on the other side
        far.chmod(0o755)
        rig = f"""name: "three" tests: "list" address: "127.0.0.1" deadline_ms: 2000
            device {{ name: "host" board: "boards/linux-x86_64" process {{ program: "{NODE}" }} }}
            device {{ name: "bare" board: "boards/mps2-an385" wire {{
              carrier: "unix:%s/gateway-%r,%s/board-%r" gateway: "{GATEWAY}"
              start: "{BARE} --device unix:%s/board-%r,%s/gateway-%r --flash %f --public-key %k" }} }}
            device {{ name: "far" board: "boards/linux-x86_64" ssh {{
              host: "nowhere" program: "{NODE}" address: "127.0.0.1" gateway: "{GATEWAY}" command: "{far}" }} }}"""
        tests = """topology: "complete:3" rotate: 1
            test { collective: "scan" algorithm: "two-tree" message { bytes: "5000" type: "u16" } }
            kill {} refuse: "unsigned" """
        status, output = self.run_real(rig, tests)
        self.assertEqual(status, 0, output)
        for name in ("bare (rank 1) killed", "bare (rank 1): unsigned"):
            self.assertIn(name, output)
        self.assertIn("7 passed, 0 failed", output)
        self.assertIn("slot 0: boots, confirmed", (self.path / "out/rotation-0/scan-two-tree-5000-sum-u16/console-bare").read_text())

    def test_on_cables(self):
        """Two bare-metal nodes as processes, on cables that lose, repeat and cut off bytes."""
        rig = f"""name: "two" tests: "list" deadline_ms: 2000
            device {{ name: "bare" board: "tests/hil/hosted" count: 2 wire {{
              cable {{ lose: 8000 repeat: 8000 cut: 8000 }} gateway: "{GATEWAY}" program: "{BARE}"
              start: "%p --device tty:%c,115200 --flash %f --public-key %k --board hosted" }} }}"""
        status, output = self.run_real(rig, LIST.replace('"8"', '"4KiB"') + 'kill {} refuse: "wrong-node"')
        self.assertEqual(status, 0, output)
        self.assertRegex(output, "cables: [0-9]+ bytes carried, [1-9][0-9]* lost, [1-9][0-9]* repeated, [1-9][0-9]* cuts")
        self.assertIn("bare-0 (rank 0): its image is for node 1, expected one for 0", output)
        self.assertIn("3 passed, 0 failed", output)

    def test_a_device_that_ends(self):
        board = self.path / "board"
        board.write_text("#!/bin/sh\necho no board on this cable >&2\nexit 3\n")
        board.chmod(0o755)
        one = RIG.splitlines()[1].replace("count: 2", "").replace("/bin/true", NODE)
        other = one.replace('"host"', '"lost"').replace(NODE, str(board))
        status, output = self.run_real("\n".join([RIG.splitlines()[0], one, other]), LIST)
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"FAILED .*no report: espalier: rank 1")
        self.assertIn("no board on this cable", next((self.path / "out/rotation-0").glob("*/run.err")).read_text())


class BadImages(Folder):
    def test_every_one_is_refused_for_its_own_reason(self):
        plan = self.plan(tests=LIST + "".join(f'refuse: "{name}" ' for name in rigs.REFUSALS))
        cases = [case for case in plan.cases() if case.refused]
        self.assertEqual([case.refused[1] for case in cases], list(rigs.REFUSALS))
        (self.path / "out").mkdir()
        runner = hil.Runner(plan)
        for case in runner.prepare(cases):
            with self.subTest(refused=case.refused[1]):
                runner.install(case)
                runner.fill_folder(case)
                done = subprocess.run([NODE, "--check", "--topology", "complete:2", "--node", "0", "--flash",
                                       case.folder / "node-%r.flash", "--public-key", plan.public()], capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                told = verdict.boots(done.stdout + done.stderr)
                self.assertEqual(told, {0: {0: "boots", 1: rigs.REFUSALS[case.refused[1]]}}, done.stdout + done.stderr)

    def test_second_slot(self):
        board = rigs.read(rigs.ROOT / "boards/linux-x86_64/board.textproto", "board.BoardFile")
        begin, marks = bad_image.second_slot(board.flash)
        self.assertEqual((begin, marks), (129 * 4096, 255 * 4096))


if __name__ == "__main__":
    unittest.main(verbosity=2)
