#!/usr/bin/env python3
"""Whether `espalier cables` finds the cables of lab.py: each host prints the graph that was built.

discovery.py --table ESPALIER [SHAPE..]   all shapes, with a management network and without, MTU 1500 and 9000; prints a table
discovery.py --check ESPALIER             a sample, and everything that is to be named: silent and looped cables, names, islands, strangers
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import lab as cables
from hosts import alone
from lab_case import LabCase, secret_file
from processes import HANG_S, wait_for

PORT = 29752
WAIT_S = 20  # of a search that ends earlier if all is well
ESPALIER = None


def search(lab, secret, *words, hosts=None, wait=WAIT_S, pause=0.0):
    """Runs the search on the hosts. Returns for each its exit status, its graph, the rest that it said, and when it ended after the last start."""
    def one(host):
        time.sleep(pause * host)
        begin = time.monotonic()
        done = subprocess.run(lab.on(host, [ESPALIER, "cables", "--json", "--wait", wait, "--secret-file", secret, *words]), capture_output=True, text=True, timeout=HANG_S)
        return begin, time.monotonic(), done
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        found = list(threads.map(one, hosts if hosts is not None else range(len(lab.names))))
    last = max(begin for begin, _, _ in found)
    return [(done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr, end - last) for _, end, done in found]


def cables_of(graph):
    return sorted(tuple(each[end][part] for end in ("from", "to") for part in ("host", "interface")) for each in graph["cables"])


def built(lab, without=()):
    """The cables of the laboratory, as the graph names them."""
    return sorted((lab.names[a], a_name, lab.names[b], b_name) for a, a_name, b, b_name in lab.cables if a not in without and b not in without)


def kinds(graph):
    return sorted(each["kind"] for each in graph["findings"])


def problems(lab, found, mtu):
    """What is wrong with the graphs that the hosts found; nothing: they are what was built, and all the same."""
    if any(each[1] is None for each in found):
        return next(each[2] for each in found if each[1] is None)
    for host, (status, graph, said, _) in enumerate(found):
        expected = [] if lab.management is None else ["switch"]
        expected += ["islands"] * (lab.shape == "islands") + ["lanes"] * 10 * (lab.shape == "mesh2x4-double")
        if cables_of(graph) != built(lab):
            return f"{lab.names[host]} found {cables_of(graph)}"
        if kinds(graph) != sorted(expected) or status != (1 if lab.shape == "islands" else 0):
            return f"{lab.names[host]}: {graph['findings']}, status {status}: {said}"
        if any(each["mtu"] != mtu or not each["round_trip_ns"] for each in graph["cables"]):
            return f"{lab.names[host]}: {graph['cables']}"
    if any({**graph, "refused_packets": 0} != {**found[0][1], "refused_packets": 0} for _, graph, _, _ in found):
        return "the hosts print different graphs"
    return None


def whole(shape, management, mtu, is_new=False, times=1):
    """Seconds from the last start until all hosts have ended, in order; or what went wrong. Islands without a network see themselves only."""
    seconds = []
    with tempfile.TemporaryDirectory(prefix="espalier-cables-") as folder, cables.Lab(shape, management, mtu, is_new=is_new) as lab:
        for _ in range(times):
            found = search(lab, secret_file(folder, f"secret{len(seconds)}"), "--hosts", len(lab.names))
            if wrong := problems(lab, found, mtu):
                return wrong
            seconds.append(max(each[3] for each in found))
    return sorted(seconds)


def table(shapes, times):
    print("| shape | hosts | cables | management network | MTU | graphs found | median, s | longest, s |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    good = True
    for shape in shapes:
        for management in (None, "first"):
            # No host of an island can know of the other one, and a switch of two hosts looks like a cable.
            if (shape, management) in (("islands", None), ("pair", "first")):
                continue
            for mtu in (1500, 9000):
                seconds = whole(shape, management, mtu, times=times)
                good &= not isinstance(seconds, str)
                result = f"0 of {times}: {seconds} | - | -" if isinstance(seconds, str) else f"{times} of {times} | {statistics.median(seconds):.2f} | {seconds[-1]:.2f}"
                print(f"| {shape} | {cables.size_of(shape)} | {len(cables.SHAPES[shape])} | {'yes' if management else 'no'} | {mtu} | {result} |", flush=True)
    return 0 if good else 1


class Discovery(LabCase):
    def finding(self, graph, kind):
        texts = [each["text"] for each in graph["findings"] if each["kind"] == kind]
        self.assertEqual(len(texts), 1, graph["findings"])
        return texts[0]

    def test_the_graph_found_is_the_graph_built(self):
        for shape, management, mtu, is_new in (("mesh3x3", "first", 9000, False), ("triangle", None, 1500, True), ("mesh2x4-double", None, 9000, False)):
            with self.subTest(shape=shape):
                self.assertIsInstance(found := whole(shape, management, mtu, is_new), list, found)

    def test_islands_with_a_network_are_named_and_no_topology_is_written(self):
        lab = self.lab("islands", "last")
        path = self.folder / "islands.textproto"
        for status, graph, said, _ in search(lab, self.secret, "--hosts", 6, "--topology", path):
            self.assertEqual((status, said), (1, "espalier: no topology was written: the cables do not connect all hosts\n"))
            self.assertIn("box0, box1, box2; box3, box4, box5", self.finding(graph, "islands"))
        self.assertFalse(path.exists())

    def test_what_was_not_found_to_its_end_is_not_written(self):
        lab, path, picture = self.lab("pair"), self.folder / "half.textproto", self.folder / "half.svg"
        for status, graph, said, _ in search(lab, self.secret, "--hosts", 3, "--topology", path, "--svg", picture, wait=3):
            self.assertEqual((status, said), (1, "espalier: 1 fault in the graph of the cables; no file was written\n"))
            self.assertEqual(cables_of(graph), built(lab))
        self.assertFalse(path.exists() or picture.exists())

    def test_names_that_a_topology_cannot_have_are_named(self):
        path = self.folder / "ports"
        path.write_text("box1 Ethernet1/1 box2 eth0\n", encoding="ascii")
        done = subprocess.run([ESPALIER, "cables", "--file", path, "--topology", self.folder / "out"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^espalier: no topology was written: cable: 'Ethernet1/1' at host box1 is not the name of an interface; expected .*\n$")
        self.assertFalse((self.folder / "out").exists())

    def test_without_an_interface_nothing_is_searched(self):
        for words, named in (([], ""), (["--interface", "lo"], " among those that are named")):
            done = subprocess.run(["unshare", "-n", "sh", "-ec", 'ip link set lo up; exec "$@"', "sh", ESPALIER, "cables", "--secret-file", self.secret, *words],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"espalier: no interface to search is up{named}, except the loopback; "
                                                                           "expected one with a cable, set up by ip link set NAME up\n"))

    def test_more_interfaces_than_a_search_has_are_refused(self):
        make = 'for i in $(seq 257); do echo "link add b$i up type bridge"; done | ip -batch - && exec "$@"'
        done = subprocess.run(["unshare", "-n", "sh", "-ec", make, "sh", ESPALIER, "cables", "--secret-file", self.secret], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "espalier: this host has 257 interfaces to search; expected at most 256, or names of some (ESPALIER_INTERFACE, "
                         "espalier cables --interface)\n")

    def test_a_ring_with_faults(self):
        """One cable is silent one way, another is a loop, two hosts have one name, an interface has no IPv6; the hosts start one after the other."""
        lab = self.lab("ring4")
        lab.set_silent(lab.cables[0], True, only_from=1)
        lab.ip(2, "link add loop0 type veth peer name loop1", "link set loop0 up", "link set loop1 up", "link add dead0 type veth peer name dead1", "link set dead1 up")
        subprocess.run(lab.on(2, ["sh", "-ec", "echo 1 >/proc/sys/net/ipv6/conf/dead0/disable_ipv6; ip link set dead0 up"]), check=True)
        subprocess.run(lab.on(3, ["hostname", "box2"]), check=True)
        lab.wait_for_addresses()
        addresses = lab.on(2, ["grep", "-c", "fe80.*loop", "/proc/net/if_inet6"])
        self.assertTrue(wait_for(lambda: subprocess.run(addresses, capture_output=True, text=True).stdout == "2\n"))
        found = search(lab, self.secret, "--hosts", 4, pause=0.3)
        for status, graph, said, _ in found:
            self.assertEqual((status, said), (1, "espalier: 2 faults in the graph of the cables\n"))
            self.assertEqual(graph["cables"], found[0][1]["cables"])
            self.assertEqual([name for name, *_ in cables_of(graph)], ["box0", "box1", "box2"])
            self.assertEqual(kinds(graph), ["loop", "no-probe", "one-sided", "same-name"])
            self.assertIn("box1 to0 receives from box0 to1, which does not receive from it", self.finding(graph, "one-sided"))
            self.assertRegex(self.finding(graph, "loop"), r"^a cable joins box2(#2)? loop(0 to loop1|1 to loop0) of the same host$")
            self.assertRegex(self.finding(graph, "no-probe"), r"^box2(#2)? dead0 has IPv6 off")
            self.assertIn("2 hosts have the name box2", self.finding(graph, "same-name"))

    def test_a_stranger_is_not_believed(self):
        """box3 of a star records a search, and in the next one floods its cable with what it recorded, with changed packets and with garbage."""
        lab, recorded = self.lab("star5"), self.folder / "recorded"
        others = [0, 1, 2, 4]
        with subprocess.Popen(lab.on(3, [sys.executable, HERE / "stranger.py", "record", "to0", PORT, 4, recorded]), stdout=subprocess.PIPE) as stranger:
            self.assertEqual(stranger.stdout.readline(), b"ready\n")
            search(lab, self.secret, "--hosts", 4, hosts=others)
        self.assertGreater(len(recorded.read_text().split()), 3)
        flood = subprocess.Popen(lab.on(3, [sys.executable, HERE / "stranger.py", "flood", "to0", PORT, 4, recorded]), stdout=subprocess.PIPE, text=True)
        with flood:
            self.assertEqual(flood.stdout.readline(), "ready\n")
            found = search(lab, self.secret, "--hosts", 4, hosts=others)
            self.assertGreater(int(flood.communicate(timeout=HANG_S)[0]), 1000)
        for status, graph, said, _ in found:
            self.assertEqual((status, said), (0, ""), graph)
            self.assertEqual(cables_of(graph), built(lab, without=[3]))
            # Notes, not faults: what it reflects at once is a loop for all that can be known, and what it repeats is heard.
            self.assertLessEqual(set(kinds(graph)), {"loop", "unproven"})
        self.assertGreater(found[0][1]["refused_packets"], 500)

    def test_another_secret_finds_nobody(self):
        lab = self.lab("pair")
        other = secret_file(self.folder, "other")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            one = threads.submit(search, lab, self.secret, hosts=[0], wait=2)
            two = threads.submit(search, lab, other, hosts=[1], wait=2)
            for [(status, graph, said, _)] in (one.result(), two.result()):
                self.assertEqual((status, said, graph["cables"]), (1, "espalier: 1 fault in the graph of the cables\n", []))
                self.assertEqual(kinds(graph), ["alone"])
                self.assertGreater(graph["refused_packets"], 0)
        # Nor do two searches on one host find each other: the second is refused, and prints nothing else.
        refused, alone_ = sorted(search(lab, self.secret, hosts=[0, 0], wait=3), key=lambda each: each[1] is not None)
        self.assertEqual((refused[0], refused[1], alone_[0]), (2, None, 1))
        self.assertEqual(refused[2], f"espalier: cannot use UDP port {PORT} on to1: Address already in use; expected one search at a time, or another port\n")

    def test_what_is_written_can_be_read(self):
        lab = self.lab("four-less-one")
        path, picture = self.folder / "cables.textproto", self.folder / "cables.svg"
        found = search(lab, self.secret, "--hosts", 4, "--topology", path, "--svg", picture)
        self.assertEqual([(status, said) for status, _, said, _ in found], [(0, "")] * 4)
        shown = subprocess.run([ESPALIER, "topology", f"file:{path}", "--format", "json"], capture_output=True, text=True, check=True)
        topology = json.loads(shown.stdout)
        self.assertEqual([each["name"] for each in topology["nodes"]], [f"rank {host} ({name})" for host, name in enumerate(lab.names)])
        self.assertEqual(sorted((each["from"], each["to"]) for each in topology["links"] if each["from"] < each["to"]), sorted((each.a, each.b) for each in lab.cables))
        self.assertIn("</svg>", picture.read_text())
        subprocess.run([ESPALIER, "compile", "--topology", f"file:{path}", "--links", "hop-by-hop", "--collective", "allreduce", "--algorithm", "packed-trees",
                        "-o", self.folder / "a.esp"], check=True, capture_output=True)


def main():
    global ESPALIER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("espalier")
    parser.add_argument("shapes", nargs="*", default=[], help="of --table; otherwise all")
    arguments = parser.parse_args()
    ESPALIER = os.path.abspath(arguments.espalier)
    if reason := cables.refusal():
        print(f"skipped: {reason}")
        return 77
    alone()
    if arguments.table:
        return table(arguments.shapes or cables.SHAPES, arguments.times)
    if not arguments.check:
        parser.error("expected --table or --check")
    return 0 if unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
