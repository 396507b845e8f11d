#!/usr/bin/env python3
"""Endpoints with cables, on the hosts of lab.py: all bytes leave by the cables, parallel ones are both used, and a cut is known at once.

links.py RANK_PROGRAM        the program is tests/cables/links.cc
"""
import contextlib
import json
import pathlib
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import lab as cables
from processes import HANG_S

PROGRAM = sys.argv.pop(1)


def link_local(lab, host, name):
    """The address by which an interface reaches its cable."""
    shown = json.loads(subprocess.run(lab.on(host, ["ip", "-j", "-6", "address", "show", "dev", name]), capture_output=True, check=True).stdout)
    return [each["local"] for each in shown[0]["addr_info"]][0] + "%" + name


class Ranks:
    """`per_host` successive ranks on each host. owners[k]: the ranks at the two ends of cable k."""

    def __init__(self, ends, lab, per_host, owners, provider, size, rounds, deadline_ms):
        count = per_host * len(lab.names)
        given = {rank: [] for rank in range(count)}
        for number, (cable, (a, b)) in enumerate(zip(lab.cables, owners)):
            given[a].append(f"{number},{b},{link_local(lab, cable.a, cable.a_name)}")
            given[b].append(f"{number},{a},{link_local(lab, cable.b, cable.b_name)}")
        self.processes = []
        for rank in range(count):
            host = rank // per_host
            text = f"host{host}" if "+" in provider else ""
            words = [PROGRAM, rank, count, provider, text, size, rounds, deadline_ms, *given[rank]]
            process = ends.enter_context(subprocess.Popen(lab.on(host, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            ends.callback(process.kill)
            self.processes.append(process)
        addresses = "".join(process.stdout.readline() for process in self.processes)
        for process in self.processes:
            process.stdin.write(addresses)
            process.stdin.flush()
        for process in self.processes:
            line = process.stdout.readline()
            if line != "begins\n":
                raise AssertionError(addresses + line)

    def read(self, last):
        """The lines of each rank, until one that begins with `last`."""
        found = []
        for process in self.processes:
            lines = []
            while not lines or (lines[-1] and lines[-1][0] != last):
                lines.append(process.stdout.readline().split())
            found.append(lines)
        return found

    def end(self):
        for process in self.processes:
            process.stdin.close()
            process.wait(timeout=HANG_S)


class Links(unittest.TestCase):
    @contextlib.contextmanager
    def ranks(self, shape, per_host, owners, provider, size=1 << 20, rounds=0, deadline_ms=20_000, **options):
        with contextlib.ExitStack() as ends:
            lab = ends.enter_context(cables.Lab(shape, **options))
            before = lab.counts()
            yield lab, Ranks(ends, lab, per_host, owners, provider, size, rounds, deadline_ms), before

    def check_bytes(self, shape, per_host, owners, provider, rounds=20, size=1 << 20):
        with self.ranks(shape, per_host, owners, provider, size, rounds, management="first") as (lab, ranks, before):
            found = ranks.read("right")
            after = lab.counts()
            ranks.end()
        self.assertEqual([lines[-1] for lines in found], [["right", str(rounds)]] * len(found))
        counted = {}  # by rank and cable: sent, received
        for rank, lines in enumerate(found):
            counted |= {(rank, int(line[1])): (int(line[3]), int(line[5])) for line in lines[:-1]}
        total = 0
        for number, (cable, (a, b)) in enumerate(zip(lab.cables, owners)):
            self.assertEqual(counted[a, number], counted[b, number][::-1], number)
            for rank, host, name in ((a, cable.a, cable.a_name), (b, cable.b, cable.b_name)):
                sent = after[host, name][0] - before[host, name][0]
                self.assertGreater(sum(counted[rank, number]), 0)
                self.assertGreaterEqual(sent, counted[rank, number][0])
                # Headers, acknowledgements, words of flow control.
                self.assertLess(sent, 1.1 * counted[rank, number][0] + 0.1 * counted[rank, number][1] + 200_000)
                total += counted[rank, number][0]
        for host in range(len(lab.names)):
            self.assertLess(after[host, "mgmt0"][0] - before[host, "mgmt0"][0], 20_000)
        return counted, total

    def test_a_triangle_of_ranks(self):
        counted, total = self.check_bytes("triangle", 1, [(0, 1), (0, 2), (1, 2)], "tcp")
        # Each rank sends 4/3 of the message to its successor.
        self.assertAlmostEqual(total / (3 * 20 * 4 / 3 * 2**20), 1, delta=0.01)

    def test_ranks_of_a_host_share_memory(self):
        counted, total = self.check_bytes("triangle", 2, [(1, 2), (0, 5), (3, 4)], "mem+tcp")
        self.assertAlmostEqual(total / (3 * 20 * 10 / 6 * 2**20), 1, delta=0.01)  # of six links, three are cables

    def test_two_cables_carry_half_of_the_bytes_each(self):
        counted, total = self.check_bytes("pair-double", 1, [(0, 1), (0, 1)], "mem+tcp", rounds=21)
        for rank in (0, 1):
            self.assertAlmostEqual(counted[rank, 0][0] / counted[rank, 1][0], 1, delta=0.1)

    def test_a_cut_is_known_at_once(self):
        with self.ranks("triangle", 1, [(0, 1), (0, 2), (1, 2)], "tcp", deadline_ms=20_000) as (lab, ranks, _):
            time.sleep(0.3)
            begin = time.monotonic()
            lab.set_carrier(lab.cables[1], False)  # of 0 and 2
            done = time.monotonic()
            dead = [process.stdout.readline().split() for process in ranks.processes]
        self.assertEqual({line[0] for line in dead}, {"dead"})
        self.assertEqual({tuple(line[1:3]) for line in dead} - {("0", "2"), ("2", "0")}, set())
        self.assertEqual({" ".join(line[4:]) for line in dead}, {"dead link"})
        late = [int(line[3]) / 1e9 - begin for line in dead]
        print(f"a cut of {done - begin:.3f} s, known after " + " ".join(f"{each:.3f}" for each in late), file=sys.stderr)
        self.assertGreater(min(late), 0.1)
        self.assertLess(min(late), 10)  # D / 2: without the carrier, it would take 20 s

    def test_a_flap_is_forgiven(self):
        with self.ranks("triangle", 1, [(0, 1), (0, 2), (1, 2)], "tcp", rounds=3000, size=4096) as (lab, ranks, _):
            for _ in range(2):
                lab.flap(lab.cables[1], 0.05)
                time.sleep(0.3)
            found = ranks.read("right")
            ranks.end()
        self.assertEqual([lines[-1] for lines in found], [["right", "3000"]] * 3)


if __name__ == "__main__":
    if reason := cables.refusal():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
