#!/usr/bin/python3
"""Derives the compiler's macros and nanopb's options from a board's description.

limits.py macros BOARD_FILE PROTO_FOLDER     prints the -D options for espalier/internal/base/limits.h and the board's own sources, one per line
limits.py options BOARD_FILE PROTO_FOLDER    prints nanopb's options of schedule.proto: schedule.options, then the board's own
limits.py flash BOARD_FILE PROTO_FOLDER      prints the flash's bytes, block_bytes and unit_bytes, separated by commas

`meson setup -Dboard=NAME` runs it, so that a board's firmware has room for everything that `espalier image build` accepts for its
images. It needs protoc and python3-protobuf, which nanopb's generator needs too.
"""
import pathlib
import re
import subprocess
import sys

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
except ImportError as error:
    print(f"limits.py: {error}; expected python3-protobuf, which ./setup.sh installs", file=sys.stderr)
    sys.exit(2)

# The macros of firmware/bare/node.cc: the field of board.proto, its macro, minimum and maximum.
SIZES = {"max_mtu": ("MAX_MTU", 96, 65535), "room_bytes": ("ROOM_BYTES", 64, 1 << 30), "room_events": ("ROOM_EVENTS", 1, 1 << 24)}
# The macros of include/espalier/internal/base/limits.h: the field of board.proto and its maximum.
MACROS = {"links": 128, "window": 64, "programs": 16, "selections": 4, "cursors": 1024}
NONE_ALLOWED = ("selections",)  # may be 0
# The configurations of include/espalier/internal/base/limits.h that boards without an operating system have, by their features; the host's
# is 1. A board names one by the features that its limits say.
FEATURES = ("rotated_scratch", "serial_mac", "spares", "updates")
CONFIGURATIONS = {"small": (2, ()), "rotated": (3, ("rotated_scratch",)), "keyed": (4, ("serial_mac",)), "spares": (5, ("spares",)),
                  "full": (6, FEATURES)}
# firmware/boot/flash.h and file_flash.cc
MAX_UNIT, MIN_BLOCKS = 64, 6


def fail(line):
    print(line, file=sys.stderr)
    sys.exit(2)


def read_board(board_file, proto_folder):
    """Returns the message of a board.textproto."""
    descriptors = subprocess.run(["protoc", f"--proto_path={proto_folder}", "--descriptor_set_out=/dev/stdout", "board.proto"],
                                 capture_output=True, check=True).stdout
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    message = message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("espalier.board.BoardFile"))
    try:
        return text_format.Parse(board_file.read_text(), message())
    except OSError as error:
        fail(f"{board_file}: {error.strerror}; expected a board's description, see docs/boards.md")
    except (text_format.ParseError, UnicodeDecodeError) as error:
        fail(f"{board_file}: {error}; docs/boards.md describes these files")


def macros(board, given):
    """Yields (name, value) of each macro; the name without ESPALIER_."""
    yield from ((f"MAX_{name.upper()}", given[name]) for name in MACROS if name in given)
    yield from ((macro, given[name]) for name, (macro, _, _) in SIZES.items() if name in given)
    if board.fabric.kind != board.fabric.OFI:
        yield "CONFIGURATION", configuration({"rotated_scratch": True, **given})
    yield "BOARD_NAME", f'"{board.name}"'
    yield "SIGNED", int(board.signature == board.ED25519)
    if board.HasField("flash"):
        for field, value in board.flash.ListFields():
            yield f"FLASH_{field.name.upper()}", value
    if board.fabric.carrier:
        yield f"CARRIER_{re.sub('[^A-Z0-9]', '_', board.fabric.carrier.upper())}", 1


def configuration(given):
    """Returns the number of the configuration with these features."""
    wanted = tuple(name for name in FEATURES if given.get(name))
    for number, features in CONFIGURATIONS.values():
        if features == wanted:
            return number
    known = "; ".join(f"{name}: {', '.join(features) or 'none'}" for name, (_, features) in CONFIGURATIONS.items())
    fail(f"limits: no configuration has the features {', '.join(wanted)}; expected those of one of these: {known}")


def is_flash_shape(flash):
    """As in firmware/boot/file_flash.cc."""
    unit, block = flash.unit_bytes, flash.block_bytes
    return 1 <= unit <= MAX_UNIT and block != 0 and block % unit == 0 and flash.bytes % block == 0 and flash.bytes // block >= MIN_BLOCKS


def capacities(options):
    """Returns the number of rows of each table of a program, from schedule.options."""
    return {name: int(rows) for name, rows in re.findall(r"^espalier\.Program\.(\w+) max_count:(\d+)$", options, re.M)}


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("macros", "options", "flash"):
        fail("limits.py: wrong arguments; expected macros, options or flash, a board.textproto and the folder of board.proto")
    board_file, proto_folder = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    board = read_board(board_file, proto_folder)
    limits = board.limits
    options = (proto_folder / "schedule.options").read_text()
    rows = capacities(options)
    given = {field.name: value for field, value in limits.ListFields()}
    for name, maximum in {**MACROS, **rows}.items():
        least = 0 if name in NONE_ALLOWED else 1
        if name in given and not least <= given[name] <= maximum:
            fail(f"{board_file}: limits: {name} is {given[name]}; expected {least} to {maximum}")
    for name, (_, least, most) in SIZES.items():
        if name in given and not least <= given[name] <= most:
            fail(f"{board_file}: limits: {name} is {given[name]}; expected {least} to {most}")
    if board.HasField("flash") and not is_flash_shape(board.flash):
        fail(f"{board_file}: flash: expected unit_bytes of 1 to {MAX_UNIT}, block_bytes a multiple of them, and bytes for at least "
             f"{MIN_BLOCKS} whole blocks")
    if sys.argv[1] == "flash":
        if not board.HasField("flash"):
            fail(f"{board_file}: no flash; expected flash {{ bytes: ... block_bytes: ... unit_bytes: ... }}")
        print(f"{board.flash.bytes},{board.flash.block_bytes},{board.flash.unit_bytes}")
        return
    if board.name != board_file.parent.name:
        fail(f"{board_file}: name is '{board.name}'; expected '{board_file.parent.name}', the name of its folder")
    if sys.argv[1] == "macros":
        for name, value in macros(board, given):
            print(f"-DESPALIER_{name}={value}")
        return
    print(options, end="")
    if limits.narrow:
        print((proto_folder / "narrow.options").read_text(), end="")
    for name in rows:
        if name in given:
            print(f"espalier.Program.{name} max_count:{given[name]}")


if __name__ == "__main__":
    main()
