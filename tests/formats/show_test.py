#!/usr/bin/python3
"""`espalier show --format json` keeps docs/schedule.schema.json, and its numbers are enough: the actions, evaluated here, give the steps
that the command expands."""
import copy
import json
import unittest

import schedules
import schema

SCHEMA = json.loads((schedules.ROOT / "docs/schedule.schema.json").read_text())


def count(its, blocks):
    return its["a"] + its["b"] * blocks + its["c"] * -((-blocks - its["d"]) // its["e"])


def looked_up(term, x):
    if "table" in term:
        return term["table"][x]
    value = 0 if "digits" in term else x
    for _ in range(term.get("digits", 0)):
        x, digit = divmod(x, term["base"])
        value = value * term["base"] + digit
    return value


def index(its, i):
    def modulo(value, mod):
        return value % mod if mod else value
    terms = sum(term["coef"] * looked_up(term, modulo((term["mul"] * i + term["add"]) // term["div"], term["mod"])) for term in its["terms"])
    return its["base"] + modulo((its["off"] + its["coef"] * i + terms) // its["div"], its["mod"])


def expand(program, blocks):
    """The steps of a program, from its actions alone."""
    first, begins = 0, []
    for phase in program["phases"]:
        begins.append(first)
        first += max(0, count(phase["steps"], blocks))
    found = []
    for number, action in enumerate(program["actions"]):
        phase = program["phases"][action["phase"]]
        main = action["a" if action["kind"] == "send" else "into"]
        for i in range(max(0, count(action["instances"], blocks))):
            pace = index(action["pace"], i) if "pace" in action else i
            step = count(action["first_step"], blocks) + phase["period"] * pace
            block = index(main["block"], i)
            if not 0 <= step < count(phase["steps"], blocks) or block < 0 or (block >= blocks and not action["clamp"]):
                continue
            one = {"step": begins[action["phase"]] + step, "action": number, "i": i, "kind": action["kind"]}
            if "link" in action:
                one["peer"] = program["peers"][index(action["link"], i)]
            for name in ("into", "a", "b"):
                if name in action:
                    place = {key: index(value, i) if isinstance(value, dict) else value for key, value in action[name].items()}
                    if action["clamp"]:
                        place["block"] = min(place["block"], blocks - 1)
                    one[name] = place
            found.append(one)
    return sorted(found, key=lambda one: (one["step"], one["action"], one["i"]))


class Show(schedules.FolderTest):
    def test_every_algorithm(self):
        shown = 0
        for collective, algorithm, options, sizes in schedules.algorithms():
            for topology, wanted in sizes[1:2]:
                with self.subTest(collective=collective, algorithm=algorithm, topology=topology):
                    file = self.path / "s.esp"
                    if schedules.compile(file, topology, collective, algorithm, *options):
                        continue
                    blocks = schedules.least_blocks(file, wanted)
                    found = json.loads(schedules.espalier("show", file, "--blocks", blocks, "--format", "json"))
                    self.assertEqual(schema.check(found, SCHEMA), [])
                    for program in found["programs"]:
                        self.assertEqual(expand(program, blocks), program["steps"])
                    shown += 1
        print(f"{shown} schedules")
        self.assertGreater(shown, 90)

    def test_selection(self):
        file = self.path / "s.esp"
        schedules.espalier("compile", "--topology", "complete:8", "--collective", "allreduce", "-o", file)
        found = json.loads(schedules.espalier("show", file, "--format", "json"))
        self.assertGreater(len(found["schedules"]), 1)
        self.assertEqual(schema.check(found, SCHEMA), [])

    def test_the_schema_refuses(self):
        file = self.path / "s.esp"
        self.assertIsNone(schedules.compile(file, "complete:4", "allreduce", "chain"))
        good = json.loads(schedules.espalier("show", file, "--blocks", "2", "--format", "json"))
        for change in (lambda its: its.pop("window"), lambda its: its.update(words="x"), lambda its: its.update(ranks="4"),
                       lambda its: its.update(contention="any"), lambda its: its["programs"][1]["actions"][0].update(what="x"),
                       lambda its: its["programs"][0]["steps"][0].update(step=-1), lambda its: its.update(schedule_digest="0x1"),
                       lambda its: its["steps"].update(a="N")):
            bad = copy.deepcopy(good)
            change(bad)
            self.assertNotEqual(schema.check(bad, SCHEMA), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
