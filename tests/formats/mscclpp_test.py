#!/usr/bin/python3
"""Every algorithm, exported as an MSCCL++ plan and executed, or refused with the reason."""
import json
import unittest

import exports
import mscclpp
import schedules


class Mscclpp(exports.Exports):
    def test_every_algorithm(self):
        def judge(case, out):
            root = json.loads(schedules.espalier("show", case.file, "--rank", "0", "--format", "json")).get("root", 0)
            self.assertEqual(mscclpp.execute(out.read_text(), root).collective, case.collective)

        self.export_all("mscclpp", "MSCCL++", judge, never=("a plan needs chunks", "its routers run programs"),
                        limits=(r"rank \d+ needs \d+ thread blocks",))

    def test_the_interpreter_finds_faults(self):
        file, out = self.path / "s.esp", self.path / "s.json"
        self.assertIsNone(schedules.compile(file, "complete:4", "allreduce", "chain"))
        schedules.espalier("export", "mscclpp", file, "--blocks", "3", "-o", out)
        good = json.loads(out.read_text())
        mscclpp.execute(json.dumps(good), 0)
        found = 0
        for rank, gpu in enumerate(good["gpus"]):
            for at, op in enumerate(gpu["threadblocks"][0]["ops"]):
                bad = json.loads(out.read_text())
                del bad["gpus"][rank]["threadblocks"][0]["ops"][at]
                if op["name"] == "flush":  # the last ones only end the kernel
                    continue
                with self.assertRaises(mscclpp.Wrong, msg=f"rank {rank} without {op}"):
                    mscclpp.execute(json.dumps(bad), 0)
                found += 1
        print(f"{found} operations, none of which can be left out")


if __name__ == "__main__":
    unittest.main(verbosity=2)
