#!/usr/bin/python3
"""flash.py BOARD ELF BIN HEX [COMMAND...]: puts the program of a bare-metal board into its flash and starts it. `meson compile flash`
calls it.

COMMAND is the board's (boards/BOARD/meson.build); {elf}, {bin} and {hex} stand for the files. With ESPALIER_GDB=SERVER in the
environment it is a GDB server that writes: that of a probe (openocd, pyocd gdbserver, probe-rs gdb) or of an emulator, as HOST:PORT or as
the path of a socket."""
import os
import shutil
import subprocess
import sys
import tempfile

PACKAGES = {"gdb-multiarch": "gdb-multiarch", "openocd": "openocd", "pyocd": "python3-pyocd"}


def refuse(what):
    print(f"flash: {what}", file=sys.stderr)
    sys.exit(2)


def call(command):
    if shutil.which(command[0]) is None:
        package = PACKAGES.get(command[0])
        refuse(f"there is no program '{command[0]}'" + (f"; expected the package {package}" if package else ""))
    print("flash:", " ".join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
    return done


def by_gdb(server, elf):
    # The program starts as after a reset: at its entry, which load sets, on a Cortex-M with the stack of the first vector. The first error ends
    # the steps.
    cortex_m = int.from_bytes(open(elf, "rb").read(20)[18:], "little") == 40  # the number of the processor in an ELF file
    steps = ("set confirm off", f"target extended-remote {server}", "load", "compare-sections",
             *(["set $sp = *(unsigned int *)&vectors"] if cortex_m else []), "detach")
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write("\n".join(steps) + "\n")
        script.flush()
        done = call(["gdb-multiarch", "-nx", "-batch", "-x", script.name, elf])
    if done.returncode:
        refuse(f"gdb-multiarch ended with status {done.returncode}; expected a GDB server at {server} whose target is halted")
    if "MIS-MATCHED" in done.stdout or "matched." not in done.stdout:
        refuse(f"the flash behind {server} does not hold the program")


def main():
    board, elf, binary, hexadecimal, *command = sys.argv[1:]
    server = os.environ.get("ESPALIER_GDB")
    if server:
        return by_gdb(server, elf)
    if not command:
        refuse(f"boards/{board}/meson.build has no command for its flash (board_flash); expected ESPALIER_GDB=HOST:PORT, "
               f"or copy {binary} to the board")
    try:
        words = [word.format(elf=elf, bin=binary, hex=hexadecimal) for word in command]
    except (AttributeError, LookupError, ValueError) as error:
        refuse(f"boards/{board}/meson.build: board_flash: {error}; expected {{elf}}, {{bin}} or {{hex}} in braces, and {{{{ for a brace")
    done = call(words)
    if done.returncode:
        refuse(f"'{command[0]}' ended with status {done.returncode}")


main()
