#!/usr/bin/python3
"""fault.py ELF <CONSOLE: what the lines `fault: ...` of a board's console mean, by the program that it runs."""
import pathlib
import re
import shutil
import subprocess
import sys

# The bits of the reason (Configurable Fault Status Register, Armv7-M Architecture Reference Manual, B3.2.15).
REASONS = {
    0: "an instruction was fetched from memory that is not executable",
    1: "the MPU forbids this access",
    3: "the MPU forbids what an exception took from the stack",
    4: "the stack has reached its guard: there was no room for the registers of an exception",
    5: "the MPU forbids where the registers of the floating-point unit were stored",
    8: "there is no memory where the instruction was fetched",
    9: "there is no memory or device at this address",
    10: "a store that the processor had put off found no memory; it is a little before pc",
    11: "there is no memory where an exception took registers from the stack",
    12: "there is no memory where the stack is",
    13: "there is no memory where the registers of the floating-point unit were stored",
    16: "this is no instruction of this processor: see `processor` in the board's cross.ini",
    17: "a jump to an even address: it must be odd, for Thumb code",
    18: "a return from an exception with a wrong value",
    19: "an instruction of the floating-point unit, which is off or missing",
    24: "an access to an address that is not aligned",
    25: "a division by zero"}


ADDR2LINE = "arm-none-eabi-addr2line"


def refuse(what):
    print(f"fault: {what}", file=sys.stderr)
    sys.exit(2)


def place(elf, address):
    found = subprocess.run([ADDR2LINE, "-f", "-C", "-e", elf, hex(address)], check=True, stdout=subprocess.PIPE, text=True)
    function, line = found.stdout.splitlines()[:2]
    return f"not in the program ({address:#010x})" if function == "??" else function + ("" if line.startswith("?") else f" ({line})")


def main():
    if len(sys.argv) != 2:
        refuse("expected the board's program, espalier-bare.elf, and its console as standard input")
    elf, faults = sys.argv[1], 0
    if not pathlib.Path(elf).is_file() or not pathlib.Path(elf).read_bytes().startswith(b"\x7fELF"):
        refuse(f"'{elf}' is no program; expected the board's espalier-bare.elf")
    if shutil.which(ADDR2LINE) is None:
        refuse(f"there is no program '{ADDR2LINE}'; expected the package binutils-arm-none-eabi")
    for line in sys.stdin:
        number = {name: int(value, 16) for name, value in re.findall(r"(pc|lr|reason|address) (0x[0-9a-f]{8})", line)} \
            if line.startswith("fault:") else {}
        faults += line.startswith("fault:")
        if "pc" in number:
            print(f"stopped in {place(elf, number['pc'])}, called from {place(elf, number['lr'] & ~1)}")
        if "reason" in number:
            for bit, text in REASONS.items():
                if number["reason"] >> bit & 1:
                    print(text + (f": {number['address']:#010x}" if "address" in number else ""))
    if not faults:
        refuse("the console has no line 'fault: ...'")


main()
