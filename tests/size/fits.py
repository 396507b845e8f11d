#!/usr/bin/python3
"""What fits into a board's memory: how large the blocks of its collectives can be, by links, window and programs.

fits.py BUILD ELF [--page FILE]     BUILD: a build directory of the board      --page: writes docs/results/fits.md

Without --page it compares the page with what it computes, if the compiler is that of the page (toolchain.BUDGET_COMPILER). The sizes are those
of the compiler, the stack that of the call graph.
"""
import argparse
import pathlib
import sys
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import firmware  # noqa: E402
import footprint_test  # noqa: E402
import toolchain  # noqa: E402

HERE = pathlib.Path(__file__).parent
PAGE = """# What fits into 16 KiB

Written by `tests/size/fits.py build-m0 build-m0/firmware/bare/espalier-bare.elf --page docs/results/fits.md`, and compared by the test `fits`
there. The board is [microbit](../../boards/microbit/README.md).

"""
# Links, window, programs.
SHAPES = [(1, 1, 1), (1, 2, 3), (2, 2, 3), (3, 2, 3), (3, 2, 5), (3, 4, 3), (4, 2, 3), (8, 2, 1)]
SIZES = {"server": ("firmware/bare/server.h", "espalier::bare::Server"), "link": ("espalier/internal/hal/serial/serial_link.h", "espalier::SerialLink"),
         "program": ("espalier/collectives/schedule/program.h", "espalier::DecodedProgram"),
         "event": ("espalier/internal/collectives/machine/event_log.h", "espalier::Event")}


def sizes(build, number, links, window, programs):
    """The bytes of each of SIZES on a board with these limits."""
    source = build.work / f"fits_{number}.cc"
    source.write_text("".join(f'#include "{header}"\n' for header, _ in SIZES.values()) + "".join(
        f"extern char size_{name}[sizeof({of})];\nchar size_{name}[sizeof({of})];\n" for name, (_, of) in SIZES.items()))
    like = next(item for item, entry in build.commands.items() if entry["file"].endswith("firmware/bare/node.cc"))
    limits = [f"-{flag}ESPALIER_MAX_{name}{value}" for name, number_of in (("LINKS", links), ("WINDOW", window), ("PROGRAMS", programs))
              for flag, value in (("U", ""), ("D", f"={number_of}"))]
    item = build.compile(like, build.work / f"fits_{number}.o", source, limits)
    found = {symbol: size for symbol, _, size, _ in toolchain.symbols(item)}
    return {name: found[f"size_{name}"] for name in SIZES}


def lines_of(build, budgets):
    measured = footprint_test.Measured(build, budgets, build.work / "fits.elf")
    text = pathlib.Path(f"{build.work / 'fits.elf'}.map").read_text()
    given = next(int(line.split()[0], 16) for line in text.splitlines() if line.strip().endswith("ram_given = LENGTH (ram)"))
    used = measured.sections[".bss"]
    limits = [build.limit(name) for name in ("LINKS", "WINDOW", "PROGRAMS")]
    own = sizes(build, "own", *limits)

    def taken(of, links, programs):
        return of["server"] + (links + 1) * of["link"] + programs * of["program"] + 4 * links

    rooms = sum(size for name, size in measured.buffers.items() if name.endswith("_room"))
    rest = used - taken(own, limits[0], limits[2]) - rooms
    stack, signature = measured.stacks["all"]["bytes"], measured.stacks["signature"]["bytes"]
    lines = [f"The board has {given} bytes. The stack takes {stack}, and at most {signature} more while a signature is checked. Frames, slots, devices and",
             f"the rest of the node take {rest}. What is left is for input, output and scratch of a collective, a third each, and a log of 32 records.",
             "A block of a collective in flight is at most as long as they are.", "",
             "| links | window | programs | bytes without the rooms | a room, signed | a room, unsigned |", "| ---: | ---: | ---: | ---: | ---: | ---: |"]
    for number, (links, window, programs) in enumerate(SHAPES):
        of = sizes(build, number, links, window, programs)
        fixed = rest + taken(of, links, programs)
        free = [given - fixed - 32 * of["event"] - stack - more for more in (signature, 0)]
        lines.append(f"| {links} | {window} | {programs} | {fixed} | " + " | ".join(
            f"{value // 3 // 16 * 16}" if value >= 48 else "does not fit" for value in free) + " |")
    spare = given - used - stack - signature
    lines += ["", f"As it is built ({limits[0]} links, window {limits[1]}, {limits[2]} programs, rooms of {measured.buffers['input_room']} bytes), the board has "
              f"{spare} bytes left at the deepest point of the stack."]
    complaints = measured.complaints + ([f"fits: variables and stack exceed the memory by {-spare} bytes"] if spare < 0 else [])
    return lines, complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("elf", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    args = parser.parse_args()
    build = firmware.Build(args.build.resolve(), args.elf, args.build.resolve() / "tests/size/fits")
    lines, complaints = lines_of(build, tomllib.loads((HERE / "budgets.toml").read_text()))
    text = PAGE + "\n".join(lines) + "\n"
    page = HERE.parent.parent / "docs/results/fits.md"
    print("\n".join(lines))
    if args.page:
        args.page.write_text(text)
    elif page.read_text() != text and toolchain.is_budget_compiler():
        complaints.append("fits: docs/results/fits.md is not what this prints; write it again with --page")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
