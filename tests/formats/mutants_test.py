#!/usr/bin/python3
"""`espalier import msccl` of files with one change each: what the interpreter finds wrong is refused with a reason, and what is taken is
right by the interpreter."""
import collections
import pathlib
import random
import re
import tempfile
import unittest
import xml.etree.ElementTree as tree

import msccl
import schedules

SUBJECTS = (("complete:5", "allreduce", "two-tree", 2), ("complete:4", "allgather", "ring", 2), ("complete:6", "broadcast", "chain", 3),
            ("complete:5", "reduce", "binomial", 1), ("complete:4", "reduce-scatter", "ring", 2), ("complete:4", "all-to-all", "pairwise", 1),
            ("complete:4", "scatter", "binomial", 1))
MUTANTS, SEED = 40, 18  # of each subject
KNOWN_NAMES = {"algo": ("name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace"), "gpu": ("id", "i_chunks", "o_chunks", "s_chunks"),
               "tb": ("id", "send", "recv", "chan"), "step": ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")}


def renumber(block):
    for number, step in enumerate(block):
        step.set("s", str(number))


def changed(text, dice):
    """(what was done, the changed file)."""
    root = tree.fromstring(text)
    blocks = [block for block in root.iter("tb") if len(block)]
    block = dice.choice(blocks)
    step = dice.choice(list(block))
    what = dice.choice(("offset", "buffer", "type", "count", "wait", "no wait", "drop step", "swap steps", "repeat step", "peer", "attribute",
                        "value", "collective", "drop block", "cut", "no flag"))
    if what == "offset":
        name = dice.choice(("srcoff", "dstoff"))
        step.set(name, str(int(step.get(name)) + dice.choice((-1, 1, 2))))
    elif what == "buffer":
        step.set(dice.choice(("srcbuf", "dstbuf")), dice.choice("ios"))
    elif what == "type":
        step.set("type", dice.choice(msccl.TYPES))
    elif what == "count":
        step.set("cnt", str(int(step.get("cnt")) + dice.choice((-1, 1))))
    elif what == "wait":
        other = dice.randrange(len(blocks))
        step.set("depid", str(other))
        step.set("deps", "0")
    elif what == "no wait":
        step = dice.choice([one for one in root.iter("step") if one.get("depid") != "-1"] or [step])
        step.set("depid", "-1")
        step.set("deps", "-1")
    elif what == "drop step":
        block.remove(step)
        renumber(block)
    elif what == "swap steps":
        at = dice.randrange(len(block))
        block.remove(step)
        block.insert(at, step)
        renumber(block)
    elif what == "repeat step":
        block.insert(dice.randrange(len(block) + 1), tree.fromstring(tree.tostring(step)))
        renumber(block)
    elif what == "peer":
        block.set(dice.choice(("send", "recv")), str(dice.randrange(-1, int(root.get("ngpus")))))
    elif what in ("attribute", "value"):
        element = dice.choice((root, dice.choice(list(root)), block, step))
        name = dice.choice(KNOWN_NAMES[element.tag])
        if what == "attribute":
            del element.attrib[name]
        else:
            element.set(name, dice.choice(("", "-2", "x", "99999999999999999999", "1")))
        what += f" {element.tag}.{name}"
    elif what == "collective":
        root.set("coll", dice.choice(sorted(set(msccl.NAMES) - {root.get("coll")})))
    elif what == "drop block":
        gpu = dice.choice([gpu for gpu in root if len(gpu)])
        gpu.remove(gpu[-1])
    elif what == "no flag":
        dice.choice([one for one in root.iter("step") if one.get("hasdep") == "1"] or [step]).set("hasdep", "0")
    if what == "cut":
        return what, text[:dice.randrange(len(text) - 10)]
    return what, tree.tostring(root, encoding="unicode")


class Mutants(unittest.TestCase):
    def test_mutants(self):
        dice = random.Random(SEED)
        reasons, refused, taken, statuses = collections.Counter(), 0, 0, collections.Counter()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for topology, collective, algorithm, blocks in SUBJECTS:
                self.assertIsNone(schedules.compile(path / "s.esp", topology, collective, algorithm))
                schedules.espalier("export", "msccl", path / "s.esp", "--blocks", schedules.least_blocks(path / "s.esp", blocks), "-o", path / "s.xml")
                good = (path / "s.xml").read_text()
                for number in range(MUTANTS):
                    what, text = changed(good, dice)
                    with self.subTest(collective=collective, number=number, what=what):
                        try:
                            msccl.execute(text, least_depth=8)
                            wrong = None
                        except msccl.Wrong as reason:
                            wrong = str(reason)
                        mutant, out = path / "m.xml", path / "m.esp"
                        mutant.write_text(text)
                        out.unlink(missing_ok=True)
                        done = schedules.call("import", "msccl", mutant, "-o", out)
                        self.assertEqual(done.returncode == 0, wrong is None, f"{wrong}; {done.stderr}")
                        if wrong is None:
                            taken += 1
                            continue
                        refused += 1
                        statuses[done.returncode] += 1
                        self.assertIn(done.returncode, (1, 2))
                        self.assertEqual((done.stdout, done.stderr.count("\n"), out.exists()), ("", 1, False), done.stderr)
                        self.assertRegex(done.stderr, r"^espalier: '[^']*m\.xml'(, line \d+:|:| is not valid:) \S+")
                        reasons[re.sub(r"\d+", "#", done.stderr.split("m.xml'", 1)[1])[:70]] += 1
        for reason, count in sorted(reasons.items()):
            print(f"{count:4} {reason.strip()}")
        print(f"{refused} files refused ({dict(statuses)}), for {len(reasons)} kinds of reasons; {taken} taken, which the interpreter finds right")
        self.assertGreaterEqual(refused, 100)


if __name__ == "__main__":
    unittest.main(verbosity=2)
