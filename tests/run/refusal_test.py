#!/usr/bin/python3
"""Bad input: one clear line, exit status 2, nothing left behind."""
import os
import unittest
import unittest.mock

import espalier

SHM = ('provider "shm": a peer that is stopped or killed can block all processes that share its memory; expected mem, which joins the '
       "processes of one host")


class Refusals(espalier.FolderTest):
    def test_run(self):
        def refused(words, *texts):
            self.refused(espalier.run_text(*words), *texts)

        what = espalier.what("complete:4", "broadcast", "two-tree")
        refused([*what, "--provider", "carrier-pigeon"], "carrier-pigeon", "no such provider", "mem")
        refused([*what, "--provider", "udp"], '"udp"', "FI_EP_RDM")
        refused([*what, "--provider", "udp;ofi_rxd"], "crashes")
        refused([*what, "--provider", "sockets"], "deprecated")
        refused([*what, "--provider", "shm"], SHM)
        refused([*what, "--input", self.path / "nothing"], "cannot read", "nothing")
        refused([*what, "--input", self.path], "cannot read")
        refused([*what, "--root", "4"], "root")
        refused(espalier.what("mesh:0x4", "broadcast", "two-tree"), "mesh:0x4")
        refused(espalier.what("circle:4", "broadcast", "two-tree"), "circle:4")
        refused(espalier.what("complete:4", "broadcast", "magic"), "magic")
        refused(espalier.what("complete:4", "allreduce", "binomial"), "binomial")
        refused([*what, "--bytes", "-1"], "-1")
        refused([*what, "--bytes", "many"], "many")
        refused([*what, "--bytes", "1024GiB"], "memory", "at most")
        refused([*what, "--output", "/proc/nothing"], "/proc/nothing")
        refused([*what, "--kill", "4@100"], "--kill 4@100", "0 to 3")
        with unittest.mock.patch.dict(os.environ):
            del os.environ["ESPALIER_TEST_FAULTS"]
            for aid in ("--kill", "--stop"):
                refused([*what, aid, "1@100"], aid)
        self.refused(espalier.call("--version", "foo"), "unexpected argument 'foo' after --version")
        refused([*what, "--start", "0-3=true", "--nodes-per-process", 2], "--nodes-per-process has no effect")
        self.refused(espalier.call("run", *what, "--node-binary", self.path / "nothing"), "nothing")
        reduce = espalier.what("complete:4", "reduce", "two-tree")
        refused([*reduce, "--type", "f33"], "f33")
        allreduce = espalier.what("complete:2", "allreduce", "two-tree")
        refused([*allreduce, "--counts", "1,2"], "an allreduce has one message")
        refused([*reduce, "--op", "average"], "average")
        refused([*reduce, "--type", "f32", "--op", "xor"], "xor on f32")
        refused([*reduce, "--bytes", "7"], "multiple of 4")
        refused([*reduce, "--input", espalier.NODE], "--input")
        refused([*reduce, "--root", 2, "--op", "affine", "--bytes", 8], "does not commute")
        refused([*espalier.what("complete:4", "scan", "chain"), "--op", "affine", "--bytes", 12], "multiple of 8")
        refused([*espalier.what("complete:4", "barrier", "dissemination"), "--bytes", 1], "a barrier moves no bytes")
        refused(espalier.what("complete:4", "allgather", "leaf"), "for fat trees, whose routers run programs too, not for complete:4")
        refused([*what, "--run-length", 3], "--run-length is no parameter of algorithm 'two-tree'")
        refused([*espalier.what("complete:4", "broadcast", "lambda-tree"), "--lambda", "1/2"], "--lambda '1/2'")
        refused([*what, "--links", "direct"], "--links 'direct'", "routed or hop-by-hop")
        refused([*espalier.what("complete:200", "broadcast", "chain"), "--links", "hop-by-hop"], "rank 0 of complete:200 has 199 lanes",
                "128 endpoints")
        refused([*what, "--start", "4=true"], "--start '4=true'", "0 to 3")
        for ranks in ("", "1,", "2-1", "x", "-1", "1-", "0x1"):
            refused([*what, "--start", f"{ranks}=true"], f"--start '{ranks}=true'", "as 4,5 or 4-7")
        refused([*what, "--start", "1-3=true", "--start", "0,2=true"], "--start '0,2=true'", "node 2 is started twice")
        refused([*what, "--start", "1= "], "--start '1= '", "NODES=COMMAND")
        refused([*what, "--start", "1"], "--start '1'", "NODES=COMMAND")
        for option in ("--flash", "--image"):
            refused([*what, option, "1,4=f", "--unsigned"], f"{option} '1,4=f'", "0 to 3")
            refused([*what, option, "1=", "--unsigned"], f"{option} '1='", "NODES=FILE")
            refused([*what, option, "1=f", "--start", "0,3=true", "--unsigned"], f"{option} '1=f'", "node 2 boots nothing")
        refused([*what, "--nodes-per-process", 0], "--nodes-per-process")
        refused([*what, "--nodes-per-process", 257], "--nodes-per-process")
        refused([*espalier.what("fattree:k=2,h=2,c=1", "broadcast", "leaf"), "--kill", "7@1"], "--kill 7@1", "0 to 6")
        refused([*espalier.what("complete:4", "all-to-all", "pairwise"), "--bytes", "64GiB"], "a rank", "memory", "at most")
        refused(["/dev/null"], "/dev/null")

    def test_counts(self):
        def refused(collective, algorithm, counts, *texts, more=(), topology="complete:4"):
            self.refused(espalier.run_text(*espalier.what(topology, collective, algorithm), "--counts", counts, *more), *texts)

        refused("broadcast", "two-tree", "1,2,3,4", "--counts is for scatter", "a broadcast has one message")
        refused("barrier", "dissemination", "0,0,0,0", "--counts is for scatter", "barrier")
        refused("scatter", "binomial", "1,2,3", "--counts has 3 numbers, and scatter on 4 ranks takes 4")
        refused("scatter", "binomial", "1,2,3,4,5", "--counts has 5 numbers")
        refused("all-to-all", "pairwise", "1,2,3,4", "4 ranks takes 16, for each of 4 origins a row of 4")
        refused("scatter", "binomial", "1,-2,3,4", "--counts '-2' is not a whole number")
        refused("scatter", "binomial", "1,2x,3,4", "--counts '2x' is not a whole number")
        refused("scatter", "binomial", "1,2,3,4", "--counts excludes --bytes", more=["--bytes", 4])
        refused("scatter", "binomial", f"1,2,3,{1 << 40}", "expected at most")
        refused("scatter", "binomial", f"1,2,3,{1 << 38}", "memory")
        refused("scatter", "binomial", "random:5", "expected random:SEED:MAX")
        refused("scatter", "binomial", "random:x:5", "'x' is not a whole number")
        refused("scatter", "binomial", f"@{self.path}/nothing", "cannot read", "nothing")
        refused("all-to-all", "leaf", "random:1:9", "all-to-all by leaf passes parts on", topology="fattree:k=2,h=2,c=1")

    def test_a_damaged_schedule_is_not_run(self):
        whole = espalier.compile(self.path / "whole.esp", "complete:3").read_bytes()
        for at in range(0, len(whole), 97):
            damaged = self.path / "damaged.esp"
            damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
            self.refused(espalier.run_text(damaged), "damaged.esp")
            damaged.write_bytes(whole[:at])
            self.refused(espalier.run_text(damaged), "damaged.esp")

    def test_node(self):
        file = espalier.compile(self.path / "b.esp", "complete:3")
        whole = file.read_bytes()

        def node(*words, number=1):
            return espalier.call("--schedule", file, "--node", number, *words, program=espalier.NODE)

        good = node("--check", "--topology", "complete:3")
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        self.assertIn("two-tree", good.stdout)
        self.refused(node("--check", "--topology", "complete:4"), "complete:3", "complete:4")
        self.refused(node("--check", "--topology", "mesh:1x3"), "mesh:1x3")
        self.refused(node("--check", number=3), "no node 3")
        self.refused(node("--check", "--provider", "carrier-pigeon"), "carrier-pigeon")
        self.refused(node("--check", "--provider", "shm"), SHM)
        for provider in ("tcp", "mem", "carrier-pigeon"):
            alone = espalier.call("--check", "--provider", provider, program=espalier.NODE)
            self.assertEqual((alone.returncode, alone.stdout), (0 if provider != "carrier-pigeon" else 2, ""), alone.stderr)
        self.refused(node(), "--control")
        self.refused(node("--control", "5", "--node", "2"), "2 nodes and 1 control channel")
        self.refused(node("--control", "3"), "--control 3", "no socket")
        self.refused(node("--surplus"), "--surplus")
        for size in (0, 7, 8, 43, 44, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:size])
            self.refused(node("--check", number=2), "b.esp")
        for at in range(0, len(whole), 61):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
            refused = [done for done in (node("--check", number=number) for number in range(3))
                       if done.returncode != 0]
            self.assertTrue(refused, f"byte {at}")
            for done in refused:
                self.refused(done, "b.esp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
