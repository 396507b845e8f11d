#!/usr/bin/env python3
"""Two hosts join in the moment in which their cable comes up. Root only.

Where both ends of a cable have one interface number, as a card has it, the kernel handles a change of the carrier at most once a second: until then
the interface is up, but not "running". The change of another interface just before makes that last for a second.

fresh_test.py MEMBER
"""
import contextlib
import os
import socket
import subprocess
import sys
import tempfile

SUBNETS = (*["10.31.0.{}/24"] * 4, "fd31::{}/64")  # an address of IPv6 is tentative at first
INDEX = 101


def ip(words, inside=()):
    done = subprocess.run([*inside, "ip", *words.split()], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ip {words}: {done.stderr.strip()}")


def host(ends):
    """A network namespace without interfaces: the words that run a command in it, and its process."""
    holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up; echo ready; exec sleep 1000"], stdout=subprocess.PIPE, text=True)
    ends.callback(holder.wait)
    ends.callback(holder.kill)
    return (["nsenter", "-t", str(holder.pid), "-n"], holder.pid) if holder.stdout.readline() == "ready\n" else (None, None)


def join(member, hosts, address):
    """Starts a rank on each host, and returns what is wrong."""
    started = []
    for rank, (inside, _) in enumerate(hosts):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "ESPALIER_ADDRESS": address}
        started.append(subprocess.Popen([*inside, member], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    outputs = [(each.communicate(), each.returncode) for each in started]
    return [f"rank {rank}: status {status}: {output}" for rank, (output, status) in enumerate(outputs) if status != 0]


def freshly_cabled(member, round, subnet):
    """`subnet`: "10.31.0.{}/24"."""
    with contextlib.ExitStack() as ends:
        hosts = [host(ends) for _ in range(2)]
        if not all(pid for _, pid in hosts):
            return None
        (first, one), (second, two) = hosts
        ip(f"link add eth0 index {INDEX} netns {one} type veth peer name eth0 index {INDEX} netns {two}")
        ip(f"address add {subnet.format(1)} dev eth0", first)
        ip(f"address add {subnet.format(2)} dev eth0", second)
        ip("link add other type veth peer name far", first)
        ip("link set other up", first)
        ip("link set far up", first)
        ip("link set eth0 up", first)
        ip("link set eth0 up", second)
        host_of = subnet.format(1).partition("/")[0]
        return join(member, hosts, f"{f'[{host_of}]' if ':' in host_of else host_of}:{4300 + round}")


def main():
    member = os.path.abspath(sys.argv[1])
    if os.getuid() != 0:
        print("skipped: not root")
        sys.exit(77)
    for round, subnet in enumerate(SUBNETS):
        wrong = freshly_cabled(member, round, subnet)
        if wrong is None:
            print("skipped: no network namespaces")
            sys.exit(77)
        if wrong:
            sys.exit(f"round {round}: " + "\n".join(wrong))
    print(f"{len(SUBNETS)} rounds: each joined over a cable that had just come up")


if __name__ == "__main__":
    main()
