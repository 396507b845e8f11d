#!/usr/bin/python3
"""updates_test.py --espalier PROGRAM --hosted PROGRAM --gateway PROGRAM --node PROGRAM [--over nodes|gateways|mixed|from-a-node]
[--kills N [--seed S]] [--only N] [--jobs N]: a new release goes to espalier-nodes (nodes), or to boards that run as processes of this
host behind gateways, over their own fabric: to boards alone (gateways), to boards and espalier-nodes from a board (mixed), and from an
espalier-node. An image that a node must refuse changes nothing. Then N updates (default: a sample of one or two for each --over;
ESPALIER_WHOLE=1: 50) in which a board, a node, or all processes are killed at a random moment. Afterwards a collective runs in one
release or is refused; all settle in one release, and then a collective is right.

--seed determines the kills. A failure names the words that repeat it."""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import sample  # noqa: E402
from processes import execute  # noqa: E402

TOPOLOGY, NODES = "complete:4", 4
# In the new release another program follows, so that the two differ in their schedules.
PROGRAMS = [("broadcast", "binomial"), ("scatter", "binomial"), ("allreduce", "two-tree"), ("reduce", "binomial")]
OLD, NEW = "1.0.0", "1.1.0"
# The nodes that are boards. Node 0 sends.
BOARDS = {"nodes": (), "gateways": range(NODES), "mixed": (0, 2), "from-a-node": (1, 3)}
LIMIT_S = 400  # only a hang takes as long
INTERRUPTED = ", which interrupted it"
MIXED = "nodes of two releases run nothing together"
print_lock = threading.Lock()


class Wrong(Exception):
    """One line: what is not as expected."""


def say(line):
    with print_lock:
        print(line, flush=True)


def call(words, statuses=(0,)):
    status, output, error = execute(words, LIMIT_S)
    if status not in statuses:
        raise Wrong(f"status {status}: {' '.join(map(str, words))}: {output}{error}")
    return status, output, error


class Maker:
    """Keys, schedules and images, once for all clusters."""

    def __init__(self, args, path):
        self.args, self.path = args, path
        call([args.espalier, "image", "keygen", "-o", path / "key"])
        for collective, algorithm in PROGRAMS:
            call([args.espalier, "compile", "--topology", TOPOLOGY, "--collective", collective, "--algorithm", algorithm, "-o",
                  path / f"{collective}.esp"])
        for over, boards in BOARDS.items():
            for name, release, count in (("old", OLD, 3), ("new", NEW, 4)):
                for node in range(NODES):
                    self.build(f"{over}-{name}-{node}.img", release, count, node, node in boards)
            for node in range(NODES):
                call([args.espalier, "image", "install", path / f"{over}-old-{node}.img", "--board", self.board(node in boards),
                      "--flash", path / f"{over}-{node}.flash", "--public-key", path / "key.pub", "--confirmed", "--node", node])

    @staticmethod
    def board(is_board):
        return HERE / "hosted" if is_board else ROOT / f"boards/linux-{os.uname().machine}"

    def build(self, name, release, count, node, is_board):
        files = [self.path / f"{collective}.esp" for collective, _ in PROGRAMS[:count]]
        call([self.args.espalier, "image", "build", *files, "--board", self.board(is_board), "--release", release, "--key",
              self.path / "key", "--node", node, "-o", self.path / name])


class Cluster:
    """The nodes of one case, in a folder of their own."""

    def __init__(self, args, made, over, path):
        self.args, self.made, self.over, self.path = args, made, over, path
        for node in range(NODES):
            shutil.copy(made / f"{over}-{node}.flash", path / f"{node}.flash")

    def starts(self):
        """Returns what starts the boards, and what the other nodes boot."""
        at, args, boards = self.path, self.args, BOARDS[self.over]
        if not boards:
            return ["--node-binary", args.node]
        board = (f"{args.hosted} --device unix:{at}/b%r,{at}/g%r --flash {at}/%r.flash --public-key {self.made}/key.pub "
                 "--board hosted")
        gateway = f"{args.gateway} --device unix:{at}/g%r,{at}/b%r --start '{board}' --console {at}/console-%r"
        return ["--node-binary", args.node, "--start", f"{','.join(map(str, boards))}={gateway}"]

    def boots(self, listed):
        others = [node for node in range(NODES) if node not in BOARDS[self.over]]
        if not others:
            return []
        prefix = f"{','.join(map(str, others))}=" if listed and len(others) < NODES else ""
        return ["--flash", f"{prefix}{self.path}/%r.flash", "--public-key", self.made / "key.pub"]

    def words(self, *words):
        return [self.args.espalier, "update", *words, *self.starts(), *self.boots(False), "--deadline", self.args.deadline_ms]

    def new(self):
        return self.made / f"{self.over}-new-%r.img"

    def update(self, *words, statuses=(0,)):
        return call(self.words(*words), statuses)

    def settle(self):
        """Returns the release in which all nodes end."""
        _, output, error = self.update("--settle")
        found = re.search(rf"^all {NODES} nodes run release (\S+)$", output, re.M)
        if found is None:
            raise Wrong(f"--settle names no release: {output}{error}")
        return found[1]

    def run_collective(self, statuses=(0,)):
        return call([self.args.espalier, "run", self.made / "allreduce.esp", "--bytes", "64KiB", "--provider", "tcp", *self.starts(),
                     *self.boots(True), "--deadline", self.args.deadline_ms], statuses)


def check(condition, what):
    if not condition:
        raise Wrong(what)


def first_line(words):
    """Runs a command. Returns its output, and the time until its first line."""
    begin = time.monotonic()
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        took = time.monotonic() - begin
        return line + process.stdout.read(), took


def without_kill(cluster):
    """An update from node 0. Returns the times until its nodes have settled, and until they have switched."""
    output, settled = first_line(cluster.words("--settle"))
    check(output == f"all {NODES} nodes run release {OLD}\n", output)
    output, switched = first_line(cluster.words(cluster.new()))
    expected = f"all {NODES} nodes switch to release {NEW}\nall {NODES} nodes run release {NEW}\n"
    check(output == expected, f"expected {expected!r}, not {output!r}")
    check(cluster.settle() == NEW, "it did not last")
    cluster.run_collective()
    return settled, max(switched, settled + 0.05)


def refused(cluster):
    """A node, a board if there is one, gets an image that it must refuse: nothing changes."""
    board = max(BOARDS[cluster.over], default=2)
    folder = cluster.path / "bad"
    folder.mkdir()
    for node in range(NODES):
        shutil.copy(cluster.made / f"{cluster.over}-new-{node}.img", folder / f"{node}.img")
    image = bytearray((folder / f"{board}.img").read_bytes())
    image[-1] ^= 1
    (folder / f"{board}.img").write_bytes(image)
    _, _, error = cluster.update(folder / "%r.img", statuses=(1,))
    check(f"node {board} refuses the update: corrupt (status 5); all run release {OLD}" in error, error)
    check(cluster.settle() == OLD, "a refused update was installed")
    cluster.run_collective()


def killed(cluster, dice, times):
    """An update with a kill at a random moment. Returns what it says about it."""
    settled, switched = times
    if dice.random() < 0.5:
        node = dice.randrange(NODES)
        # After the start of the nodes; rather soon, because the update is the first thing that they do.
        moment = dice.random() * dice.uniform(0, 1.25 * (switched - settled))
        status, output, error = cluster.update(cluster.new(), "--kill", f"{node}@{int(1000 * moment)}", statuses=(0, 1))
        ends = re.search(rf"^all {NODES} nodes run release (\S+)$", output, re.M)
        check(ends is not None and status == (0 if ends[1] == NEW else 1), output + error)
        kind = "board" if node in BOARDS[cluster.over] else "node"
        # The reason why the first session failed.
        interrupted = INTERRUPTED if "all restart" in output else ""
        return f"{kind} {node} killed after {1000 * moment:.0f} ms{interrupted}"
    moment = dice.uniform(0.75 * settled, 1.25 * switched)
    with subprocess.Popen([str(word) for word in cluster.words(cluster.new())], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)  # its nodes and gateways die with it, and with these the boards
    return f"all killed after {1000 * moment:.0f} ms"


def with_kill(cluster, dice, times):
    """Returns (the release in which all end, whether nodes of two releases refused to join before, how it was killed)."""
    text = killed(cluster, dice, times)
    status, _, error = cluster.run_collective((0, 1))  # in one release, or refused
    check(status == 0 or MIXED in error, f"{text}: {error}")
    release = cluster.settle()
    check(release in (OLD, NEW), f"{text}: all run release {release}")
    cluster.run_collective()
    return release, status != 0, text


def one_case(args, made, over, number, times):
    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(args, made, over, pathlib.Path(name))
        try:
            return with_kill(cluster, random.Random(f"{args.seed} {over} {number}"), times)
        except Wrong as wrong:
            if args.output:
                consoles = [f"{path.name}: {path.read_text()}" for path in sorted(cluster.path.glob("console-*"))]
                pathlib.Path(args.output).write_text("".join(consoles))
            return wrong


def run_over(args, made, over):
    """Returns how many cases failed."""
    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(args, made, over, pathlib.Path(name))
        refused(cluster)
        times = without_kill(cluster)
    say(f"{over}: an image is refused by all; an update without a kill: all nodes in {NEW}, after {times[1]:.1f} s")
    ends, mixed, interrupted, failed = {OLD: 0, NEW: 0}, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        numbers = [args.only] if args.only is not None else range(args.kills or (2 if over == "nodes" else 1))
        for number, result in zip(numbers, pool.map(lambda number: one_case(args, made, over, number, times), numbers)):
            if isinstance(result, Wrong):
                failed += 1
                say(f"FAILED: --over {over} --seed {args.seed} --only {number}: {result}")
                continue
            release, was_mixed, text = result
            ends[release] += 1
            mixed += was_mixed
            interrupted += INTERRUPTED in text
            say(f"{over} {number}: {text}, all nodes in {release}")
    say(f"{over}: {sum(ends.values())} kills right, {failed} FAILED: {ends[OLD]} ended in the old release, {ends[NEW]} in the new "
        f"one; {interrupted} times the death of one interrupted the others, {mixed} times nodes of two releases refused to join "
        "afterwards")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("espalier", "hosted", "gateway", "node"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--over", choices=list(BOARDS), help="only these; default: all")
    parser.add_argument("--kills", type=int, default=50 if os.environ.get("ESPALIER_WHOLE") == "1" else None)
    parser.add_argument("--seed", type=int, help="of the kills; default: random")
    parser.add_argument("--only", type=int, help="only this case")
    parser.add_argument("--jobs", type=int, default=1, help="cases that run at once")
    parser.add_argument("--deadline-ms", type=int, default=2000, help="how long a link may be silent")
    parser.add_argument("--output", help="file for the boards' consoles after a failure")
    args = parser.parse_args()
    if args.seed is None:
        args.seed = sample.seed()
    os.environ["ESPALIER_TEST_FAULTS"] = "1"  # `espalier update` takes --kill
    try:
        with tempfile.TemporaryDirectory() as name:
            made = pathlib.Path(name)
            Maker(args, made)
            failed = sum(run_over(args, made, over) for over in ([args.over] if args.over else BOARDS))
    except Wrong as wrong:
        return f"updates: {wrong}"
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
