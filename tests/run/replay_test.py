#!/usr/bin/env python3
"""A stranger's host reads the traffic of a job and says it again, to the same job and to a later one: nothing is believed.

replay_test.py ESPALIER STEADY
Hosts are network namespaces, which need root; otherwise the test is skipped with its reason.
"""
import collections
import contextlib
import ctypes
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import unittest

from launchers import OnHosts
from processes import HANG_S

ESPALIER, STEADY = (os.path.abspath(path) for path in sys.argv[1:3])
STRANGER = 2  # its host; the job runs on hosts 0 and 1
RECORDED = 4_000_000  # bytes that cross the switch from the start of a job on
TIMES = 5     # that each stream is said again to the same job
SO_RCVBUFFORCE, CLONE_NEWNET = 33, 0x40000000  # Python has no names for them


def in_namespace(name, what):
    """Calls what() while this thread is in a network namespace, and returns its result."""
    def enter(path):
        with open(path, "rb") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter {path}")
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        enter(f"/run/netns/{name}")
        return what()
    finally:
        enter(f"/proc/self/fd/{own}")
        os.close(own)


class Recorder(threading.Thread):
    """Records what crosses the switch, from now on."""

    def __init__(self):
        super().__init__(daemon=True)
        self.packets, self.bytes, self.ended = [], 0, False
        self.line = in_namespace("esplab-switch", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
        self.line.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.start()

    def run(self):
        while not self.ended:
            if select.select([self.line], [], [], 0.05)[0]:
                self.packets.append(self.line.recv(65536))
                self.bytes += len(self.packets[-1])

    def end(self):
        """Returns {(address, port) of a TCP server: [what each client said to it, up to the first packet that is missing]}."""
        until = time.monotonic() + HANG_S
        while self.bytes < RECORDED and time.monotonic() < until:
            time.sleep(0.01)
        self.ended = True
        self.join()
        self.line.close()
        first, pieces = {}, collections.defaultdict(dict)
        for packet in self.packets:
            if packet[12:14] != b"\x08\x00" or packet[23] != socket.IPPROTO_TCP:
                continue
            tcp = packet[14 + (packet[14] & 15) * 4:14 + int.from_bytes(packet[16:18], "big")]
            flow = (packet[26:30], tcp[0:2], packet[30:34], tcp[2:4])
            number, said = int.from_bytes(tcp[4:8], "big"), tcp[(tcp[12] >> 4) * 4:]
            if tcp[13] & 0x12 == 0x02:  # SYN without ACK: the client's
                first[flow] = number + 1
            elif flow in first and said:
                pieces[flow][(number - first[flow]) % 2**32] = said
        streams = collections.defaultdict(list)
        for flow, parts in pieces.items():
            stream = bytearray()
            for at, part in sorted(parts.items()):
                if at <= len(stream):
                    stream[at:at + len(part)] = part
            streams[socket.inet_ntoa(flow[2]), int.from_bytes(flow[3], "big")].append(bytes(stream))
        return streams


def servers():
    """The (address, port) at which processes listen on the hosts of the job."""
    found = []
    for host in range(2):
        lines = subprocess.run(["ip", "netns", "exec", f"esplab{host}", "ss", "-ltnH"], capture_output=True, text=True, check=True).stdout
        found += [(f"10.79.0.{host + 1}", int(port)) for port in re.findall(r"10\.79\.0\.\d+:(\d+)\s", lines)]
    return found


def say(streams, server):
    """Says each stream to the server, on a connection of its own from the stranger's host. Returns how many bytes it took."""
    taken = 0
    for stream in streams:
        with contextlib.suppress(OSError), \
                in_namespace(f"esplab{STRANGER}", lambda: socket.create_connection(server, timeout=1)) as line:
            view = memoryview(stream)
            while view:
                sent = line.send(view)
                view, taken = view[sent:], taken + sent
            time.sleep(0.05)  # the processes that run the job read it
    return taken


class Replay(OnHosts):
    HOSTS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.words = [word.replace(",esplab2", "") for word in cls.words]

    def end(self, job):
        """Ends a job; returns what it says on stdout and on stderr. No collective has had a wrong result."""
        said = job.communicate(timeout=HANG_S)
        self.assertNotIn("incorrect", said[1])
        return said

    def test_nothing_is_believed_twice(self):
        recorder = Recorder()
        job = self.start(ESPALIER, 4, STEADY)
        streams = recorder.end()
        fabric = [server for server in servers() if server in streams]
        self.assertGreaterEqual(len(fabric), 2)
        size = sum(len(stream) for server in fabric for stream in streams[server])
        self.assertGreater(size, 100_000)
        taken = sum(say(streams[server], server) for server in fabric for _ in range(TIMES))
        output, error = self.end(job)
        print(f"the same job: {size} bytes of {len(fabric)} processes, said {TIMES} times; {taken} were taken; the job then:",
              (output + error).splitlines()[1])
        # Whoever can read and write the slots of a job may end it, with an error that names a link.
        if job.returncode == 0:
            self.assertRegex(output, r"^\[0\] ready\n\[0\] [1-9]\d* rounds right\n$")
        else:
            self.assertRegex(error, r"steady: round \d+: \w+ failed: .*, found by rank \d on its link to rank \d")

        recorder = Recorder()
        later = self.start(ESPALIER, 4, STEADY)
        recorder.end()
        everything = [stream for each in streams.values() for stream in each]  # the rendezvous, too
        taken = sum(say(everything, server) for server in servers())
        self.assertIsNone(later.poll(), "the job ended before the attack did")
        output, error = self.end(later)
        print(f"a later job: {len(everything)} streams; {taken} bytes were taken; the job then:", output.splitlines()[-1])
        self.assertRegex(output, r"^\[0\] ready\n\[0\] [1-9]\d* rounds right\n$", error)
        self.assertEqual(later.returncode, 0, error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
