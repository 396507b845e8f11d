"""Makes flash whose newest image no node may boot; the other slot holds a good image."""
import pathlib
import re
import struct

import rig as rigs

# The layout by whole_flash() (firmware/boot/slots.cc): two blocks of counters, then two slots of equal size.
COUNTER_BLOCKS = 2
LENGTH_AT = 16  # in an image's header (docs/images.md)


def second_slot(flash):
    """Returns (offset of slot 1, offset of its last block, which has its marks) for a board's flash entry."""
    blocks = (flash.bytes // flash.block_bytes - COUNTER_BLOCKS) // 2
    begin = (COUNTER_BLOCKS + blocks) * flash.block_bytes
    return begin, begin + (blocks - 1) * flash.block_bytes


def damage(name, content, image_bytes, flash):
    """Damages the bytes of slot 1 after the installation, as the refusal `name` says."""
    begin, marks = second_slot(flash)
    if name == "corrupted":
        content[begin + image_bytes - 1] ^= 1
    elif name == "truncated":  # its header claims more bytes than its slot has
        content[begin + LENGTH_AT:begin + LENGTH_AT + 4] = struct.pack("<I", marks - begin + 1)
    elif name == "unfinished":
        content[marks:marks + flash.block_bytes] = b"\xff" * flash.block_bytes


def other_board(plan, folder, board):
    """Describes a board that differs from this one only in its name; returns its path."""
    text = (plan.path(board) / "board.textproto").read_text()
    other = folder / "other-board"
    other.mkdir(exist_ok=True)
    (other / "board.textproto").write_text(re.sub(r'^name: *".*"', 'name: "other-board"', text, flags=re.M))
    return other


def make(plan, case, call):
    """Writes the flash of the refused ranks. call: runs a command's words; raises on failure."""
    for rank in case.refused[0]:
        make_one(plan, case, rank, call)


def make_one(plan, case, rank, call):
    name = case.refused[1]
    board = case.seats[rank].device.board
    target = plan.flash(case, rank)
    folder = case.folder
    node = (rank + 1) % len(case.seats) if name == "wrong-node" else rank
    described = other_board(plan, folder, board) if name == "wrong-board" else board
    key = {"unsigned": "", "bad-signature": plan.foreign_key}.get(name)
    counter = 0 if name == "rolled-back" else 1
    there, second = folder / "other.flash", folder / "second.img"
    tests = plan.image_tests(case.test)
    for release, confirmed in (("1.0.0", True), ("2.0.0", False)):
        call(plan.build_image(described, node, second, tests, release, counter, key))
        call(plan.install(described, node, second, there, confirmed, key))
    flash = rigs.read(pathlib.Path(plan.path(board)) / "board.textproto", "board.BoardFile").flash
    begin, _ = second_slot(flash)
    content = bytearray(target.read_bytes()[:begin] + there.read_bytes()[begin:])
    damage(name, content, second.stat().st_size, flash)
    target.write_bytes(content)
    there.unlink()
