#!/usr/bin/python3
"""`espalier export ompi`: the form of the file, the names that Open MPI has for its numbers, the choice of `espalier explain`, and that Open
MPI uses the rules: with an impossible algorithm in a rule, the sizes of this rule fail, and no others."""
import json
import os
import re
import subprocess
import unittest

import schedules

PROGRAM = os.environ.get("ESPALIER_ONE_COLLECTIVE")
# Collectives by their number in Open MPI, and what this library and Open MPI call an algorithm.
COLLECTIVES = {0: ("allgather", "allgather"), 2: ("allreduce", "allreduce"), 3: ("alltoall", "all-to-all"), 6: ("barrier", "barrier"),
               7: ("bcast", "broadcast"), 9: ("gather", "gather"), 11: ("reduce", "reduce"), 12: ("reduce_scatter", "reduce-scatter"),
               13: ("reduce_scatter_block", "reduce-scatter"), 15: ("scatter", "scatter")}
ALGORITHMS = {"recursive-doubling": "recursive_doubling", "ring": "ring", "bruck": "bruck", "rabenseifner": "rabenseifner",
              "pairwise": "pairwise", "dissemination": "bruck", "chain": "pipeline", "binary": "binary", "binomial": "binomial",
              "scatter-allgather": "scatter_allgather_ring", "linear": "linear", "recursive-halving": "recursive_halving"}
OTHER_NAMES = {("alltoall", "bruck"): "modified_bruck", ("bcast", "binary"): "binary_tree", ("gather", "linear"): "basic_linear",
               ("scatter", "linear"): "basic_linear"}
NAMES_OF_6 = {("allgather", "bruck"): "bruck-k-fanout"}  # the same algorithm, with the fan-out of the rule
PER_RANK = ("scatter", "gather", "allgather", "reduce-scatter", "all-to-all")


def parse(text):
    """{Open MPI's name: [(from bytes, algorithm, segment bytes, our name)]} of the classic form, one set for one number of ranks. The fan-out is
    that of Bruck's allgather, which Open MPI 6 makes for any fan-out."""
    lines = [line.split(" # ") for line in text.splitlines()]
    numbers = iter([([int(word) for word in line[0].split()], line[1]) for line in lines])
    found = {}
    (count,), _ = next(numbers)
    for _ in range(count):
        (collective,), name = next(numbers)
        assert COLLECTIVES[collective][0] == name
        (sets,), _ = next(numbers)
        (ranks,), _ = next(numbers)
        (rules,), _ = next(numbers)
        assert sets == 1
        found[name] = []
        for _ in range(rules):
            (size, algorithm, fan_out, segment), ours = next(numbers)
            assert fan_out == (2 if (name, ours) == ("allgather", "bruck") else 0)
            found[name].append((size, algorithm, segment, ours))
        assert found[name][0][0] == 0 and found[name] == sorted(found[name])
    assert not list(numbers)
    return ranks, found


class Ompi(schedules.FolderTest):
    def rules(self, *words):
        schedules.espalier("export", "ompi", "-o", self.path / "rules", *words)
        return parse((self.path / "rules").read_text())

    def test_choice(self):
        ranks, found = self.rules("--topology", "complete:8")
        self.assertEqual((ranks, set(found)), (8, {name for name, _ in COLLECTIVES.values()}))
        known = {}
        for name, rules in found.items():
            known[name] = {ours: number for _, number, _, ours in rules}
        for name, collective in COLLECTIVES.values():
            if name in ("barrier", "reduce_scatter_block"):  # one algorithm
                continue
            parts = ranks if collective in PER_RANK else 1
            sizes = [8, 4096, 1 << 20, 1 << 26]
            explained = json.loads(schedules.espalier("explain", "--topology", "complete:8", "--collective", collective, "--all", "--format", "json",
                                                      "--bytes", ",".join(map(str, sizes))))
            for size in explained["sizes"]:
                rule = [rule for rule in found[name] if rule[0] <= size["bytes"] * parts][-1]
                times = {one["algorithm"]: one["predicted_ps"] for one in reversed(size["ranking"]) if one["algorithm"] in known[name]}
                self.assertEqual(times[rule[3]], min(times.values()), (name, size["bytes"]))
        _, some = self.rules("--topology", "complete:8", "--collective", "broadcast,barrier")
        self.assertEqual(set(some), {"bcast", "barrier"})
        self.assertIn("no rules for 'scan'", schedules.refusal("export", "ompi", "--topology", "complete:8", "--collective", "scan", "-o",
                                                               self.path / "rules"))

    @unittest.skipUnless(PROGRAM, "Open MPI is not installed (bridge/meson.build)")
    def test_names(self):
        info = subprocess.run(["ompi_info", "--param", "coll", "tuned", "-l", "9"], capture_output=True, text=True, check=True).stdout
        checked = 0
        for topology in ("complete:8", "complete:5", "mesh:4x4"):
            for name, rules in self.rules("--topology", topology)[1].items():
                values = re.search(rf'"coll_tuned_{name}_algorithm" .*\n.*\n *Valid values: (.*)\n', info).group(1)
                # 3:"pipeline" of Open MPI 4, and 3|pipeline of 5
                names = {int(number): word for number, word in re.findall(r'(\d+)(?::"|\|)([^",\s]+)', values)}
                for _, number, _, ours in rules:
                    expected = OTHER_NAMES.get((name, ours), ALGORITHMS[ours])
                    self.assertIn(names[number], (expected, NAMES_OF_6.get((name, ours))))
                    checked += 1
        print(f"{checked} rules name what Open MPI calls so")

    def run_mpi(self, rules, name, size, ranks=4):
        return subprocess.run(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), "--mca", "coll_tuned_use_dynamic_rules", "1",
                               "--mca", "coll_tuned_dynamic_rules_filename", rules, PROGRAM, name, str(size)],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL).returncode

    @unittest.skipUnless(PROGRAM, "Open MPI is not installed (bridge/meson.build)")
    def test_open_mpi_uses_them(self):
        found = self.rules("--topology", "complete:4")[1]
        text, bad = (self.path / "rules").read_text(), self.path / "bad"
        ran = 0
        for name, rules in found.items():
            for at, (size, number, segment, ours) in enumerate(rules):
                if size > 1 << 22:
                    break
                # The text of this rule, in the set of this collective.
                before, after = text.split(f" # {name}\n", 1)
                line = f"{size} {number} 0 {segment} # {ours}\n"
                bad.write_text(before + f" # {name}\n" + after.replace(line, f"{size} 99 0 0 # none\n", 1))
                inside = max(size, 16)
                with self.subTest(name=name, size=size):
                    self.assertEqual(self.run_mpi(self.path / "rules", name, inside), 0)
                    self.assertNotEqual(self.run_mpi(bad, name, inside), 0)
                    if at > 0:
                        self.assertEqual(self.run_mpi(bad, name, size - 4), 0)
                ran += 1
        print(f"{ran} rules that Open MPI follows")
        self.assertGreaterEqual(ran, len(COLLECTIVES))

    @unittest.skipUnless(PROGRAM, "Open MPI is not installed (bridge/meson.build)")
    def test_rules_with_a_fan_out(self):
        """For 4 ranks no rule has one."""
        rules = self.rules("--topology", "complete:5", "--collective", "allgather")[1]["allgather"]
        self.assertEqual({ours for *_, ours in rules}, {"bruck"})
        for size in (40, 4000):
            self.assertEqual(self.run_mpi(self.path / "rules", "allgather", size, 5), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
