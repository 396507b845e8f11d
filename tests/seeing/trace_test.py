#!/usr/bin/python3
"""Traces: the format's rules, and agreement with the schedule, simulated and of real processes."""
import copy
import json
import unittest

import schedules
import traces


class Traces(schedules.FolderTest):
    def trace(self, command, file, *words):
        out = self.path / "trace.json"
        schedules.espalier(command, file, "--trace", out, *words)
        trace = json.loads(out.read_text())
        self.assertEqual(traces.check(trace), [])
        shown = schedules.Shown(file, trace["otherData"]["blocks"])
        self.assertEqual(traces.compare(trace, shown), [])
        return trace

    def compile(self, *what):
        return schedules.compile(self.path / "s.esp", *what)

    def test_simulated(self):
        for what in (("mesh:4x4", "broadcast", "two-tree"), ("complete:16", "allreduce", "two-tree"),
                     ("fattree:k=4,h=2,c=1", "allgather", "leaf"), ("fattree:k=2,h=3,c=k", "all-to-all", "leaf"),
                     ("complete:9", "scatter", "binomial"), ("complete:12", "barrier", "dissemination")):
            with self.subTest(what=what):
                file = self.compile(*what)
                size = [] if what[1] == "barrier" else ["--bytes", "64KiB"]
                self.trace("simulate", file, *size)
                self.trace("simulate", file, *size, "--jitter", "2", "--seed", "7")

    def test_real(self):
        for what in (("mesh:4x4", "broadcast", "two-tree"), ("fattree:k=4,h=2,c=1", "allgather", "leaf"),
                     ("complete:16", "allreduce", "two-tree")):
            with self.subTest(what=what):
                trace = self.trace("run", self.compile(*what), "--bytes", "64KiB", "--provider", "mem", "--warmup", "1")
                self.assertIn("CLOCK_MONOTONIC", trace["otherData"]["clock"])

    def test_the_last_of_several_collectives(self):
        file = self.compile("complete:4", "broadcast", "chain")
        self.trace("run", file, "--bytes", "8,4KiB", "--provider", "mem", "--repeat", "3")

    def test_bad_input(self):
        file = self.compile("complete:4", "broadcast", "chain")
        (self.path / "no.json").write_text('{"traceEvents": 1}')
        out = self.path / "out"
        for words, text in ((["draw", file], "nothing to write"), (["draw", file, "-o", out, "--show", "all"], "step, trees or load"),
                            (["draw", file, "-o", out, "--step", "99"], "--step"), (["draw", file, "-o", out, "--blocks", "0"], "--blocks"),
                            (["draw", file, "-o", out, "--trace", self.path / "no.json"], "not a trace"),
                            (["draw", self.path / "no.json", "-o", out], "no.json"), (["simulate", file, "--trace", out], "no --bytes"),
                            (["run", file, "--trace", out, "--bytes", "1", "--provider", "pigeon"], "pigeon"),
                            (["simulate", file, "--trace", out, "--bytes", "900GiB"], "fewer bytes"),
                            (["simulate", file, "--trace", self.path / "none" / "out", "--bytes", "1"], "none/out"),
                            (["trace", file], "unknown command 'trace'")):
            done = schedules.call(*words)
            self.assertEqual((done.returncode, done.stderr.count("\n"), out.exists()), (2, 1, False), (words, done.stderr))
            self.assertIn(text, done.stderr)

    def test_the_rules_can_be_broken(self):
        good = self.trace("simulate", self.compile("complete:4", "allreduce", "chain"), "--bytes", "8KiB")
        shown = schedules.Shown(self.path / "s.esp", good["otherData"]["blocks"])
        at = {kind: next(i for i, its in enumerate(good["traceEvents"]) if its["ph"] == kind) for kind in "MXsf"}

        def broken(change):
            trace = copy.deepcopy(good)
            change(trace["traceEvents"])
            return traces.check(trace) + traces.compare(trace, shown)

        self.assertEqual(broken(lambda events: None), [])
        for change in (lambda events: events.pop(at["s"]), lambda events: events.pop(at["f"]), lambda events: events.pop(at["X"]),
                       lambda events: events.pop(at["M"]), lambda events: events.append(events[at["X"]]),
                       lambda events: events[at["X"]].update(dur=-1), lambda events: events[at["X"]].update(dur=1e6),
                       lambda events: events[at["f"]].update(ts=1e9), lambda events: events[at["X"]].update(cat="copy")):
            self.assertNotEqual(broken(change), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
