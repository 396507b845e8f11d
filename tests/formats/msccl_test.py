#!/usr/bin/python3
"""Every algorithm, exported to MSCCL XML in three sizes and executed, or refused with the reason."""
import json
import pathlib
import tempfile
import unittest

import msccl
import schedules


class Msccl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def go_back(self, out, file, collective, found):
        """The file as a schedule again: proven, of the same collective, and right when it is exported once more."""
        back, again = self.path / "back.esp", self.path / "again.xml"
        schedules.espalier("import", "msccl", out, "-o", back)
        before, after = (json.loads(schedules.espalier("show", its, "--rank", "0", "--format", "json")) for its in (file, back))
        self.assertEqual([before[key] for key in ("collective", "ranks")], [after[key] for key in ("collective", "ranks")])
        self.assertEqual(before.get("root"), after.get("root"))
        # Where a segment belongs to a rank, all its chunks are blocks of it.
        blocks = found.chunks // after["segments"]
        schedules.espalier("export", "msccl", back, "--blocks", blocks, "-o", again)
        self.assertEqual(msccl.execute(again.read_text()).chunks, found.chunks)

    def test_every_algorithm(self):
        executed, refused = 0, {}
        for collective, algorithm, options, sizes in schedules.algorithms():
            ran = 0
            for topology, wanted in sizes:
                with self.subTest(collective=collective, algorithm=algorithm, topology=topology):
                    file, out = self.path / "s.esp", self.path / "s.xml"
                    line = schedules.compile(file, topology, collective, algorithm, *options)
                    if line:  # an algorithm that has no schedule for so many ranks
                        topology = {"complete:8": "complete:9", "complete:3": "complete:5"}.get(topology, topology)
                        line = schedules.compile(file, topology, collective, algorithm, *options)
                    if line:
                        refused.setdefault(line.split(": ")[-1], []).append(f"{collective} {algorithm} {topology}")
                        continue
                    blocks = schedules.least_blocks(file, wanted)
                    line = schedules.refusal("export", "msccl", file, "--blocks", blocks, "-o", out)
                    if line:
                        refused.setdefault(line.split(" cannot be exported to MSCCL: ")[1], []).append(f"{collective} {algorithm} {topology}")
                        continue
                    found = msccl.execute(out.read_text())
                    self.assertEqual(found.collective, collective)
                    self.go_back(out, file, collective, found)
                    ran += 1
            executed += ran
        for reason, those in sorted(refused.items()):
            print(f"not exported: {reason}: {', '.join(those)}")
        print(f"{executed} files executed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
