#!/usr/bin/python3
"""cable.py LEFT,RIGHT,LOSE,REPEAT,CUT...: serial cables. Each has a pseudo terminal at each end, to which the paths LEFT and RIGHT are links.
A byte on its way is lost, repeated, or lost together with the next ones (up to 64): one byte in LOSE, REPEAT and CUT, on average;
0: none. Prints "ready", carries bytes until SIGTERM, and prints what went wrong, as JSON. ESPALIER_SEED repeats the faults, as far as
the bytes are the same."""
import collections
import json
import os
import pathlib
import random
import select
import signal
import sys
import tty

HELD = 65536  # bytes on their way to one end
CUT = 64


class Fault:
    """Says which bytes have a fault: one in `rate` on average; 0: none."""

    def __init__(self, rate, draw):
        self.rate, self.draw, self.left = rate, draw, 0
        if rate:
            self.left = draw.expovariate(1 / rate)

    def is_due(self):
        """Whether the next byte has it."""
        self.left -= 1
        if not self.rate or self.left >= 0:
            return False
        self.left = self.draw.expovariate(1 / self.rate)
        return True


class Direction:
    """Bytes from one end to the other."""

    def __init__(self, source, target, rates, draw, counts):
        self.source, self.target, self.counts, self.draw = source, target, counts, draw
        self.faults = [Fault(rate, draw) for rate in rates]
        self.waiting, self.lost = bytearray(), 0

    def take(self):
        for byte in os.read(self.source, 4096):
            lose, repeat, cut = (fault.is_due() for fault in self.faults)
            self.counts["carried"] += 1
            if cut and not self.lost:
                self.lost = self.draw.randint(1, CUT)
                self.counts["cuts"] += 1
            if self.lost:
                self.lost -= 1
            elif lose:
                self.counts["lost"] += 1
            else:
                self.waiting.append(byte)
                if repeat:
                    self.waiting.append(byte)
                    self.counts["repeated"] += 1

    def give(self):
        try:
            del self.waiting[:os.write(self.target, self.waiting)]
        except BlockingIOError:
            pass


def terminal(path):
    """Makes a pseudo terminal with a link to it; returns its master. The other end stays open, so that the master never hangs up."""
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    pathlib.Path(path).unlink(missing_ok=True)
    os.symlink(os.ttyname(slave), path)
    return master


def main(arguments):
    draw = random.Random(os.environ.get("ESPALIER_SEED"))
    counts = collections.Counter(carried=0, lost=0, repeated=0, cuts=0)
    directions = []
    for argument in arguments:
        left, right, *rates = argument.split(",")
        rates = [int(rate) for rate in rates]
        ends = terminal(left), terminal(right)
        directions += [Direction(*pair, rates, draw, counts) for pair in (ends, ends[::-1])]
    done, end = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(end, b"."))
    print("ready", flush=True)
    while True:
        sources = {each.source: each for each in directions if len(each.waiting) < HELD}
        targets = {each.target: each for each in directions if each.waiting}
        readable, writable, _ = select.select([done, *sources], targets, [])
        if done in readable:
            break
        for fd in readable:
            sources[fd].take()
        for fd in writable:
            targets[fd].give()
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
