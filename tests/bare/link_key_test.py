#!/usr/bin/python3
"""link_key_test.py --espalier PROGRAM --session PROGRAM --hosted PROGRAM: a board and its gateway with one key for their links boot,
run, install and restart. With different keys, or if only one has a key, they do not connect, and the board's console says so. Then
someone on the line replays every frame of earlier sessions to a new one."""
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import power_test  # noqa: E402
import wire  # noqa: E402
from power_test import expect  # noqa: E402

MISMATCHES = [("a.key", "b.key", "its code is wrong"), ("a.key", None, "it has no key, this board has one"),
              (None, "a.key", "it has a key, this board none")]


def refuses(args, folder, board, gateway, reason):
    """The board and the session have these keys, and do not connect."""
    node = power_test.Node(args, folder, link_key=board and folder / board)
    process = node.start()
    session = subprocess.Popen(node.session_words(gateway and folder / gateway), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = f"links: dropped a frame of the agent's channel: {reason}"
        while line not in node.console.read_text():
            expect(session.poll() is None, f"the session ended; expected '{line}' in", node)
    finally:
        session.kill()
        process.kill()
        said = session.communicate()[0]
        process.wait()
    expect("hello" not in said, f"the board is believed: {said}", node)


class Line(wire.Wire):
    """Keeps all frames, and sends an earlier one after each, in either direction."""

    def __init__(self, ends):
        self.kept, self.replayed = [], 0
        super().__init__(ends)

    def carry(self, side, frame):
        self.send(side, frame)
        self.kept.append((side, frame))
        # All frames in turn, both to their receiver and to their sender.
        other, old = self.kept[self.replayed // 2 % len(self.kept)]
        self.send(other if self.replayed % 2 else 1 - other, old)
        self.replayed += 1


def replays(args, folder):
    """Sessions over a line that replays all earlier ones."""
    node = power_test.Node(args, folder, link_key=folder / "a.key")
    real_board, real_gateway = node.board, node.gateway
    far_board, far_gateway = folder / "line-b.sock", folder / "line-g.sock"
    with Line([(far_board, real_board), (far_gateway, real_gateway)]) as line:
        # The board's peer is the line, and so is the session's.
        release = 10
        for _ in range(4):
            node.gateway = far_board
            process = node.start()
            node.board, node.gateway = far_gateway, real_gateway
            said = node.session(process, "--run")
            expect("report: ok, 1 complete" in said, f"a run failed: {said}", node)
            release += 1
            said = node.session(process, "--install", power_test.build(args, folder, release))  # by another session: the board restarts
            expect("install: ok" in said, f"an image was not installed: {said}", node)
            process.kill()
            process.wait()
            node.board = real_board
    expect(line.replayed > 200, f"only {line.replayed} frames were replayed", node)
    return line.replayed


def main():
    with power_test.life() as (args, folder):
        for key in ("a.key", "b.key"):
            (folder / key).write_bytes(os.urandom(16))
            (folder / key).chmod(0o600)
        node = power_test.Node(args, folder, link_key=folder / "a.key")
        power_test.install(args, power_test.build(args, folder, 1), node.flash, folder)
        for _ in range(2):
            said = node.says("--run")
            expect("report: ok, 1 complete" in said and "dropped" not in node.console.read_text(), f"a run failed: {said}", node)
        for board, gateway, reason in MISMATCHES:
            refuses(args, folder, board, gateway, reason)
        replayed = replays(args, folder)
    print(f"with the same key the board runs, also while {replayed} frames are replayed; {len(MISMATCHES)} pairs of other keys do not connect")


if __name__ == "__main__":
    main()
