#!/usr/bin/python3
"""embedded_test.py ROOT ESPALIER [--page] PROGRAM...: four nodes of each example of examples/firmware sum over serial lines.

A PROGRAM is a process, connected by pseudo terminals, or an .elf for the mps2-an385, which qemu emulates with three UARTs on sockets.
This script is the cables: it passes the bytes on, and of the processes' bytes it loses some. Each node must print the digest of the sum
that `espalier simulate` computes. Then one node is killed, and each other one must name it, with a step and a link of its own; not of
the program `once`, which sums only once. --page: docs/firmware_in_c.md is followed beside that.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import page  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from processes import output_of  # noqa: E402

NODES, COUNT, ROUNDS, DEAD = 4, 250, 3, 2
LOSE_EVERY = 5003  # a byte of so many
SUM = re.compile(r"rank (\d+), sum (\d+): digest (\d+)")
FAILURE = re.compile(r"^rank (\d+): dead link: rank (\d+), found by rank (\d+)(?:; here step (\d+) waits on link (\d+) to rank (\d+))?$\n", re.M)


def digest(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


class Cables:
    """Passes bytes on between pairs of file descriptors until it is told to end."""

    def __init__(self, pairs, loses):
        self.other, self.waiting = {}, {}
        for a, b in pairs:
            self.other[a], self.other[b] = b, a
        for end in self.other:
            os.set_blocking(end, False)
            self.waiting[end] = b""  # to be written there
        self.loses, self.count, self.lost, self.ended = loses, 0, 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def read(self, end):
        try:
            data = os.read(end, 512)
        except (BlockingIOError, OSError):
            return b""
        if not self.loses:
            return data
        kept = bytearray()
        for byte in data:
            self.count += 1
            if self.count % LOSE_EVERY == 0:
                self.lost += 1
            else:
                kept.append(byte)
        return bytes(kept)

    def run(self):
        closed = set()
        while not self.ended:
            readers = [end for end in self.other if end not in closed and len(self.waiting[self.other[end]]) < 4096]
            writers = [end for end, data in self.waiting.items() if data and end not in closed]
            ready, free, _ = select.select(readers, writers, [], 0.05)
            for end in ready:
                data = self.read(end)
                if not data and not self.loses:
                    closed.add(end)  # its emulator ended
                self.waiting[self.other[end]] += data
            for end in free:
                try:
                    self.waiting[end] = self.waiting[end][os.write(end, self.waiting[end]):]
                except BlockingIOError:
                    pass
                except OSError:
                    closed.add(end)

    def end(self):
        self.ended = True
        self.thread.join()
        for end in self.other:
            os.close(end)


class Cluster:
    """The nodes of one example, connected."""

    def __init__(self, program, images, folder, peers):
        self.emulated, self.consoles = program.suffix == ".elf", [folder / f"console-{node}" for node in range(NODES)]
        folder.mkdir()
        self.keep, ends, devices = [], {}, {}
        for node, peer in ((node, peer) for node in range(NODES) for peer in peers[node]):
            if self.emulated:
                path = folder / f"{node}-{peer}"
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(str(path))
                listener.listen()
                ends[node, peer], devices[node, peer] = listener, path
            else:
                ends[node, peer], slave = os.openpty()
                tty.setraw(slave)
                self.keep.append(slave)  # a terminal that is not open anywhere would report an error
                devices[node, peer] = os.ttyname(slave)
        self.processes = [self.start(program, images / f"{node}.img", [devices[node, peer] for peer in peers[node]], self.consoles[node])
                          for node in range(NODES)]
        if self.emulated:
            self.keep += ends.values()
            ends = {pair: listener.accept()[0].detach() for pair, listener in ends.items()}
        self.cables = Cables([(ends[a, b], ends[b, a]) for a, b in ends if a < b], not self.emulated)

    def start(self, program, image, links, console):
        words = [program, image, *links]
        if self.emulated:
            words = ["qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-monitor", "none", "-serial", "stdio"]
            for link, path in enumerate(links):
                words += ["-chardev", f"socket,id=link{link},path={path}", "-serial", f"chardev:link{link}"]
            words += ["-semihosting-config", "enable=on,target=native", "-device", f"loader,file={image},addr=0x300000,force-raw=on",
                      "-kernel", program]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console.open("wb"), stderr=subprocess.STDOUT)

    def text(self, node):
        return self.consoles[node].read_text(errors="replace")

    def wait_for(self, nodes, pattern, count):
        """Waits until each of the nodes has printed this so often. A node that ends before, or one that fails, ends the test."""
        while any(len(pattern.findall(self.text(node))) < count for node in nodes):
            time.sleep(0.1)
            for node in nodes:
                ended = self.processes[node].poll() is not None and len(pattern.findall(self.text(node))) < count
                if ended or pattern is SUM and FAILURE.search(self.text(node)):
                    sys.exit(f"embedded: node {node} failed, status {self.processes[node].poll()}: {self.text(node)}")

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.cables.end()


def check(program, images, expected, folder, peers):
    """Runs one example; returns what is not as it must be."""
    once = program.stem.endswith("once")
    begun = time.monotonic()
    cluster = Cluster(program, images, folder, peers)
    bad = []
    try:
        cluster.wait_for(range(NODES), SUM, 1 if once else ROUNDS)
        summed = time.monotonic()
        if not once:
            cluster.processes[DEAD].kill()
            cluster.wait_for([node for node in range(NODES) if node != DEAD], FAILURE, 1)
        failed = time.monotonic()
    finally:
        cluster.end()
    waits = 0
    for node in range(NODES):
        text = cluster.text(node)
        sums = SUM.findall(text)
        if any((int(rank), int(value)) != (node, expected[node]) for rank, _, value in sums):
            bad.append(f"node {node}: another sum than that of the simulation, {expected[node]}")
        if [int(number) for _, number, _ in sums] != list(range(len(sums))):
            bad.append(f"node {node}: not one sum after the other")
        if node == DEAD or once:
            continue
        failure = FAILURE.search(text)
        if failure is None or int(failure[1]) != node or int(failure[2]) != DEAD or int(failure[3]) == DEAD:
            bad.append(f"node {node} does not name node {DEAD}")
            continue
        if failure[4] is not None:
            waits += int(failure[6]) == DEAD
            if peers[node][int(failure[5])] != int(failure[6]):
                bad.append(f"node {node}: link {failure[5]} is not to node {failure[6]}")
    if waits == 0 and not once:
        bad.append(f"no node says at which step, and on which of its links, it waits for node {DEAD}")
    if not cluster.emulated and not once and cluster.cables.lost == 0:  # one sum may have too few bytes
        bad.append("no byte was lost")
    print(f"{program.name}: {summed - begun:.0f} s until the sums, {failed - summed:.0f} s until the failure, {sum(len(SUM.findall(cluster.text(node))) for node in range(NODES))} sums, {cluster.cables.lost} bytes lost")
    return [f"{program.name}: {line}\n{cluster.text(int(re.search('node ([0-9])', line)[1])) if 'node ' in line else ''}" for line in bad]


def main():
    root, espalier, *programs = (pathlib.Path(word) for word in sys.argv[1:] if word != "--page")
    needed = programs + ([root / "build-m3/firmware/embedded/libespalier_node.a"] if "--page" in sys.argv else [])
    missing = [program for program in needed if not program.exists()]
    if missing or not shutil.which("qemu-system-arm"):
        print(f"not built: {', '.join(map(str, missing))}" if missing else "no qemu-system-arm: run ./setup.sh")
        return 77
    bad = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        output_of([espalier, "compile", "--topology", f"complete:{NODES}", "--collective", "allreduce", "--algorithm", "two-tree", "-o", folder / "sum.esp"])
        output_of([espalier, "simulate", folder / "sum.esp", "--bytes", 4 * COUNT, "--output", folder / "simulated"])
        expected = [digest((folder / f"simulated/rank-{node}.bin").read_bytes()) for node in range(NODES)]
        for board in ("linux-x86_64", "mps2-an385"):
            (folder / board).mkdir()
            output_of([espalier, "image", "build", folder / "sum.esp", "--board", root / "boards" / board, "--release", "1.0.0",
                  "-o", folder / board / "%r.img"])
        # The image says to which node each link is.
        peers = [[link["peer"] for link in json.loads(output_of([espalier, "image", "show", folder / f"mps2-an385/{node}.img", "--format", "json"]))["links"]]
                 for node in range(NODES)]

        def one(number, program):
            board = "mps2-an385" if program.suffix == ".elf" else "linux-x86_64"
            return check(program, folder / board, expected, folder / str(number), peers)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            followed = pool.submit(page.follow, root) if "--page" in sys.argv else None
            for found in pool.map(one, range(len(programs)), programs):
                bad += found
            bad += followed.result() if followed else []
    print("\n".join(bad) or "all sums are those of the simulation, and all survivors name the dead node")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
