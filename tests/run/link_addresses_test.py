#!/usr/bin/python3
"""Hosts without a switch: network namespaces with one veth pair per cable, link-local addresses, no routes, no forwarding. Runs with
--cables send over every cable, and over nothing else.

link_addresses_test.py            a sample
link_addresses_test.py --whole    eleven collectives on each shape
"""
import json
import os
import socket
import subprocess
import sys
import unittest

import espalier

WHOLE = "--whole" in sys.argv
PREFIX = f"way{os.getpid()}n"
SIZES = (8, 64 << 10, 1 << 20)
TRIANGLE = [(0, 1), (0, 2), (1, 2)]
RING = [(0, 1), (1, 2), (2, 3), (0, 3)]
PAIR = [(0, 1), (0, 1)]
GATEWAY = os.environ.get("ESPALIER_GATEWAY", str(espalier.ROOT / "build/firmware/gateway/espalier-gateway"))
KEPT = 200_000  # bytes of an interface that say that it carries data; neighbour discovery and such take some hundreds


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True).stdout


class Hosts:
    """Nodes 0, 1, ... with cable k from interface cable<k> to interface cable<k>. The numbers of its ends differ, so that a scope which
    travels would be wrong."""

    def __init__(self, case, cables, addresses="kernel", mtu=1500):
        self.cables, self.mtu = cables, mtu
        self.nodes = range(1 + max(max(ends) for ends in cables))
        case.addCleanup(self.remove)
        for node in self.nodes:
            ip("netns", "add", PREFIX + str(node))
            ip("-n", PREFIX + str(node), "link", "set", "lo", "up")
        for k, (a, b) in enumerate(cables):
            ip("link", "add", f"cable{k}", "index", 100 + k, "mtu", mtu, "netns", PREFIX + str(a), "type", "veth",
               "peer", "name", f"cable{k}", "index", 200 - k, "mtu", mtu, "netns", PREFIX + str(b))
            for number, node in enumerate((a, b), 1):
                if addresses == "same":  # on every cable fe80::1 and fe80::2: only scopes tell them apart
                    self.set(node, k, "addrgenmode", "none")
                    ip("-n", PREFIX + str(node), "address", "add", f"fe80::{number}/64", "dev", f"cable{k}", "nodad")
                self.set(node, k, "up")

    def set(self, node, k, *words):
        ip("-n", PREFIX + str(node), "link", "set", f"cable{k}", *words)

    def remove(self):
        for node in self.nodes:
            subprocess.run(["ip", "netns", "del", PREFIX + str(node)], check=False, capture_output=True)

    def text(self, cable_words=None, more=""):
        """The topology file."""
        hosts = "".join(f'node {{ node: {node} host: "host{node}" }}\n' for node in self.nodes)
        cables = "".join(f'cable {{ end {{ host: "host{a}" interface: "cable{k}" }} end {{ host: "host{b}" interface: "cable{k}" }} '
                         f"{(cable_words or {}).get(k, '')} }}\n" for k, (a, b) in enumerate(self.cables))
        return f'name: "cabled"\nranks: {len(self.nodes)}\n{hosts}{cables}{more}'

    def counters(self):
        """{(node, interface): bytes sent}"""
        return {(node, one["ifname"]): one["stats64"]["tx"]["bytes"] for node in self.nodes
                for one in json.loads(ip("-n", PREFIX + str(node), "-s", "-j", "link"))}


def refusal():
    """Why no namespace can be made; empty: it can."""
    try:
        ip("netns", "add", f"{PREFIX}x")
    except FileNotFoundError:
        return "no program ip (Debian's iproute2)"
    except subprocess.CalledProcessError as error:
        return error.stderr.strip() or "ip netns add fails"
    ip("netns", "del", f"{PREFIX}x")
    return ""


class Base(espalier.FolderTest):
    def setUp(self):
        if reason := refusal():
            self.skipTest(f"no network namespaces: {reason}")
        super().setUp()

    def write(self, text):
        file = self.path / "cables.textproto"
        file.write_text(text, encoding="utf-8")
        return file

    def words(self, file, collective, *more, algorithm="auto"):
        sizes = [0] if collective == "barrier" else [max(8, size // (4 if collective in espalier.PER_RANK else 1)) for size in SIZES]
        operator = ["--op", "affine" if algorithm == "auto" else "sum"] if collective in espalier.COMBINE else []
        return ["--cables", file, "--collective", collective, "--algorithm", algorithm, "--bytes", ",".join(map(str, sizes)), *operator,
                "--launch-prefix", f"ip netns exec {PREFIX}%r", "--deadline", 60000, *more]


class Cabled(Base):
    def check(self, hosts, file, collective, algorithm="auto"):
        """Runs it; every result is right, each endpoint leaves by its cable. Returns {(node, interface): bytes sent}."""
        before = hosts.counters()
        found = self.right(*self.words(file, collective, algorithm=algorithm))
        for one in found.get("schedules", [found]):
            ends = {(node["node"], end["peer"], end["lane"], end["interface"]) for node in one["processes"] for end in node["endpoints"]}
            lanes = [(k, sum(ends == other for other in hosts.cables[:k]), ends) for k, ends in enumerate(hosts.cables)]
            self.assertEqual(ends, {(*way, lane, f"cable{k}") for k, lane, (a, b) in lanes for way in ((a, b), (b, a))})
            self.assertEqual(one["links"], "hop-by-hop")
        sent = {key: after - before[key] for key, after in hosts.counters().items()}
        self.assertEqual(sum(bytes for (_, interface), bytes in sent.items() if interface == "lo"), 0)
        return sent

    def check_shape(self, hosts, collectives):
        file = self.write(hosts.text())
        for collective in espalier.COLLECTIVES if WHOLE else collectives:
            with self.subTest(collective=collective):
                self.check(hosts, file, collective)
        sent = self.check(hosts, file, "allreduce", "packed-trees")  # which sends over each cable both ways
        for k, ends in enumerate(hosts.cables):
            for node in ends:
                self.assertGreater(sent[node, f"cable{k}"], KEPT, f"{sent}")
        return sent

    def test_triangle(self):
        self.check_shape(Hosts(self, TRIANGLE), ("barrier", "scatter", "exscan"))

    def test_ring(self):
        self.check_shape(Hosts(self, RING, "same"), ("allgather", "reduce-scatter", "broadcast"))

    def test_two_cables(self):
        """Both are lanes of one link, and share its bytes."""
        sent = self.check_shape(Hosts(self, PAIR, "same", 9000), ("all-to-all", "gather", "reduce"))
        for node in (0, 1):
            both = [sent[node, f"cable{k}"] for k in (0, 1)]
            self.assertGreater(min(both), 0.45 * sum(both), f"{sent}")

    def test_nodes_behind_a_gateway(self):
        """As on other hosts: the node, not its gateway, knows the interfaces."""
        hosts = Hosts(self, TRIANGLE, "same")
        remote = f"{GATEWAY} --node-command 'ip netns exec {PREFIX}%r {espalier.NODE} --stdio'"
        self.right("--cables", self.write(hosts.text()), "--collective", "allreduce", "--algorithm", "packed-trees", "--bytes", "8,1MiB",
                   "--deadline", 60000, "--start", f"0-1={remote}", "--start", f"2=ip netns exec {PREFIX}%r {espalier.NODE}")
        self.assertTrue(all(bytes > KEPT for (_, interface), bytes in hosts.counters().items() if interface != "lo"))

    def test_rates(self):
        """Of four lanes, the cable that is three times as fast has three."""
        hosts = Hosts(self, PAIR, "same")
        file = self.write(hosts.text({0: "rate_mbits: 1000", 1: "rate_mbits: 3000"}, "link { from: 0 to: 1 capacity: 4 }\n"))
        found = self.right(*self.words(file, "allgather", algorithm="ring"))
        self.assertEqual([end["interface"] for end in found["processes"][0]["endpoints"]], ["cable0", "cable1", "cable1", "cable1"])

    def test_nodes_of_one_process(self):
        """Three hosts' nodes in one process, in one namespace: there the cables lead from the host to itself."""
        name = PREFIX + "0"
        self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
        ip("netns", "add", name)
        for k in range(3):
            ip("-n", name, "link", "add", f"a{k}", "type", "veth", "peer", "name", f"b{k}")
            for end in ("a", "b"):
                ip("-n", name, "link", "set", f"{end}{k}", "up")
        hosts = "".join(f'node {{ node: {node} name: "host{node}" }}\n' for node in range(3))
        cables = "".join(f'cable {{ end {{ host: "host{a}" interface: "a{k}" }} end {{ host: "host{b}" interface: "b{k}" }} }}\n'
                         for k, (a, b) in enumerate(TRIANGLE))
        file = self.write(f'name: "one"\nranks: 3\n{hosts}{cables}')
        for nodes in (2, 3):
            self.right("--cables", file, "--collective", "allreduce", "--algorithm", "auto", "--bytes", "8,1MiB", "--launch-prefix",
                       f"ip netns exec {name}", "--nodes-per-process", nodes, "--deadline", 60000, "--check-blocks", "--authenticate-data")
        sent = {one["ifname"]: one["stats64"]["tx"]["bytes"] for one in json.loads(ip("-n", name, "-s", "-j", "link"))}
        self.assertEqual(sent["lo"], 0)
        self.assertTrue(all(bytes > KEPT for interface, bytes in sent.items() if interface != "lo"), sent)


class Wrong(Base):
    """Refused in one line, before anything runs."""

    def refuses(self, text, *expected, more=()):
        file = self.write(text)
        self.refused(espalier.run_text(*self.words(file, "allreduce", *more)), *expected)

    def test_files(self):
        hosts = Hosts(self, PAIR, "same")
        good = hosts.text()
        file = "cables.textproto:"
        self.refuses(good.replace('end { host: "host1" interface: "cable1" }', ""), file + "6: cable: it has 1 end; expected two")
        self.refuses(good.replace('host: "host1" interface', 'host: "host7" interface'), "host 'host7' is not a node's host; expected")
        self.refuses(good.replace("cable1", "cable0"), "interface cable0 of host host0 is the end of two cables; expected one cable")
        self.refuses(good.replace('"host1" interface: "cable1"', '"host1" interface: "cable9"'), "rank 1: the cable to node 0: interface cable9 does not exist on this host, ")
        remote = f"0-1={GATEWAY} --node-command 'ip netns exec {PREFIX}%r {espalier.NODE} --stdio'"
        for way in (("--start", remote), ("--start", f"0-1=ip netns exec {PREFIX}%r {espalier.NODE}")):
            words = self.words(self.path / "cables.textproto", "allreduce", *way)
            at = words.index("--launch-prefix")
            self.refused(espalier.run_text(*words[:at], *words[at + 2:]),
                         "rank 1: the cable to node 0: interface cable9 does not exist on this host, ")
        self.refuses(good, "--address", more=("--address", "fe80::1%cable0"))
        self.refuses(good, "--cables names interfaces, and mem binds no IP; expected --provider tcp", more=("--provider", "mem"))
        self.refuses(good, "--links routed: nothing forwards between cables", more=("--links", "routed"))
        self.refuses(good, "it has 2 nodes, and complete:3 has 3; expected the same nodes", more=("--topology", "complete:3"))
        self.refuses('name: "t" ranks: 2 link { from: 0 to: 1 }', "it has no cable { ... }; expected a topology file with cables")
        path = 'name: "p" ranks: 3 node { node: 2 host: "host2" } '
        path += good[good.index("node"):] + 'cable { end { host: "host1" interface: "x" } end { host: "host2" interface: "x" } }'
        self.refuses(path, "no cable joins rank 0 and rank 2, which have a link in ring:3; expected a cable for each link",
                     more=("--topology", "ring:3"))
        self.assertIn("No such file", espalier.run_text("--cables", self.path / "none").stderr)

    def test_interfaces(self):
        hosts = Hosts(self, PAIR, "same")
        self.refuses(hosts.text({1: "mtu: 9000"}), "interface cable1 has an MTU of 1500 bytes; expected 9000, as the cables' file says")
        hosts.set(1, 1, "down")
        self.refuses(hosts.text(), "interface cable1 ", "; expected ")
        hosts.set(0, 1, "down")
        self.refuses(hosts.text(), "interface cable1 is down; expected it up (ip link set cable1 up)")
        ip("-n", PREFIX + "0", "address", "flush", "dev", "cable0")
        hosts.set(0, 1, "up")
        hosts.set(1, 1, "up")
        self.refuses(hosts.text(), " has no link-local IPv6 address that can be used; expected fe80::...")

    def test_wrong_cables(self):
        """The interfaces of one host are swapped: the launcher says so long before the nodes give up."""
        hosts = Hosts(self, PAIR, "same")
        text = hosts.text().replace('"host1" interface: "cable0"', '"host1" interface: "other"')
        file = self.write(text.replace('"host1" interface: "cable1"', '"host1" interface: "cable0"').replace('"other"', '"cable1"'))
        words = [espalier.COMMAND, "run", *map(str, self.words(file, "allreduce")), "--node-binary", espalier.NODE]
        job = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "ESPALIER_PATIENCE": "1"})
        line = job.stderr.readline()
        job.terminate()
        job.communicate()
        end = r"cable{} of host{} \(\[fe80::[0-9a-f:]+\]:\d+\)"
        cables = ", ".join(f"{end.format(k, 0)} to {end.format(1 - k, 1)}" for k in (0, 1))
        hosts = "; ".join(f"rank {node} runs on host {socket.gethostname()}, and the cables' file has host{node}" for node in (0, 1))
        self.assertRegex(line, f"^espalier: waiting for rank 0, rank 1 to connect over {cables}; {hosts}; "
                         "'espalier cables' shows which interfaces each cable joins\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
