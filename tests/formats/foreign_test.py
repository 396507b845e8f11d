#!/usr/bin/python3
"""`espalier import msccl` of features that published files have: ignored elements, sizes of 64 bits, rings in many orders; and the limits
of hosts and boards."""
import random
import re
import subprocess
import unittest

import fused_test
import schedules


def rings(ranks, channels):
    """An allreduce in place. Each channel is a ring of the ranks in another order."""
    dice = random.Random(5)
    made = fused_test.Writer("allreduce", ranks, ranks * channels, True, lambda rank: (ranks * channels, 0, 0), channels)
    for channel in range(channels):
        order = dice.sample(range(ranks), ranks)
        for at, rank in enumerate(order):
            step = made.block(rank, order[(at + 1) % ranks], order[(at - 1) % ranks], channel)
            for k in range(2 * ranks - 1):
                chunk = "i", (at - k) % ranks * channels + channel
                step("s" if k == 0 else "rrcs" if k < ranks else "rcs" if k < 2 * ranks - 2 else "r", chunk, chunk)
    return made.text()


class Foreign(schedules.FolderTest):
    def take(self, text, *more):
        (self.path / "a.xml").write_text(text)
        return schedules.call("import", "msccl", self.path / "a.xml", "-o", self.path / "a.esp", *more)

    def test_elements_that_readers_ignore(self):
        text = fused_test.ring_allgather(4)
        for where, note, words in (("<tb ", '<copy i_off="0"/><tb ', "4 'copy' in 'gpu'"), ("<gpu ", "<note><tb/></note><gpu ", "4 'note' in 'algo'"),
                                   ("<step ", "<x/><step ", "16 'x' in 'tb'")):
            done = self.take(text.replace(where, note))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stderr.endswith(f"a.xml: ignored, as MSCCL's readers do: {words}\n"), done.stderr)
        for wrong in (text.replace('hasdep="0"/>', 'hasdep="0"><x/></step>'), text.replace("algo", "graph"), text.replace("<tb ", "text <tb ")):
            done = self.take(wrong)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_sizes_of_64_bits(self):
        text = fused_test.ring_allgather(4)
        for size, status in ((1 << 60, 0), ((1 << 63) - 1, 0), (1 << 63, 0), ((1 << 64) - 1, 0), (1 << 64, 2), (-1, 2)):
            self.assertEqual(self.take(text.replace('maxBytes="0"', f'maxBytes="{size}"')).returncode, status, size)

    def test_rings_in_many_orders(self):
        done = self.take(rings(8, 24))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("proven for every N", done.stdout)

    def test_limits(self):
        """Of hosts and boards: the command has the numbers of proto/."""
        words = ("compile", "--topology", "mesh:8x8", "--collective", "allreduce", "--algorithm", "rabenseifner", "--links", "hop-by-hop", "-o",
                 self.path / "a.esp")
        board = re.search(r"terms max_count:(\d+)", (schedules.ROOT / "proto/schedule.options").read_text())[1]
        line = schedules.refusal(*words)
        self.assertRegex(line, rf"node 0: its program needs \d+ terms, and boards have room for {board} \(hosts for more: --limits host\)$")
        self.assertIsNone(schedules.refusal(*words, "--limits", "host"))
        self.assertIn("valid: allreduce", schedules.espalier("verify", self.path / "a.esp"))
        self.assertIn("expected boards or host", self.take(rings(3, 1), "--limits", "all").stderr)

    def test_the_table_of_a_folder(self):
        (self.path / "good.xml").write_text(fused_test.ring_allgather(4))
        (self.path / "other.xml").write_text("<system/>")
        command = [schedules.ROOT / "tests/formats/foreign.sh", self.path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "ESPALIER": schedules.COMMAND})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| good.xml | yes | every N |", done.stdout)
        (self.path / "bad.xml").write_text(fused_test.ring_allgather(4).replace('type="r"', 'type="q"'))
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "ESPALIER": schedules.COMMAND})
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 of 2 imported", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
