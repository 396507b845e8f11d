#!/usr/bin/env python3
"""Two hosts, each a network namespace with interfaces as hosts have them: every job finds the addresses that reach its processes.

addresses_test.py JOINED BENCH ESPALIER NODE     JOINED: a small program that joins, calls collectives and says so (programs/joined.cc)
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from launchers import environment, run_by_hand

JOINED, BENCH, ESPALIER, NODE = map(os.path.abspath, sys.argv[1:5])
PREFIX = f"adr{os.getpid()}"
DEADLINE_MS = "60000"  # only a hang reaches it


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def refusal():
    """Why no namespace can be made; empty: it can."""
    try:
        done = subprocess.run(["ip", "netns", "add", f"{PREFIX}x"], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "no program ip (Debian's iproute2)"
    if done.returncode != 0:
        return done.stderr.strip() or "ip netns add fails"
    ip("netns", "del", f"{PREFIX}x")
    return ""


class Hosts:
    """Two hosts with a cable, eth0 at both ends. Further interfaces come before it or after it."""

    def __init__(self, case):
        self.names = [f"{PREFIX}a", f"{PREFIX}b"]
        case.addCleanup(self.remove)
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)

    def cable(self, interface, *addresses, rate=None):
        """Each address has a %, the number of the host."""
        a, b = self.names
        ip("link", "add", interface, "netns", a, "type", "veth", "peer", "name", interface, "netns", b)
        self.configure(interface, *addresses)

    def slow(self, interface, rate="4mbit"):
        """Both ends send no more than this. Drivers of veth say 10 Gbit/s, whatever the queue does."""
        for name in self.names:
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst", "16k", "latency", "400ms"],
                           check=True, capture_output=True, text=True)

    def sent(self, interface):
        """Bytes that the first host has sent."""
        link = json.loads(subprocess.run(["ip", "-n", self.names[0], "-s", "-j", "link", "show", interface], check=True, capture_output=True).stdout)
        return link[0]["stats64"]["tx"]["bytes"]

    def loose(self, name, interface):
        """An interface of one host with a carrier, whose cable leads back to the host."""
        ip("-n", name, "link", "add", interface, "type", "veth", "peer", "name", interface + "x")
        for end in (interface, interface + "x"):
            ip("-n", name, "link", "set", end, "up")

    def bridge(self, interface, *addresses):
        """A bridge with a port, so that it has a carrier."""
        for name in self.names:
            ip("-n", name, "link", "add", interface, "type", "bridge")
            self.loose(name, interface + "p")
            ip("-n", name, "link", "set", interface + "p", "master", interface)
        self.configure(interface, *addresses)

    def apart(self, interface, *addresses):
        """An interface that leads nowhere, as a network of which each host sees another one."""
        for name in self.names:
            self.loose(name, interface)
        self.configure(interface, *addresses)

    def configure(self, interface, *addresses):
        for number, name in enumerate(self.names, 1):
            ip("-n", name, "link", "set", interface, "up")
            for address in addresses:
                ip("-n", name, "addr", "add", address.replace("%", str(number)), "dev", interface, "nodad")

    def write_hosts(self, host, *lines):
        folder = pathlib.Path("/etc/netns", self.names[host])
        folder.mkdir(parents=True)
        (folder / "hosts").write_text("\n".join(("127.0.0.1 localhost", *lines, "")), encoding="utf-8")

    def start(self, host, *command, **variables):
        return subprocess.Popen(["ip", "netns", "exec", self.names[host], *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=environment(**variables))

    def run(self, host, *command, **variables):
        done = subprocess.run(["ip", "netns", "exec", self.names[host], *command], check=False, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env=environment(**variables))
        return done.returncode, done.stdout, done.stderr

    def run_all(self, ranks, deadline_ms=DEADLINE_MS, port="4300", program=None, **variables):
        """Runs a job by hand; rank r is on host r % 2. Returns (status, stdout, stderr) of each."""
        def run(rank):
            return self.run(rank % 2, *(program or (JOINED, deadline_ms)), RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_PORT=port, **variables)
        with concurrent.futures.ThreadPoolExecutor(ranks) as pool:
            return list(pool.map(run, range(ranks)))


class Addresses(unittest.TestCase):
    def setUp(self):
        if reason := refusal():
            self.skipTest(f"no network namespaces: {reason}")
        self.hosts = Hosts(self)

    def secret(self):
        """A file, so that rank 0 has nothing to say about strangers."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "secret")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(bytes(range(32)))
        return path

    def check_joins(self, ranks=4, **variables):
        outputs = self.hosts.run_all(ranks, ESPALIER_SECRET_FILE=self.secret(), **variables)
        self.assertEqual([status for status, _, _ in outputs], [0] * ranks, outputs)
        self.assertEqual(outputs[0][1], f"{ranks} processes joined\n")
        self.assertEqual([error for _, _, error in outputs], [""] * ranks)

    def test_name_at_127_0_1_1(self):
        """Debian gives the own name this address. A bridge of containers comes first."""
        self.hosts.bridge("docker0", "172.17.0.1/16")
        self.hosts.cable("eth0", "10.77.0.%/24")
        self.hosts.write_hosts(0, "127.0.1.1 headnode")
        self.hosts.write_hosts(1, "10.77.0.1 headnode")
        self.check_joins(MASTER_ADDR="headnode")

    def test_ipv6_only(self):
        self.hosts.cable("eth0", "fd77::%/64")
        for address in ("fd77::1", "[fd77::1]"):
            with self.subTest(address):
                self.check_joins(MASTER_ADDR=address)

    def test_link_local_only(self):
        """The interface has another number on each host, and no other address."""
        self.hosts.loose(self.hosts.names[1], "other")
        self.hosts.cable("eth0", "fe80::%/64")
        self.check_joins(MASTER_ADDR="fe80::1%eth0")

    def test_subnets_that_lead_nowhere(self):
        """A tunnel and a network that is faster, as it says, have an address of their own on each host, and reach no other."""
        self.hosts.apart("vpn0", "10.8.0.%/24", "fd08::%/64")
        self.hosts.cable("eth0", "10.77.0.%/24", "fd77::%/64")
        self.hosts.apart("eth1", "10.9.0.%/24")
        self.check_joins(MASTER_ADDR="10.77.0.1")

    def test_ports(self):
        self.hosts.cable("eth0", "10.77.0.%/24")
        self.check_joins(MASTER_ADDR="10.77.0.1", ESPALIER_PORTS="40000-40003")
        outputs = self.hosts.run_all(4, "4000", ESPALIER_SECRET_FILE=self.secret(), MASTER_ADDR="10.77.0.1",
                                     ESPALIER_PORTS="40000-40000", FI_PROVIDER="tcp")
        errors = [error for status, _, error in outputs if status == 2 and "no port of 40000-40000 is free" in error]
        self.assertTrue(errors, outputs)
        for error in errors:
            self.assertEqual(error.count("\n"), 1, outputs)

    def test_interfaces(self):
        """Data goes where the variable says, though the rendezvous is elsewhere."""
        self.hosts.cable("eth0", "10.77.0.%/24")
        self.hosts.cable("eth1", "10.78.0.%/24")
        self.check_joins(MASTER_ADDR="10.77.0.1", ESPALIER_INTERFACE="10.78.0.0/16")
        status, _, error = self.hosts.run(0, JOINED, DEADLINE_MS, RANK="0", WORLD_SIZE="2", MASTER_ADDR="10.77.0.1",
                                          MASTER_PORT="4300", ESPALIER_INTERFACE="eth0,ib0", ESPALIER_SECRET_FILE=self.secret())
        self.assertEqual((status, error.count("\n")), (2, 1), error)
        self.assertIn("'ib0' names no interface of this host that is up and running; expected one of lo, eth0, eth1", error)

    def test_says_what_was_tried(self):
        """A name has two addresses: one that no host has, and one without a route."""
        self.hosts.cable("eth0", "10.77.0.%/24")
        self.hosts.write_hosts(1, "10.77.0.9 lost", "10.99.0.1 lost")
        status, _, error = self.hosts.run(1, JOINED, "7000", RANK="1", WORLD_SIZE="2", MASTER_ADDR="lost", MASTER_PORT="4300",
                                          ESPALIER_PATIENCE="1")
        words = error.split("\n")
        self.assertEqual(status, 2, error)
        self.assertRegex(words[0], r"^espalier: rank 1 of 2 waits for the job's server; it was reached at none of ")
        last = re.search(r"no server of the job at lost:4300 within 7 s; tried (.*); expected rank 0", error)
        self.assertTrue(last, error)
        self.assertIn("10.99.0.1 (network is unreachable)", last[1])
        self.assertIn("10.77.0.9 (eth0: no route to host)", last[1])
        self.assertEqual(len(words), 5, error)  # after 1, 2 and 4 s, and the end

    def test_data_that_does_not_arrive(self):
        """The variable names a network that leads nowhere: both hosts say so."""
        self.hosts.cable("eth0", "10.77.0.%/24")
        self.hosts.apart("vpn0", "10.8.0.%/24")
        secret = self.secret()
        jobs = [self.hosts.start(rank, JOINED, DEADLINE_MS, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="10.77.0.1", MASTER_PORT="4300",
                                 ESPALIER_INTERFACE="vpn0", ESPALIER_PATIENCE="1", ESPALIER_SECRET_FILE=secret) for rank in range(2)]
        try:
            for rank, job in enumerate(jobs):
                self.assertRegex(job.stderr.readline(), rf"^espalier: rank {rank} of 2 waits for its links to rank {1 - rank} at "
                                                        rf"10\.8\.0\.{2 - rank}:\d+ \(vpn0: no answer\)\n$")
        finally:
            for job in jobs:
                job.kill()
                job.communicate()


class Resolvers(unittest.TestCase):
    """The name server's address drops all packets: the resolver would wait for 20 s and more."""

    def setUp(self):
        if reason := refusal():
            self.skipTest(f"no network namespaces: {reason}")
        self.hosts = Hosts(self)
        self.hosts.cable("eth0", "10.77.0.%/24")
        for number, name in enumerate(self.hosts.names):
            self.hosts.write_hosts(number)
            folder = pathlib.Path("/etc/netns", name)
            (folder / "resolv.conf").write_text("nameserver 10.77.0.9\noptions timeout:30\n", encoding="utf-8")
            (folder / "nsswitch.conf").write_text("hosts: files dns\n", encoding="utf-8")
            # No host has the address; with the entry the packets leave, and no error comes back.
            ip("-n", name, "neigh", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", "eth0")

    def check_ends(self, rank, deadline_ms, **variables):
        begin = time.monotonic()
        status, _, error = self.hosts.run(rank, JOINED, str(deadline_ms), RANK=str(rank), WORLD_SIZE="2", MASTER_PORT="4300", ESPALIER_PATIENCE="1", **variables)
        seconds = time.monotonic() - begin
        lines = error.splitlines()
        self.assertEqual(status, 2, error)
        self.assertIn("waiting for the address of 'headnode:4300'; the resolver does not answer", lines[0])
        self.assertEqual(lines[-1], f"joined: host 'headnode': the resolver does not answer within {deadline_ms // 1000}.0 s; expected an address, a name in "
                                    "/etc/hosts, or name servers that answer")
        self.assertGreaterEqual(seconds, deadline_ms / 1000)
        self.assertLess(seconds, 25)  # of a machine that is busy; the resolver's own time is 60 s

    def test_both_ends_hold_the_deadline(self):
        for rank in range(2):
            with self.subTest(rank):
                self.check_ends(rank, 2000, MASTER_ADDR="headnode")

    def test_an_address_needs_no_resolver(self):
        outputs = self.hosts.run_all(2, MASTER_ADDR="10.77.0.1")
        self.assertEqual([status for status, _, _ in outputs], [0, 0], outputs)


class Refusals(unittest.TestCase):
    """Addresses that no host can have: one line at once, wherever they stand."""

    def check_refused(self, words, text, **variables):
        begin = time.monotonic()
        done = subprocess.run(words, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(**variables))
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn(text, done.stderr)
        self.assertLess(time.monotonic() - begin, 30)  # the deadline is 60 s

    def test_addresses(self):
        for address, kind in (("224.0.0.1", "multicast"), ("255.255.255.255", "broadcast"), ("ff02::1", "multicast")):
            text = f"'{address}' is a {kind} address; expected the address of one host"
            with self.subTest(address), tempfile.TemporaryDirectory() as folder:
                brackets = f"[{address}]" if ":" in address else address
                for rank in ("0", "1"):
                    self.check_refused([JOINED, DEADLINE_MS], "MASTER_ADDR: " + text, RANK=rank, WORLD_SIZE="2", MASTER_ADDR=address, MASTER_PORT="4300")
                self.check_refused([JOINED, DEADLINE_MS], "ESPALIER_ADDRESS: " + text, ESPALIER_RANK="1", ESPALIER_SIZE="2", ESPALIER_ADDRESS=f"127.0.0.1:4,{brackets}:4300",
                                   ESPALIER_SERVER="launcher")
                self.check_refused([ESPALIER, "launch", "-n", "1", "--address", address, "true"], text)
                self.check_refused([ESPALIER, "launch", "-n", "1", "--hosts", f"me@{brackets}:2", "true"], text)
                hosts = pathlib.Path(folder, "hosts")
                hosts.write_text(f"127.0.0.1\n{brackets} slots=2\n", encoding="utf-8")
                self.check_refused([ESPALIER, "launch", "-n", "1", "--hostfile", hosts, "true"], text)
                job = pathlib.Path(folder, "job")
                job.touch(mode=0o600)
                job.write_text(f"{brackets}:4300/{'00' * 32}\n", encoding="utf-8")
                self.check_refused([JOINED, DEADLINE_MS], "is malformed; expected the file that a job wrote", ESPALIER_JOIN=str(job))
                self.check_refused([ESPALIER, "launch", "-n", "1", "--join", job, "true"], "is malformed; expected the file that a job wrote")
                self.check_refused([ESPALIER, "run", "--topology", "complete:2", "--collective", "broadcast", "--algorithm", "binomial", "--address", address],
                                   "is not the address of one host")
                self.check_refused([NODE, "--schedule", "a", "--node", "0", "--control", "5", "--address", address], text)

    def test_filters(self):
        for rank in ("0", "1"):
            self.check_refused([JOINED, DEADLINE_MS], "excludes each address that it names", RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                               MASTER_PORT="4300", ESPALIER_INTERFACE="lo,!lo")
        self.check_refused([ESPALIER, "launch", "-n", "1", "--interface", "lo,!127.0.0.0/8,!::1", "true"], "excludes each address that it names")


class Listeners(unittest.TestCase):
    def greeting(self, host, address, port):
        """What a connection from a host receives first; None: nothing, and it has ended."""
        program = f"import socket; s = socket.create_connection(('{address}', {port}), 20); s.settimeout(20); print(len(s.recv(4)))"
        status, text, error = self.hosts.run(host, sys.executable, "-c", program)
        if "ConnectionResetError" in error:
            return None
        self.assertEqual(status, 0, error)
        return int(text) or None

    def test_other_interfaces(self):
        """Rank 0 takes no connection at an address that the filter leaves out."""
        if reason := refusal():
            self.skipTest(f"no network namespaces: {reason}")
        self.hosts = Hosts(self)
        self.hosts.cable("eth0", "10.77.0.%/24", "fd77::%/64")
        self.hosts.cable("eth1", "10.78.0.%/24", "fd78::%/64")
        with tempfile.TemporaryDirectory() as folder:
            def start(rank):
                job = self.hosts.start(rank, JOINED, DEADLINE_MS, folder, "job", str(rank), "2", ESPALIER_INTERFACE="eth1", ESPALIER_PORTS="41000-41009")
                self.addCleanup(job.communicate)
                self.addCleanup(job.kill)
                return job
            first = start(0)
            while not os.path.exists(f"{folder}/espalier-job"):
                self.assertIsNone(first.poll())
                time.sleep(0.01)
            for host, address, taken in ((1, "10.77.0.1", False), (1, "fd77::1", False), (1, "10.78.0.1", True), (1, "fd78::1", True),
                                         (0, "10.77.0.1", False), (0, "127.0.0.1", True), (0, "::1", True)):
                with self.subTest(host=host, address=address):
                    self.assertEqual(self.greeting(host, address, 41000) is not None, taken)
            jobs = [first, start(1)]
            outputs = [job.communicate() for job in jobs]
            self.assertEqual([job.returncode for job in jobs], [0, 0], outputs)


class Rates(unittest.TestCase):
    """Two networks whose drivers say the same rate: the first one is slow."""

    def setUp(self):
        if reason := refusal():
            self.skipTest(f"no network namespaces: {reason}")
        self.hosts = Hosts(self)

    def choice(self, ranks, program=None, **variables):
        """What rank 0 says of tcp's subnet; the job must end well."""
        outputs = self.hosts.run_all(ranks, program=program, ESPALIER_VERBOSE="1", **{"MASTER_ADDR": "10.77.0.1", **variables})
        self.assertEqual([status for status, _, _ in outputs], [0] * ranks, outputs)
        lines = [line for _, _, errors in outputs for line in errors.splitlines() if line.startswith("espalier: the subnet of tcp's data: ")]
        self.assertEqual(len(lines), 1, outputs)
        return lines[0].removeprefix("espalier: the subnet of tcp's data: ")

    def test_the_fast_one(self):
        """4 MiB per host and call go over the fast one, and no more than the measurement over the slow one."""
        self.hosts.cable("eth0", "10.77.0.%/24", "fd77::%/64", "fe80::%/64")
        self.hosts.cable("eth1", "10.78.0.%/24", "fd78::%/64", "fe80::%/64")
        self.hosts.slow("eth0")
        bench = (BENCH, "--collective", "allreduce", "--bytes", "4MiB", "--repeat", "1", "--warmup", "1", "--start", "warm", "--provider", "tcp")
        for ranks in (2, 4):
            with self.subTest(ranks):
                slow, fast = self.hosts.sent("eth0"), self.hosts.sent("eth1")
                self.assertRegex(self.choice(ranks, bench), r"^10\.78\.0\.0/24 \(measured: [0-9.]+ Mbit/s\); not 10\.77\.0\.0/24 \(measured: [0-9.]+ Mbit/s\), fd7")
                self.assertGreater(self.hosts.sent("eth1") - fast, 8 << 20)
                self.assertLess(self.hosts.sent("eth0") - slow, 2 << 20)

    def test_the_filter_comes_first(self):
        """What the variable leaves is not measured: there is one network, or one cable."""
        self.hosts.cable("eth0", "10.77.0.%/24", "fd77::%/64")
        self.hosts.cable("eth1", "10.78.0.%/24")
        self.hosts.slow("eth0")
        for ranks, names, chosen in ((2, "eth0", "10.77.0.0/24"), (4, "!eth1", "10.77.0.0/24"), (2, "fd77::/64", "fd77::/64")):
            with self.subTest(names):
                self.assertRegex(self.choice(ranks, ESPALIER_INTERFACE=names), rf"^{chosen} \(as drivers say: 10000 Mbit/s\)")

    def test_no_choice(self):
        """The cables have link-local addresses only: the data goes where the rendezvous does."""
        self.hosts.cable("eth0", "fe80::%/64")
        self.hosts.cable("eth1", "fe80::%/64")
        self.hosts.slow("eth0")
        for ranks in (2, 4):
            self.assertRegex(self.choice(ranks, MASTER_ADDR="fe80::1%eth1"), "^each rank's address is the one by which it reached the server, because ")

    def test_connects_and_brings_nothing(self):
        """A tunnel with too large an MTU: short messages pass, long ones are lost."""
        self.hosts.cable("eth0", "10.77.0.%/24")
        self.hosts.cable("eth1", "10.78.0.%/24")
        for name in self.hosts.names:
            subprocess.run(["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst", "200", "latency", "400ms"],
                           check=True, capture_output=True, text=True)
        self.assertRegex(self.choice(2, MASTER_ADDR="10.78.0.1"), r"^10\.78\.0\.0/24 \(measured: ")


class Waits(unittest.TestCase):
    def words(self, ranks, **variables):
        """What ranks 0 .. ranks-1 of a job with one more say."""
        outputs = run_by_hand([JOINED, "3000"], ranks, total=ranks + 1, **variables)
        self.assertEqual([status for status, _, _ in outputs], [2] * ranks, outputs)
        lines = [error.splitlines() for _, _, error in outputs]
        for each in lines:
            # The deadline of another rank may be the first to pass.
            self.assertRegex(each[-1], r"^joined: (rank 2 of 3 did not come within 3 s|(the job's server|rank 1) has ended; rank 2 never started, .*)$")
        return [each[:-1] for each in lines]

    def test_one_rank_speaks(self):
        line = "espalier: waiting for rank 2 of 3: rank 2 never started, or does not reach this job's server"
        first, second = self.words(2, ESPALIER_PATIENCE="1")  # after 1 and 2 s
        self.assertEqual((len(first), first[0], second), (2, line, []))
        self.assertRegex(first[1].removeprefix(line), r"^; \d+ s so far$")

    def test_none_speaks(self):
        self.assertEqual(self.words(2, ESPALIER_PATIENCE="0"), [[], []])

    def test_all_speak_if_watched(self):
        self.assertEqual(self.words(2, ESPALIER_VERBOSE="1"), [[f"espalier: rank {rank} waits for rank 2 of 3"] for rank in range(2)])


unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
