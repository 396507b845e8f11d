"""Three hosts with 20 interfaces each: namespaces of networks, host names and mounts. Root only.

The interfaces are those of a usual machine: a docker bridge whose address every host has, a VPN's tunnel, bridges of virtual machines without
a carrier, cards that are down, and one LAN, eth0, by which the hosts reach each other. The order of the interfaces is the one in which they are made.

hosts.py hold STATE HOST VARIANT SWITCH   is one host until its parent ends; it prints a line when the host is there
"""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("hosta", "hostb", "hostc")
RSH = str(HERE / "rsh.sh")
INTERFACES = 20  # of each host, beside lo
VARIANTS = {
    "bridge": "a docker bridge first",
    "tunnel": "a VPN's tunnel first",
    "twice": "first two interfaces with the same address, which every host has",
    "ipv6": "IPv6 only, a docker bridge first",
    "names": "the own name is 127.0.1.1, a docker bridge first",
}
# How interfaces are made and set up, by group. BRIDGE_, TUNNEL and TAP are made by the program itself or by `ip`; {n} is the host's number from 1.
# NAME ADDRESS is given below.
GROUPS = {
    "bridge": ("link add docker0 type bridge", "link add vethd0 type veth peer name cont0", "link add br-5f3c type bridge",
               "link set br-5f3c up", "link set vethd0 master br-5f3c", "link set vethd0 nomaster",  # a bridge that has lost its port has no carrier
               "link set vethd0 master docker0", "link set cont0 up", "link set vethd0 up", "link set docker0 up", "link add virbr0 type bridge", "link set virbr0 up",
               "link add lxcbr0 type bridge"),
    "tunnel": ("tun tun0 held", "tun tun1 free", "tap tap0 held", "tap tap1 held", "link add vxlan7 type vxlan id 7 dstport 4789 dev lo", "link set vxlan7 up"),
    "twice": ("link add side0 type veth peer name side1", "link set side0 up", "link set side1 up"),
    "cards": ("link add eth1 type veth peer name far1", "link set eth1 up", "link add eth2 type veth peer name far2",
              "link add ifb0 type ifb", "link add ifb1 type ifb", "link set ifb1 up"),
    "lan": ("link add eth0 type veth peer name port{n} netns {switch}", "link set eth0 up"),
}
ORDERS = {"bridge": "bridge tunnel twice cards lan", "tunnel": "tunnel bridge twice cards lan", "twice": "twice bridge tunnel cards lan"}
# (interface, IPv4, IPv6): what `ip address add` takes. The same on every host, unless it has {n}.
ADDRESSES = (
    ("docker0", "172.17.0.1/16", "fd17::1/64"), ("br-5f3c", "172.18.0.1/16", "fd18::1/64"), ("virbr0", "192.168.122.1/24", "fd22::1/64"),
    ("lxcbr0", "10.0.3.1/24", "fd03::1/64"), ("tun0", "10.8.0.{n} peer 10.8.0.254", "fd08::{n}/128"), ("tun1", "10.9.0.{n} peer 10.9.0.254", "fd09::{n}/128"),
    ("tap0", "192.168.200.1/24", "fd20::1/64"), ("vxlan7", "192.168.70.{n}/24", "fd70::{n}/64"), ("eth1", "10.50.0.{n}/24", "fd50::{n}/64"),
    ("eth2", "10.60.0.{n}/24", "fd60::{n}/64"), ("side0", "192.168.1.10/24", "fd01::10/64"), ("eth0", "10.77.0.{n}/24", "fd77::{n}/64"))
TUNSETIFF, IFF_TUN, IFF_TAP, IFF_NO_PI = 0x400454CA, 1, 2, 0x1000
PR_SET_PDEATHSIG = 1


def lan(number, variant):
    """The address of a host by which the others reach it; `number` from 1."""
    return f"fd77::{number}" if variant == "ipv6" else f"10.77.0.{number}"


def command(words):
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"hosts.py: ip {words}: {done.stderr.strip()}")


def make_tun(word):
    """`tun NAME held` keeps the device open, so that it has a carrier, and reads nothing: packets are lost, as in a VPN that reaches nobody."""
    kind, name, use = word.split()
    file = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), (IFF_TUN if kind == "tun" else IFF_TAP) | IFF_NO_PI))
    if use == "free":
        fcntl.ioctl(file, 0x400454CB, 1)  # TUNSETPERSIST: the device stays
        os.close(file)
    command(f"link set {name} up")


def make_interfaces(number, variant, switch):
    for path in ("all", "default"):  # addresses serve at once, as they do on a host that has been up for a while
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{path}/accept_dad").write_text("0")
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{path}/dad_transmits").write_text("0")
    command("link set lo up")
    for group in ORDERS.get(variant, ORDERS["bridge"]).split():
        for words in GROUPS[group]:
            if words.startswith("t"):
                make_tun(words)
            else:
                command(words.format(n=number, switch=switch))
    for name, four, six in ADDRESSES:
        if variant != "ipv6":
            command(f"address add {four.format(n=number)} dev {name}")
        command(f"address add {six.format(n=number)} dev {name} nodad")
    if variant == "twice":
        command("address add 192.168.1.10/24 dev side1")
    names = [path.name for path in pathlib.Path("/sys/class/net").iterdir() if path.name != "lo"]
    assert len(names) == INTERFACES, sorted(names)


def write_names(state, number, variant):
    """/etc/hosts: the LAN's addresses; with `names`, as Debian's installer writes it."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for each, name in enumerate(NAMES, 1):
        own = each == number and variant == "names"
        lines.append(f"{'127.0.1.1' if own else lan(each, variant)} {name}")
    path = pathlib.Path(state, f"{NAMES[number - 1]}.hosts")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run(["mount", "--bind", path, "/etc/hosts"], check=True)
    socket.sethostname(NAMES[number - 1])


def hold(state, name, variant, switch):
    folder = pathlib.Path(state, f"{name}.cgroup")
    folder.mkdir()
    for words in (("--rbind", "/sys/fs/cgroup", folder), ("-t", "sysfs", "none", "/sys"), ("--rbind", folder, "/sys/fs/cgroup")):
        subprocess.run(["mount", *words], check=True)  # the interfaces of this namespace, and the control groups that slurmd looks for
    private = pathlib.Path(state, "private")  # a folder that no other host has
    private.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", private], check=True)
    if name == "switch":
        command("link add switch type bridge")
        command("link set switch up")
    else:
        number = NAMES.index(name) + 1
        write_names(state, number, variant)
        make_interfaces(number, variant, switch)
    print("ready", flush=True)
    signal.pause()


def refusal():
    """Why there can be no such hosts here; nothing: there can."""
    if os.getuid() != 0:
        return "not root"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun"
    done = subprocess.run(["unshare", "-n", "-u", "-m", "-p", "-f", "--mount-proc", "sh", "-ec",
                           "ip link add br0 type bridge; ip link add ve0 type veth; ip link add ifb9 type ifb; ip link add vx0 type vxlan id 7 dstport 4789 dev lo"],
                          capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode != 0 else None


def alone():
    """Runs this program again in a namespace of processes of its own: everything that it starts ends with it. The shell is the namespace's first
    process, which takes care of orphans."""
    if os.environ.get("ESPALIER_LAB_ALONE") == "1":
        return
    with tempfile.TemporaryDirectory() as run:  # of records, which no process outside could tell from those of living processes
        done = subprocess.run(["unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh", sys.executable, *sys.argv],
                              env={**os.environ, "ESPALIER_LAB_ALONE": "1", "XDG_RUNTIME_DIR": run}, preexec_fn=end_with_parent)
    sys.exit(done.returncode)


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Hosts:
    """The hosts of one variant, until the `with` block ends."""

    def __init__(self, variant):
        self.variant = variant
        self.ends = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as ends:
            self.state = ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-interfaces-"))
            os.chmod(self.state, 0o755)
            self.holders = {}
            switch = self.hold(ends, "switch")
            for name in NAMES:
                self.hold(ends, name, switch)
            for number in range(1, len(NAMES) + 1):
                self.ip("switch", f"link set port{number} master switch up")
            self.ends = ends.pop_all()
        if not self.is_reached():
            self.ends.close()
            sys.exit("hosts.py: the LAN does not connect the hosts")
        return self

    def __exit__(self, *_):
        self.ends.close()

    def hold(self, ends, name, switch=0):
        holder = subprocess.Popen(["unshare", "-n", "-u", "-m", "--propagation", "private", sys.executable, __file__, "hold", self.state, name, self.variant, str(switch)],
                                  stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
        ends.callback(holder.wait)
        ends.callback(holder.kill)
        if holder.stdout.readline() != "ready\n":
            sys.exit(f"hosts.py: {name} was not made")
        self.holders[name] = holder.pid
        pathlib.Path(self.state, name).write_text(str(holder.pid))
        return holder.pid

    def on(self, name, words):
        """The words that run a command on a host."""
        return ["nsenter", "-t", str(self.holders[name]), "-n", "-u", "-m", f"--wd={os.getcwd()}", *map(str, words)]

    def ip(self, name, words):
        done = subprocess.run(self.on(name, ["ip", *words.split()]), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"hosts.py: {name}: ip {words}: {done.stderr.strip()}")

    def set_lan(self, up):
        """Connects the hosts to each other, or takes all cables away."""
        for number in range(1, len(NAMES) + 1):
            self.ip("switch", f"link set port{number} {'up' if up else 'down'}")
        if up and not self.is_reached():
            sys.exit("hosts.py: the LAN does not connect the hosts again")

    def set_silent(self, silent):
        """The cables stay, and the switch forwards nothing: no end sees a change."""
        for number in range(1, len(NAMES) + 1):
            self.ip("switch", f"link set port{number} {'nomaster' if silent else 'master switch'}")
        if not silent and not self.is_reached():
            sys.exit("hosts.py: the LAN does not connect the hosts again")

    def is_reached(self):
        """Waits until each host reaches the others: a bridge's port forwards a moment after it is up."""
        probe = ("import socket, sys\nfor host in sys.argv[1:]:\n  try: socket.create_connection((host, 1), 0.3)\n"
                 "  except ConnectionRefusedError: pass\n  except OSError: sys.exit(1)")
        until = time.monotonic() + 60
        for name in NAMES:
            others = [lan(number, self.variant) for number in range(1, len(NAMES) + 1) if NAMES[number - 1] != name]
            while subprocess.run(self.on(name, [sys.executable, "-c", probe, *others])).returncode != 0:
                if time.monotonic() > until:
                    return False
                time.sleep(0.1)
        return True

    def end_others(self, kept=()):
        """Ends every process of this namespace of processes but the hosts, this program, and those of `kept` with their children."""
        keep = {1, os.getpid(), *self.holders.values(), *kept}
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if int(path.name) not in keep and parent not in kept:
                    os.kill(int(path.name), signal.SIGKILL)


if __name__ == "__main__":
    assert sys.argv[1] == "hold"
    hold(*sys.argv[2:])
