#!/usr/bin/python3
"""Every algorithm, exported to MSCCL XML, executed and imported again, or refused with the reason."""
import json
import unittest

import exports
import msccl
import schedules


class Msccl(exports.Exports):
    def go_back(self, out, case, found):
        """The file as a schedule again: proven, of the same collective, and right when it is exported once more."""
        back, again = self.path / "back.esp", self.path / "again.xml"
        schedules.espalier("import", "msccl", out, "-o", back)
        before, after = (json.loads(schedules.espalier("show", file, "--rank", "0", "--format", "json")) for file in (case.file, back))
        for key in ("collective", "ranks", "root"):
            self.assertEqual(before.get(key), after.get(key))
        # Where a segment belongs to a rank, all its chunks are blocks of it.
        blocks = found.chunks // after["segments"]
        schedules.espalier("export", "msccl", back, "--blocks", blocks, "-o", again)
        self.assertEqual(msccl.execute(again.read_text()).chunks, found.chunks)

    def test_every_algorithm(self):
        def judge(case, out):
            found = msccl.execute(out.read_text())
            self.assertEqual(found.collective, case.collective)
            self.go_back(out, case, found)

        self.export_all("msccl", "MSCCL", judge, never=("MSCCL has no", "its routers run programs"))

    def test_limits(self):
        file, out = self.path / "s.esp", self.path / "s.xml"
        self.assertIsNone(schedules.compile(file, "complete:4", "broadcast", "chain"))
        self.assertIn("a thread block has at most 256", schedules.refusal("export", "msccl", file, "--blocks", "257", "-o", out))
        self.assertIsNone(schedules.compile(file, "complete:120", "scatter", "linear"))
        self.assertIsNone(schedules.refusal("export", "msccl", file, "-o", out))
        self.assertEqual(len({tb[2] for tb in msccl.execute(out.read_text()).gpus[0]}), 4)
        self.assertIsNone(schedules.compile(file, "complete:110", "all-to-all", "pairwise"))
        self.assertIn("a GPU has at most 216", schedules.refusal("export", "msccl", file, "-o", out))

    def test_an_invalid_schedule_is_not_exported(self):
        done = schedules.call("export", "msccl", schedules.ROOT / "collectives/verify/testdata/every.esp", "-o", self.path / "s.xml")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n"), (self.path / "s.xml").exists()), (1, "", 1, False))
        self.assertIn("is not exported: it is not valid: hazards: N = 3, rank 2", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
