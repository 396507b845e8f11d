"""Exports every algorithm, for the tests of this folder: in one of three sizes in turn, with ESPALIER_WHOLE=1 in all three."""
import dataclasses
import os
import pathlib
import re

import schedules


SIZES = 3
WANTED = SIZES if os.environ.get("ESPALIER_WHOLE") else 1


@dataclasses.dataclass
class Case:
    collective: str
    algorithm: str
    topology: str
    file: pathlib.Path
    wanted: int  # blocks per segment: one of the sizes of schedules.py
    blocks: int  # at least so many, of those that the schedule has


class Exports(schedules.FolderTest):
    def cases(self, collective, algorithm, options, sizes):
        """The sizes that the algorithm takes, each compiled into a file that the next one overwrites."""
        for topology, blocks in sizes:
            case = Case(collective, algorithm, topology, self.path / "s.esp", blocks, 0)
            if schedules.compile(case.file, topology, collective, algorithm, *options) is None:
                case.blocks = schedules.least_blocks(case.file, blocks)
                yield case

    def export_all(self, name, title, judge, never, limits=(), options=lambda case: ("--blocks", case.blocks)):
        """Calls judge(case, the exported file) for WANTED sizes of each algorithm. Refused are only sizes for which a limit is too low, and
        algorithms that the format can never express: `limits` and `never` are patterns of the reasons."""
        judged, reasons = 0, {}
        for number, (*algorithm, sizes) in enumerate(schedules.algorithms()):
            done, out_of_reach = 0, False
            first = number % SIZES if WANTED < SIZES else 0
            for case in self.cases(*algorithm, [*sizes[first:], *sizes[:first]]):
                out = self.path / "out"
                line = schedules.refusal("export", name, case.file, *options(case), "-o", out)
                if line is None:
                    with self.subTest(collective=case.collective, algorithm=case.algorithm, topology=case.topology):
                        judge(case, out)
                        done += 1
                    if done == WANTED:
                        break
                    continue
                reason = line.split(f" cannot be exported to {title}: ")[1]
                out_of_reach = any(re.match(known, reason) for known in never)
                self.assertTrue(out_of_reach or any(re.match(known, reason) for known in limits), line)
                reasons.setdefault(reason, []).append(f"{case.collective} by {case.algorithm}" + ("" if out_of_reach else f" on {case.topology}"))
                if out_of_reach:
                    break
            self.assertEqual(done, 0 if out_of_reach else WANTED, f"sizes of {algorithm[:2]}")
            judged += done
        for reason, those in sorted(reasons.items()):
            print(f"not exported, {reason}: {', '.join(those)}")
        print(f"{judged} exported and judged: {judged // WANTED} algorithms in {WANTED} of {SIZES} sizes")
        self.assertGreater(judged, 66 * WANTED)
