#!/usr/bin/python3
"""Every algorithm, exported to GOAL: order, sizes and dependencies are those of the schedule, and it runs to its end."""
import re
import unittest

import expected
import exports
import schedules


def parse(text):
    """The grammar of LogGOPSim's txt2bin: by rank the operations [kind, peer, tag, number, requires, irequires]."""
    lines = text.split("\n")
    assert lines.pop() == ""
    ranks = int(re.fullmatch(r"num_ranks (\d+)", lines.pop(0)).group(1))
    found = []
    for rank in range(ranks):
        assert lines.pop(0) == f"rank {rank} {{"
        labels, rows = {}, []
        while (line := lines.pop(0)) != "}":
            if match := re.fullmatch(r"([a-zA-Z]\w*) (i?)requires (\w+)", line):
                rows[labels[match[1]]][5 if match[2] else 4].add(labels[match[3]])  # both are defined before
                continue
            match = re.fullmatch(r"([a-zA-Z]\w*): (?:(send|recv) (\d+)b (to|from) (\d+) tag (\d+)|calc (\d+))", line)
            assert match and match[1] not in labels, line
            labels[match[1]] = len(rows)
            if match[7] is not None:
                rows.append(["local", None, None, int(match[7]), set(), set()])
            else:
                assert (match[2], match[4]) in (("send", "to"), ("recv", "from")), line
                rows.append(["send" if match[2] == "send" else "receive", int(match[5]), int(match[6]), int(match[3]), set(), set()])
        found.append(rows)
    assert not lines
    return found


class Goal(exports.Exports):
    SIZES = {1: 1000, 2: 20_000, 3: 70_001, 4: 150_000, 6: 300_000}

    def size(self, case):
        return [] if case.collective == "barrier" else ["--bytes", self.SIZES[case.wanted]]

    def test_every_algorithm(self):
        def judge(case, out):
            right = expected.Expected(case.file, 0 if case.collective == "barrier" else self.SIZES[case.wanted])
            found = parse(out.read_text())
            self.assertEqual(len(found), right.facts["nodes"])
            for node, rows in zip(right.nodes, found):
                self.assertEqual([(kind, peer, number, size, after) if kind in ("send", "receive") else ("local", None, None, after)
                                  for kind, peer, number, size, after in node],
                                 [(kind, peer, tag, size, after) if kind != "local" else (kind, None, None, after)
                                  for kind, peer, tag, size, after, _ in rows])
                before = {}
                for at, (kind, peer, *_, starts) in enumerate(rows):
                    self.assertEqual(starts, {before[peer]} if kind == "send" and peer in before else set())
                    if kind == "send":
                        before[peer] = at
            self.assertEqual(expected.play([[(kind, peer, tag, after) for kind, peer, tag, _, after, _ in rows] for rows in found]), [])

        self.export_all("goal", "GOAL", judge, never=(), options=self.size)

    def test_times_and_bad_input(self):
        file, out, model = self.path / "s.esp", self.path / "s.goal", self.path / "m.textproto"
        self.assertIsNone(schedules.compile(file, "complete:4", "allreduce", "chain"))
        model.write_text("link { line { alpha_ps: 1000000 beta_fs_per_byte: 1000 } }\ngamma_fs_per_byte: 500000\ncopy_fs_per_byte: 250000\n")
        line = schedules.refusal("export", "goal", file, "-o", out, "--bytes", "1000", "--model", model)
        self.assertIsNone(line)
        self.assertEqual({number for rows in parse(out.read_text()) for kind, _, _, number, _, _ in rows if kind == "local"}, {500})
        self.assertIn("no --bytes", schedules.refusal("export", "goal", file, "-o", out))
        self.assertIsNone(schedules.compile(file, "complete:4", "barrier", "dissemination"))
        self.assertIn("expected no --bytes", schedules.refusal("export", "goal", file, "-o", out, "--bytes", "8"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
