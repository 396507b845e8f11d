#!/usr/bin/env python3
"""The hosts and cables of lab.py: what is there, what each cable can be made to do, and that nothing stays.

lab_test.py
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import lab as cables
from processes import HANG_S, wait_for

PING = """
import socket, sys, time
name, seconds = sys.argv[1], float(sys.argv[2])
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
s.bind(("::", 5555))
until, heard = time.monotonic() + seconds, 0
while time.monotonic() < until:
    s.sendto(b"x" * 100, ("ff02::1", 5555, 0, socket.if_nametoindex(name)))
    s.settimeout(0.02)
    try:
        while True:
            heard += s.recvfrom(200)[1][3] == socket.if_nametoindex(name)
    except TimeoutError:
        pass
print(heard)
"""


def end_of(lab, host, name):
    return json.loads(subprocess.run(lab.on(host, ["ip", "-j", "link", "show", name]), capture_output=True, check=True).stdout)[0]


def heard(lab, cable, seconds=0.4):
    """How many packets each end of a cable hears of the other."""
    ends = [subprocess.Popen(lab.on(host, [sys.executable, "-c", PING, name, seconds]), stdout=subprocess.PIPE, text=True)
            for host, name in ((cable.a, cable.a_name), (cable.b, cable.b_name))]
    return [int(end.communicate(timeout=HANG_S)[0]) for end in ends]


class Shapes(unittest.TestCase):
    def test_every_shape_is_connected_except_the_islands(self):
        for shape in cables.SHAPES:
            reached, left = {0}, list(cables.SHAPES[shape])
            while any((a in reached) != (b in reached) for a, b in left):
                reached |= {end for ends in left if reached & set(ends) for end in ends}
            self.assertEqual(len(reached) == cables.size_of(shape), shape != "islands", shape)

    def test_two_cables_of_two_hosts_have_names_of_their_own(self):
        doubled = cables.cables_of("mesh2x4-double")
        self.assertEqual(len(doubled), 20)
        self.assertEqual(len({(cable.a, cable.a_name) for cable in doubled} | {(cable.b, cable.b_name) for cable in doubled}), 40)


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = cables.Lab("ring4", management="first", mbits=50, mtu=1500)
        cls.lab.__enter__()
        cls.addClassCleanup(cls.lab.__exit__)

    def test_both_ends_of_a_cable_have_one_number_a_name_of_its_peer_and_no_address_but_the_link_local(self):
        for number, cable in enumerate(self.lab.cables):
            for host, name in ((cable.a, cable.a_name), (cable.b, cable.b_name)):
                end = end_of(self.lab, host, name)
                self.assertEqual((end["ifindex"], end["link_index"], end["mtu"]), (cables.FIRST_INDEX + number, cables.FIRST_INDEX + number, 1500))
                addresses = json.loads(subprocess.run(self.lab.on(host, ["ip", "-j", "address", "show", name]), capture_output=True, check=True).stdout)[0]["addr_info"]
                self.assertEqual([(each["family"], each["scope"]) for each in addresses], [("inet6", "link")])

    def test_a_host_has_its_own_name_and_interfaces(self):
        done = subprocess.run(self.lab.on(2, ["sh", "-c", "hostname; ls /sys/class/net"]), capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), ["box2", "lo", "mgmt0", "to1", "to3"])

    def test_a_silent_cable_keeps_its_carrier(self):
        cable = self.lab.cables[1]
        self.assertGreater(min(heard(self.lab, cable)), 0)
        self.lab.set_silent(cable, True, only_from=cable.a)
        one = heard(self.lab, cable)
        self.assertEqual((one[1], one[0] > 0), (0, True))
        self.lab.set_silent(cable, True)
        self.assertEqual(heard(self.lab, cable), [0, 0])
        self.assertIn("LOWER_UP", end_of(self.lab, cable.a, cable.a_name)["flags"])
        self.lab.set_silent(cable, False)
        self.assertGreater(min(heard(self.lab, cable)), 0)

    def test_a_cable_that_is_cut_has_no_carrier(self):
        cable = self.lab.cables[0]
        self.lab.set_carrier(cable, False)
        self.assertTrue(wait_for(lambda: "NO-CARRIER" in end_of(self.lab, cable.a, cable.a_name)["flags"]))
        self.lab.set_carrier(cable, True)
        self.assertTrue(wait_for(lambda: "LOWER_UP" in end_of(self.lab, cable.a, cable.a_name)["flags"]))
        def changes():
            return int(subprocess.run(self.lab.on(cable.a, ["cat", f"/sys/class/net/{cable.a_name}/carrier_changes"]), capture_output=True, check=True).stdout)
        before = changes()
        self.lab.flap(cable, 0.02)
        self.assertTrue(wait_for(lambda: changes() >= before + 2))
        self.lab.wait_for_addresses()

    def test_bytes_are_counted_per_interface_and_the_rate_holds(self):
        cable = self.lab.cables[2]
        flood = ("import socket, time\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\nuntil = time.monotonic() + 0.5\n"
                 f"to = ('ff02::1', 5556, 0, socket.if_nametoindex('{cable.a_name}'))\nwhile time.monotonic() < until: s.sendto(bytes(1400), to)\n")
        self.lab.set_rate(cable, 2)
        before, begin = self.lab.counts(), time.monotonic()
        subprocess.run(self.lab.on(cable.a, [sys.executable, "-c", flood]), check=True)
        after, seconds = self.lab.counts(), time.monotonic() - begin
        sent = after[cable.a, cable.a_name][0] - before[cable.a, cable.a_name][0]
        self.assertGreater(sent, 20_000)
        self.assertLess(sent, 2e6 / 8 * seconds + 2 * 20_000)  # the bucket may be full
        self.assertGreater(after[cable.b, cable.b_name][1] - before[cable.b, cable.b_name][1], 20_000)
        self.assertLess(after[0, "mgmt0"][0] - before[0, "mgmt0"][0], 5_000)
        self.lab.set_rate(cable, 50)


class Ends(unittest.TestCase):
    def test_nothing_stays_behind_however_the_program_ends(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with subprocess.Popen([sys.executable, HERE / "lab.py", "hold", "triangle", "--new"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as lab:
                holders = [int(lab.stdout.readline().split()[3]) for _ in range(3)]
                self.assertTrue(all(os.path.exists(f"/proc/{pid}") for pid in holders))
                lab.send_signal(number)
            self.assertTrue(wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in holders)))

    def test_what_runs_on_the_hosts_ends_with_the_program(self):
        words = [sys.executable, HERE / "lab.py", "run", "pair", "--new", "--", "sh", "-c", "echo up; exec sleep 86399"]
        for number in (signal.SIGTERM, signal.SIGKILL):
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as lab:
                self.assertEqual({lab.stdout.readline(), lab.stdout.readline()}, {"box0: up\n", "box1: up\n"})
                lab.send_signal(number)
                self.assertEqual(lab.stdout.read(), "")  # every process that could write has ended


if __name__ == "__main__":
    if reason := cables.refusal():
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
