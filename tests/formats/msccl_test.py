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
        schedules.espalier("export", "msccl", back, "--blocks", blocks, "--reader", "executor", "-o", again)
        self.assertEqual(msccl.execute(again.read_text(), reader="executor").chunks, found.chunks)

    def test_every_algorithm(self):
        """The default reader is RCCL. The other two take the same schedule, or the command names the limit."""
        taken = {"executor": 0, "msccl": 0}

        def judge(case, out):
            found = msccl.execute(out.read_text(), reader="rccl")
            self.assertEqual(found.collective, case.collective)
            self.go_back(out, case, found)
            for reader in taken:
                line = schedules.refusal("export", "msccl", case.file, "--blocks", case.blocks, "--reader", reader, "-o", out)
                if case.collective in ("scatter", "gather") and reader == "msccl":
                    self.assertIn(f"microsoft/msccl has no {case.collective}", line)
                    continue
                self.assertIsNone(line)
                msccl.Algorithm(out.read_text()).check_reader(reader)
                taken[reader] += 1

        self.export_all("msccl", "MSCCL", judge, never=("MSCCL has no", "its routers run programs"), limits=(r"rank \d+ has \d+ .* takes at most",))
        self.assertGreater(min(taken.values()), 50)

    def export(self, *words):
        """(the refusal, or None; the algorithm, judged for its reader)."""
        out = self.path / "s.xml"
        line = schedules.refusal("export", "msccl", self.path / "s.esp", "-o", out, *words)
        reader = words[words.index("--reader") + 1] if "--reader" in words else "rccl"
        return line, None if line else msccl.execute(out.read_text(), reader=reader)

    def test_long_links_take_turns_on_channels(self):
        self.assertIsNone(schedules.compile(self.path / "s.esp", "complete:4", "broadcast", "chain"))
        for reader, blocks, channels in (("rccl", 64, 1), ("rccl", 65, 2), ("rccl", 257, 5), ("executor", 257, 5), ("msccl", 256, 1), ("msccl", 257, 2)):
            line, found = self.export("--blocks", str(blocks), "--reader", reader)
            self.assertIsNone(line)
            self.assertLessEqual(found.channels, channels + 2, (reader, blocks))
            self.assertGreaterEqual(found.channels, channels, (reader, blocks))
        line, _ = self.export("--blocks", "5000", "--reader", "rccl")
        self.assertRegex(line, r"rank \d has \d+ thread blocks; RCCL takes at most 64, expected a smaller N or fewer ranks$")

    def test_limits(self):
        file = self.path / "s.esp"
        self.assertIsNone(schedules.compile(file, "complete:120", "scatter", "linear"))
        self.assertIn("rank 0 has 120 thread blocks; RCCL takes at most 64", self.export()[0])
        line, found = self.export("--reader", "executor")
        self.assertIsNone(line)
        self.assertEqual(len({tb[2] for tb in found.gpus[0]}), 4)
        self.assertIn("microsoft/msccl has no scatter", self.export("--reader", "msccl")[0])
        self.assertIsNone(schedules.compile(file, "complete:110", "all-to-all", "pairwise"))
        self.assertIn("microsoft/msccl takes at most 216", self.export("--reader", "msccl")[0])
        self.assertIsNone(schedules.compile(file, "complete:4", "broadcast", "chain"))
        self.assertIn("N = 40000; a chunk's offset in its buffer is at most 32767", self.export("--blocks", "40000")[0])
        self.assertIsNone(schedules.compile(file, "complete:4", "reduce-scatter", "ring"))
        for reader in msccl.READERS:
            self.assertEqual(self.export("--reader", reader)[1].spelling, msccl.READERS[reader][3])
        self.assertIn("unknown --reader 'nccl'; expected rccl, executor or msccl", self.export("--reader", "nccl")[0])

    def test_an_invalid_schedule_is_not_exported(self):
        done = schedules.call("export", "msccl", schedules.ROOT / "collectives/verify/testdata/every.esp", "-o", self.path / "s.xml")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n"), (self.path / "s.xml").exists()), (1, "", 1, False))
        self.assertIn("is not exported: it is not valid: hazards: N = 3, rank 2", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
