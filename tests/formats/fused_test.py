#!/usr/bin/python3
"""`espalier import msccl` of algorithms as msccl-tools writes them: fused steps, several channels, in place. The schedules that they become
run in simulation, and are exported and executed again."""
import json
import unittest

import msccl
import schedules


class Writer:
    """An algorithm, thread block by thread block."""

    def __init__(self, collective, ranks, chunks, in_place, sizes, channels=1):
        self.head = (f'<algo name="by hand" proto="LL128" nchannels="{channels}" nchunksperloop="{chunks}" ngpus="{ranks}" coll="{collective}" '
                     f'inplace="{int(in_place)}" outofplace="{int(not in_place)}" minBytes="0" maxBytes="0">')
        self.gpus = [[] for _ in range(ranks)]
        self.sizes = sizes

    def block(self, rank, to, source, channel=0):
        self.gpus[rank].append((to, source, channel, []))
        steps = self.gpus[rank][-1][3]

        def step(kind, source=("i", -1), target=("i", -1), count=1, wait=(-1, -1), announces=0):
            steps.append(f'<step s="{len(steps)}" type="{kind}" srcbuf="{source[0]}" srcoff="{source[1]}" dstbuf="{target[0]}" '
                         f'dstoff="{target[1]}" cnt="{count}" depid="{wait[0]}" deps="{wait[1]}" hasdep="{announces}"/>')
        return step

    def text(self):
        out = [self.head]
        for rank, blocks in enumerate(self.gpus):
            sizes = self.sizes(rank)
            out.append(f'<gpu id="{rank}" i_chunks="{sizes[0]}" o_chunks="{sizes[1]}" s_chunks="{sizes[2]}">')
            for number, (to, source, channel, steps) in enumerate(blocks):
                out += [f'<tb id="{number}" send="{to}" recv="{source}" chan="{channel}">', *steps, "</tb>"]
            out.append("</gpu>")
        return "\n".join([*out, "</algo>"])


def ring_allreduce(ranks, channels):
    """In place: each chunk goes round the ring twice, combined the first time."""
    made = Writer("allreduce", ranks, ranks * channels, True, lambda rank: (ranks * channels, 0, 0), channels)
    for rank in range(ranks):
        for channel in range(channels):
            step = made.block(rank, (rank + 1) % ranks, (rank - 1) % ranks, channel)
            for k in range(2 * ranks - 1):
                chunk = ("i", channel * ranks + (rank - k) % ranks)
                kind = "s" if k == 0 else "rrs" if k < ranks - 1 else "rrcs" if k == ranks - 1 else "rcs" if k < 2 * ranks - 2 else "r"
                step(kind, chunk, chunk)
    return made.text()


def ring_allgather(ranks):
    """In place: the input is chunk `rank` of the output."""
    made = Writer("allgather", ranks, ranks, True, lambda rank: (1, ranks, 0))
    for rank in range(ranks):
        step = made.block(rank, (rank + 1) % ranks, (rank - 1) % ranks)
        for k in range(ranks):
            chunk = ("o", (rank - k) % ranks)
            step("s" if k == 0 else "rcs" if k < ranks - 1 else "r", ("i", 0) if k == 0 else chunk, chunk)
    return made.text()


def ring_reduce_scatter(ranks, in_place):
    """The chunk of rank r begins at rank r + 1."""
    made = Writer("reduce_scatter", ranks, 2 * ranks, in_place, lambda rank: (2 * ranks, 0 if in_place else 2, 0))
    for rank in range(ranks):
        step = made.block(rank, (rank + 1) % ranks, (rank - 1) % ranks)
        for k in range(ranks):
            chunk = ("i", 2 * ((rank - 1 - k) % ranks))
            last = chunk if in_place else ("o", 0)
            step("s" if k == 0 else "rrs" if k < ranks - 1 else "rrc", chunk, chunk if k < ranks - 1 else last, count=2)
    return made.text()


def scratch_reduce(ranks):
    """All send to rank 1, which receives into scratch and reduces locally, waiting with nops; out of place."""
    made = Writer("reduce", ranks, 2, False, lambda rank: (2, 2 if rank == 1 else 0, 2 * ranks if rank == 1 else 0))
    others = [rank for rank in range(ranks) if rank != 1]
    for rank in others:
        made.block(rank, 1, -1)("s", ("i", 0), ("s", 0), count=2)
    for at, rank in enumerate(others):
        made.block(1, -1, rank)("r", ("s", 2 * at), ("s", 2 * at), count=2, announces=1)
    step = made.block(1, -1, -1)
    step("cpy", ("i", 0), ("o", 0), count=2)
    for at in range(len(others) - 1):
        step("nop", count=0, wait=(at, 0))
    for at in range(len(others)):
        step("re", ("s", 2 * at), ("o", 0), count=2, wait=(len(others) - 1, 0) if at == 0 else (-1, -1))
    return made.text()


def broadcast_with_copy(ranks):
    """Out of place: the root copies its input, too."""
    made = Writer("broadcast", ranks, 3, False, lambda rank: (3 if rank == 0 else 0, 3, 0))
    for rank in range(ranks):
        step = made.block(rank, rank + 1 if rank + 1 < ranks else -1, rank - 1)
        for chunk in range(3):
            step("s" if rank == 0 else "rcs" if rank + 1 < ranks else "r", ("i" if rank == 0 else "o", chunk), ("o", chunk))
    made.block(0, -1, -1)("cpy", ("i", 0), ("o", 0), count=3)
    return made.text()


def shifted_broadcast(by):
    """Rank 1 moves both chunks by so many places in scratch before it copies them to its output."""
    made = Writer("broadcast", 2, 2, False, lambda rank: (0, 2, 4) if rank else (2, 2, 0))
    made.block(0, 1, -1)("s", ("i", 0), ("i", 0), count=2)
    step = made.block(1, -1, 0)
    step("r", ("s", 1), ("s", 1), count=2)
    step("cpy", ("s", 1), ("s", 1 + by), count=2)
    step("cpy", ("s", 1 + by), ("o", 0), count=2)
    return made.text()


def relayed_broadcast(channels):
    """Rank 1 gets chunk 1 first, and sends chunk 0 on first: by one thread block, or by two of which one waits."""
    made = Writer("broadcast", 3, 2, False, lambda rank: (0, 2, 0) if rank else (2, 2, 0), 2)
    step = made.block(0, 1, -1)
    for chunk in (1, 0):
        step("s", ("i", chunk), ("i", chunk))
    step = made.block(1, -1, 0)
    for chunk in (1, 0):
        step("r", ("o", chunk), ("o", chunk), announces=1)
    first = made.block(1, 2, -1)
    first("s", ("o", 0), ("o", 0), wait=(0, 1), announces=1)
    second = first if channels == 1 else made.block(1, 2, -1, 1)
    second("s", ("o", 1), ("o", 1), wait=(-1, -1) if channels == 1 else (1, 0))
    first = made.block(2, -1, 1)
    first("r", ("o", 0), ("o", 0))
    second = first if channels == 1 else made.block(2, -1, 1, 1)
    second("r", ("o", 1), ("o", 1))
    return made.text()


def wait_for_block(waited):
    """A broadcast whose first send waits for a thread block without a connection."""
    made = Writer("broadcast", 2, 1, True, lambda rank: (0, 1, 0))
    made.block(0, 1, -1)("s", ("o", 0), ("o", 0), wait=(waited, 0))
    for block in range(1, waited + 1):
        made.block(0, -1, -1)("nop", announces=int(block == waited))
    made.block(1, -1, 0)("r", ("o", 0), ("o", 0))
    return made.text()


class Fused(schedules.FolderTest):
    def test_imported(self):
        for text in (ring_allreduce(4, 1), ring_allreduce(5, 2), ring_allgather(6), ring_reduce_scatter(4, True), ring_reduce_scatter(3, False),
                     scratch_reduce(5), broadcast_with_copy(4)):
            given = msccl.execute(text, least_depth=2)
            file, out = self.path / "a.xml", self.path / "a.esp"
            with self.subTest(collective=given.collective):
                file.write_text(text)
                self.assertIn("proven for every N", schedules.espalier("import", "msccl", file, "-o", out))
                facts = json.loads(schedules.espalier("show", out, "--rank", "0", "--format", "json"))
                self.assertEqual((facts["collective"], facts["ranks"], facts["algorithm"]), (given.collective, given.ranks, "by hand"))
                self.assertEqual(facts.get("root", 0), given.root)
                for size in ("1", "4000", "1MiB"):
                    schedules.espalier("simulate", out, "--bytes", size, *(["--op", "max", "--type", "u8"] if "reduce" in given.collective else []))
                schedules.espalier("export", "msccl", out, "-o", file, "--blocks", "3")
                self.assertEqual(msccl.execute(file.read_text()).collective, given.collective)

    def test_step_that_overlaps_itself(self):
        file, out = self.path / "a.xml", self.path / "a.esp"
        for by, is_right in ((-1, False), (1, False), (0, True)):
            text = shifted_broadcast(by)
            with self.subTest(by=by):
                file.write_text(text)
                done = schedules.call("import", "msccl", file, "-o", out)
                self.assertEqual(done.returncode, 0 if is_right else 1, done.stderr)
                if is_right:
                    msccl.execute(text)
                else:
                    self.assertRaises(msccl.Wrong, msccl.execute, text)
        file.write_text(shifted_broadcast(-1))
        done = schedules.call("import", "msccl", file, "-o", out)
        self.assertIn("rank 1, tb 0, step 1 (line 10) reads and writes chunk 1 of scratch", done.stderr)

    def test_order_is_in_the_digest(self):
        """Nodes of two schedules that send the same in another order must not join."""
        digests, first = set(), []
        for channels in (1, 2):
            file, out = self.path / "a.xml", self.path / f"{channels}.esp"
            file.write_text(relayed_broadcast(channels))
            msccl.execute(file.read_text())
            schedules.espalier("import", "msccl", file, "-o", out)
            facts = json.loads(schedules.espalier("show", out, "--rank", "1", "--blocks", "1", "--format", "json"))
            digests.add(facts["schedule_digest"])
            first.append(next(one["a"] for one in facts["programs"][0]["steps"] if one["kind"] == "send"))
        self.assertNotEqual(*first)
        self.assertEqual(len(digests), 2)

    def test_in_place(self):
        """A file for one buffer becomes a schedule for one buffer."""
        file, out = self.path / "a.xml", self.path / "a.esp"
        for text in ring_allreduce(4, 1), ring_allreduce(3, 2), ring_allgather(4), ring_reduce_scatter(4, True):
            file.write_text(text)
            schedules.espalier("import", "msccl", file, "-o", out)
            self.assertTrue(schedules.espalier("verify", out).rstrip().endswith("; in place too"), text)

    def test_options(self):
        file, out = self.path / "a.xml", self.path / "a.esp"
        file.write_text(ring_allreduce(4, 1))
        schedules.espalier("import", "msccl", file, "-o", out, "--topology", "mesh:2x2")
        self.assertIn("is for 4 ranks, and complete:5 has 5", schedules.refusal("import", "msccl", file, "-o", out, "--topology", "complete:5"))
        self.assertIn("expected no --root", schedules.refusal("import", "msccl", file, "-o", out, "--root", "1"))
        text = scratch_reduce(4).replace('o_chunks="0"', 'o_chunks="2"')
        file.write_text(text)
        self.assertIn("expected --root", schedules.refusal("import", "msccl", file, "-o", out))
        schedules.espalier("import", "msccl", file, "-o", out, "--root", "1")
        text = ring_allgather(3)
        file.write_text(text.replace("inplace=\"1\" outofplace=\"0\"", "inplace=\"1\""))  # as microsoft's reader has it
        schedules.espalier("import", "msccl", file, "-o", out)
        for old, new, says in (("<gpu", "words <gpu", "line 2: text between elements"), ('minBytes="0"', 'minBytes="-1"', 'minBytes="-1"'),
                               ('minBytes="0" maxBytes="0"', 'minBytes="9" maxBytes="8"', "minBytes is above maxBytes"),
                               ('ngpus="3"', f'ngpus="{"3" * 1000}"', "3...\"; expected a number")):
            file.write_text(text.replace(old, new, 1))
            line = schedules.refusal("import", "msccl", file, "-o", out)
            self.assertIn(says, line)
            self.assertLess(len(line), 300)

    def test_block_that_readers_cannot_wait_for(self):
        """MSCCL's readers keep the number in a signed byte, where 128 is negative."""
        file, out = self.path / "a.xml", self.path / "a.esp"
        file.write_text(wait_for_block(127))
        schedules.espalier("import", "msccl", file, "-o", out, "--root", "0")
        file.write_text(wait_for_block(128))
        self.assertIn("line 4: step waits for thread block 128 (depid); expected at most 127, because RCCL, msccl-executor and msccl",
                      schedules.refusal("import", "msccl", file, "-o", out, "--root", "0"))

    def test_broadcast_of_one_rank(self):
        file, xml, out = self.path / "s.esp", self.path / "a.xml", self.path / "a.esp"
        self.assertIsNone(schedules.compile(file, "ring:1", "broadcast", "chain"))
        schedules.espalier("export", "msccl", file, "-o", xml)
        self.assertIn("proven for every N", schedules.espalier("import", "msccl", xml, "-o", out))
        schedules.espalier("simulate", out, "--bytes", "100")


if __name__ == "__main__":
    unittest.main(verbosity=2)
