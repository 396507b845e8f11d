#!/usr/bin/python3
"""hostile.py HOW NODE WORDS...: runs espalier-node as a node of a cluster, and changes what it tells the launcher
(firmware/node/control.h). HOW: words (its Hello is a failure with escape sequences), lanes, address (sizes of its Hello), ready,
mapped (it sends such a packet instead of its Hello or its report), log, retired (counts of its log), link, kind, flag (of a record of
its log), waiting (a flag of its report)."""
import mmap
import os
import select
import socket
import struct
import subprocess
import sys

HELLO, READY, MAPPED, REPORT, FAILED, MEMORY = 1, 2, 3, 4, 5, 17
HELLO_LANES, HELLO_ADDRESSES = 16, 32 + 128 * 4
REPORT_STATUS, REPORT_LOG, REPORT_WAITING = 8, 64, 80
BUSY = 1
TIMES, EVENT = 32, 20  # bytes of EventTimes and Event
EVENT_LINK, EVENT_KIND, EVENT_DONE = 13, 14, 17


def aligned(size):
    return (size + 4095) // 4096 * 4096


class Node:
    def __init__(self, how):
        self.how, self.memory = how, None

    def keep(self, packet, file):
        """Keeps the memory of the collective."""
        sent, output, events = struct.unpack_from("<8xQQI", packet)
        self.log, self.events = aligned(aligned(sent) + output), events
        self.memory = mmap.mmap(file, 0)

    def change(self, packet):
        (kind,) = struct.unpack_from("<I", packet)
        if kind == HELLO and self.how == "words":
            return struct.pack("<II512s", FAILED, 0, b"one\x1b[2Jtwo\nthree\x9b4m")
        if (kind, self.how) in ((HELLO, "ready"), (REPORT, "mapped")):
            return struct.pack("<I", READY if self.how == "ready" else MAPPED)
        packet = bytearray(packet)
        if kind == HELLO and self.how == "lanes":
            struct.pack_into("<I", packet, HELLO_LANES, 2**32 - 1)
        if kind == HELLO and self.how == "address":
            struct.pack_into("<I", packet, HELLO_ADDRESSES, 2**31)
        if kind == REPORT and packet[REPORT_STATUS] != BUSY:
            if self.how == "log":
                struct.pack_into("<I", packet, REPORT_LOG, 2**31)
            if self.how == "retired":
                struct.pack_into("<I", packet, REPORT_LOG + 4, 2**31)
            if self.how == "link":
                self.memory[self.log + self.events * TIMES + EVENT_LINK] = 200
            if self.how == "kind":
                self.memory[self.log + self.events * TIMES + EVENT_KIND] = 255
            if self.how == "flag":
                self.memory[self.log + self.events * TIMES + EVENT_DONE] = 2
            if self.how == "waiting":
                packet[REPORT_WAITING] = 2
        return bytes(packet)


def main(how, words):
    place = words.index("--control") + 1
    launcher = socket.socket(fileno=int(words[place]))
    node, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words[place] = str(theirs.fileno())
    launcher.set_inheritable(False)
    theirs.set_inheritable(True)
    process = subprocess.Popen(words, close_fds=False)  # a schedule may be a file that the launcher left open
    theirs.close()
    changes = Node(how)
    while True:
        for end in select.select([launcher, node], [], [])[0]:
            packet, files, _, _ = socket.recv_fds(end, 1 << 20, 1)
            if not packet:
                node.close()
                return process.wait()
            if files and struct.unpack_from("<I", packet)[0] == MEMORY:
                changes.keep(packet, files[0])
            other = node if end is launcher else launcher
            socket.send_fds(other, [packet if end is launcher else changes.change(packet)], files)
            for file in files:
                os.close(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
