#!/usr/bin/python3
"""Hosts that are cabled to each other without a switch: namespaces of networks, host names and mounts, one veth pair per cable. Root only.

Nothing is configured on a cable: its ends have link-local IPv6 addresses only, and no host forwards. Both ends have one interface number, as a
card has it: Linux then handles carriers as it does for cards. The hosts and their cables end with this program, however it ends.

lab.py shapes                                        prints the shapes with their cables
lab.py hold SHAPE [OPTIONS]                          builds one, prints how to enter its hosts, and keeps it until its input or the program ends
lab.py run SHAPE [OPTIONS] -- COMMAND...             builds one, runs the command on every host, and prints each line behind the host's name
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import typing

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "interfaces"))
from hosts import alone  # noqa: E402


def grid(rows, columns, times=1):
    """Cables of a mesh, each `times` times; host r * columns + c is in row r."""
    along = [(row * columns + column, row * columns + column + 1) for row in range(rows) for column in range(columns - 1)]
    across = [(row * columns + column, (row + 1) * columns + column) for row in range(rows - 1) for column in range(columns)]
    return (along + across) * times


SHAPES = {  # the ends of each cable
    "pair": [(0, 1)],
    "pair-double": [(0, 1), (0, 1)],
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "ring4": [(0, 1), (1, 2), (2, 3), (0, 3)],
    "line4": [(0, 1), (1, 2), (2, 3)],
    "star5": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "four-less-one": [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)],
    "mesh3x3": grid(3, 3),
    "mesh2x4-double": grid(2, 4, times=2),
    "tree-of-rings": [(0, 1), (1, 2), (0, 2), (1, 3), (3, 4), (1, 4), (2, 5), (5, 6), (2, 6)],
    "islands": [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)],
}
FIRST_INDEX = 1001  # of the cables' interfaces
MANAGEMENT_MBITS = 10
ADDRESS_S = 30      # until link-local addresses serve; Linux takes up to 3 s


class Cable(typing.NamedTuple):
    """Host `a` has the interface `a_name`, and host `b` the interface `b_name`."""
    a: int
    a_name: str
    b: int
    b_name: str


def cables_of(shape):
    """The cables of a shape. The interface of a second cable between the same hosts ends with b, of a third with c."""
    cables = []
    for a, b in SHAPES[shape]:
        earlier = sum((each.a, each.b) == (a, b) for each in cables)
        suffix = "" if earlier == 0 else chr(ord("a") + earlier)
        cables.append(Cable(a, f"to{b}{suffix}", b, f"to{a}{suffix}"))
    return cables


def size_of(shape):
    return 1 + max(max(ends) for ends in SHAPES[shape])


def refusal():
    """Why there can be no such hosts here; nothing: there can."""
    if os.getuid() != 0:
        return "not root"
    trial = "ip link add t0 type veth peer name t1; ip link add b0 type bridge; tc qdisc add dev t0 root tbf rate 1mbit burst 20000 limit 20000"
    done = subprocess.run(["unshare", "-n", "-u", "-m", "-p", "-f", "--mount-proc", "sh", "-ec", trial], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode != 0 else None


def checked(words, lines=None):
    done = subprocess.run(words, input=None if lines is None else "".join(line + "\n" for line in lines), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Lab:
    """The hosts of one shape, until the `with` block ends.

    management: None, or "first" or "last": whether the slow network to all hosts, mgmt0, is made before or after the cables.
    mbits: the rate of each cable; None: as fast as it goes. is_new: the addresses are as after `ip link set up`: unusable for up to 3 s.
    has_ipv4: each cable has also a subnet 10.80.x.y/30 of its own, for libraries that know no link-local addresses.
    """

    def __init__(self, shape, management=None, mtu=9000, mbits=None, is_new=False, has_ipv4=False, prefix="box"):
        self.shape, self.management, self.mtu, self.mbits, self.is_new, self.has_ipv4 = shape, management, mtu, mbits, is_new, has_ipv4
        self.cables = cables_of(shape)
        self.names = [f"{prefix}{number}" for number in range(size_of(shape))]
        self.ends = contextlib.ExitStack()
        self.holders = []
        self.switch = None

    def __enter__(self):
        with contextlib.ExitStack() as ends:
            for name in self.names:
                self.holders.append(self.hold(ends, name))
            if self.management:
                self.switch = self.hold(ends, "switch")
            if self.management == "first":
                self.add_management()
            self.add_cables()
            if self.management == "last":
                self.add_management()
            if not self.is_new:
                self.wait_for_addresses()
            self.ends = ends.pop_all()
        return self

    def __exit__(self, *_):
        self.ends.close()

    def hold(self, ends, name):
        """A host without interfaces, which ends with its input: with this program."""
        quick = "" if self.is_new else "for w in all default; do echo 0 >/proc/sys/net/ipv6/conf/$w/accept_dad; echo 0 >/proc/sys/net/ipv6/conf/$w/dad_transmits; done; "
        script = f"hostname {name}; mount -t sysfs none /sys; {quick}ip link set lo up; echo ready; exec cat"
        holder = ends.enter_context(subprocess.Popen(["unshare", "-n", "-u", "-m", "--propagation", "private", "sh", "-ec", script],
                                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        ends.callback(holder.kill)
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"{name} was not made")
        return holder.pid

    def inside(self, pid):
        return ["nsenter", "-t", str(pid), "-n", "-u", "-m", f"--wd={os.getcwd()}"]

    def on(self, host, words):
        """The words that run a command on a host."""
        return [*self.inside(self.holders[host]), *map(str, words)]

    def ip(self, host, *lines):
        checked(self.on(host, ["ip", "-batch", "-"]), lines)

    def add_cables(self):
        checked(["ip", "-batch", "-"], [
            f"link add {cable.a_name} index {FIRST_INDEX + k} netns {self.holders[cable.a]} mtu {self.mtu} type veth "
            f"peer name {cable.b_name} index {FIRST_INDEX + k} netns {self.holders[cable.b]} mtu {self.mtu}" for k, cable in enumerate(self.cables)])
        for host in range(len(self.names)):
            lines = []
            for number, (name, is_second) in ((k, end) for k, cable in enumerate(self.cables)
                                              for end in ((cable.a_name, False),) * (cable.a == host) + ((cable.b_name, True),) * (cable.b == host)):
                if self.has_ipv4:
                    lines.append(f"address add 10.80.{number // 64}.{number % 64 * 4 + 1 + is_second}/30 dev {name}")
                lines.append(f"link set {name} up")
            self.ip(host, *lines)
        for cable in self.cables if self.mbits else []:
            self.set_rate(cable, self.mbits)

    def add_management(self):
        checked([*self.inside(self.switch), "ip", "-batch", "-"], ["link add switch type bridge", "link set switch up"])
        checked(["ip", "-batch", "-"], [f"link add mgmt0 netns {pid} type veth peer name port{host} netns {self.switch}" for host, pid in enumerate(self.holders)])
        checked([*self.inside(self.switch), "ip", "-batch", "-"], [f"link set port{host} master switch up" for host in range(len(self.names))])
        for host in range(len(self.names)):
            self.ip(host, f"address add 10.81.0.{host + 1}/24 dev mgmt0", "link set mgmt0 up")
            self.shape_interface(self.inside(self.holders[host]), "mgmt0", MANAGEMENT_MBITS)
            self.shape_interface(self.inside(self.switch), f"port{host}", MANAGEMENT_MBITS)

    def wait_for_addresses(self):
        """Waits until every interface has a link-local address that serves."""
        until = time.monotonic() + ADDRESS_S
        for host in range(len(self.names)):
            wanted = sum(host in (cable.a, cable.b) for cable in self.cables) + bool(self.management)
            while True:
                lines = checked(self.on(host, ["cat", "/proc/net/if_inet6"])).splitlines()
                if sum(line.startswith("fe80") and not int(line.split()[4], 16) & 0x40 for line in lines) >= wanted:
                    break
                if time.monotonic() > until:
                    raise RuntimeError(f"{self.names[host]} has no link-local addresses:\n" + "\n".join(lines))
                time.sleep(0.05)

    @staticmethod
    def shape_interface(inside, name, mbits):
        words = ["rate", f"{mbits}mbit", "burst", "20000", "limit", "4000000"] if mbits else ["rate", "8bit", "burst", "1", "limit", "1"]
        checked([*inside, "tc", "qdisc", "replace", "dev", name, "root", "tbf", *words])

    def ends_of(self, cable):
        return ((self.inside(self.holders[cable.a]), cable.a_name), (self.inside(self.holders[cable.b]), cable.b_name))

    def set_rate(self, cable, mbits):
        """The rate of a cable, each way. Less than 1 is a slow cable, not a silent one."""
        for inside, name in self.ends_of(cable):
            self.shape_interface(inside, name, mbits)

    def set_silent(self, cable, silent, only_from=None):
        """The cable loses every packet, and its carrier stays. only_from: the host whose packets are lost; otherwise both hosts'."""
        for (inside, name), host in zip(self.ends_of(cable), (cable.a, cable.b)):
            if only_from in (None, host) and silent:
                self.shape_interface(inside, name, None)  # a bucket that has no room for any packet
            elif only_from in (None, host) and self.mbits:
                self.shape_interface(inside, name, self.mbits)
            elif only_from in (None, host):
                checked([*inside, "tc", "qdisc", "delete", "dev", name, "root"])

    def set_carrier(self, cable, up):
        """Takes the cable's end at host b down, or up: host a loses its carrier, or has it again."""
        self.ip(cable.b, f"link set {cable.b_name} {'up' if up else 'down'}")

    def flap(self, cable, seconds):
        self.set_carrier(cable, False)
        time.sleep(seconds)
        self.set_carrier(cable, True)

    def counts(self):
        """Bytes sent and received since the interface was made, by host and interface, without lo."""
        found = {}
        for host in range(len(self.names)):
            for each in json.loads(checked(self.on(host, ["ip", "-s", "-j", "link"]))):
                if each["ifname"] != "lo":
                    found[host, each["ifname"]] = (each["stats64"]["tx"]["bytes"], each["stats64"]["rx"]["bytes"])
        return found


def run_everywhere(lab, words):
    """Runs a command on all hosts, and prints its lines behind the host's name. Returns the highest exit status."""
    def print_lines(name, stream):
        for line in stream:
            print(f"{name}: {line}", end="", flush=True)
    processes = [subprocess.Popen(lab.on(host, words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for host in range(len(lab.names))]
    readers = [threading.Thread(target=print_lines, args=(name, process.stdout)) for name, process in zip(lab.names, processes)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return max(process.wait() for process in processes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("shapes", "hold", "run"))
    parser.add_argument("shape", nargs="?", choices=SHAPES)
    parser.add_argument("--management", choices=("first", "last"), help="a slow network beside, made before or after the cables")
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--mbits", type=float, help="the rate of each cable")
    parser.add_argument("--new", action="store_true", help="addresses that do not serve yet")
    parser.add_argument("--ipv4", action="store_true", help="a subnet per cable")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    arguments, command = parser.parse_args(words[:split]), words[split + 1:]
    if arguments.action == "shapes":
        for shape in SHAPES:
            print(f"{shape}: {size_of(shape)} hosts; {' '.join(f'{cable.a}-{cable.b}' for cable in cables_of(shape))}")
        return 0
    if not arguments.shape or (arguments.action == "run") != bool(command):
        parser.error("expected a shape, and a command after -- with `run` only")
    if reason := refusal():
        parser.error(f"no hosts can be made here: {reason}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if arguments.action == "run":
        alone()
    with Lab(arguments.shape, arguments.management, arguments.mtu, arguments.mbits, arguments.new, arguments.ipv4) as lab:
        if arguments.action == "run":
            return run_everywhere(lab, command)
        for name, pid in zip(lab.names, lab.holders):
            print(f"{name}: nsenter -t {pid} -n -u -m", flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
