#!/usr/bin/python3
"""fault.py ELF <CONSOLE: what the lines `fault: ...` of a board's console mean, by the program that it runs."""
import pathlib
import re
import shutil
import subprocess
import sys

# Cortex-M: the bits of the reason (Configurable Fault Status Register, Armv7-M Architecture Reference Manual, B3.2.15).
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
# RISC-V: the cause (mcause, The RISC-V Instruction Set Manual, volume II, 3.1.15).
CAUSES = {
    0: "a jump to an address that is not aligned",
    1: "there is no memory where the instruction was fetched, or it is not executable",
    2: "this is no instruction of this processor: see `processor` in the board's cross.ini",
    3: "the instruction ebreak: __builtin_trap(), or a call of a pure virtual function",
    4: "a load from an address that is not aligned",
    5: "a load: there is no memory or device at this address, or it is the guard of the stack",
    6: "a store to an address that is not aligned",
    7: "a store: there is no memory or device at this address, or it is the guard of the stack",
    11: "the instruction ecall"}
# By the number of the processor in an ELF file.
PREFIXES = {40: "arm-none-eabi", 243: "riscv64-unknown-elf"}


def refuse(what):
    print(f"fault: {what}", file=sys.stderr)
    sys.exit(2)


def prefix(elf):
    """Of the names of the programs for the ELF file's processor."""
    start = pathlib.Path(elf).read_bytes()[:20] if pathlib.Path(elf).is_file() else b""
    found = PREFIXES.get(int.from_bytes(start[18:20], "little")) if start.startswith(b"\x7fELF") else None
    if found is None:
        refuse(f"'{elf}' is no program; expected the board's espalier-bare.elf")
    return found


def place(addr2line, elf, address):
    found = subprocess.run([addr2line, "-f", "-C", "-e", elf, hex(address)], check=True, stdout=subprocess.PIPE, text=True)
    function, line = found.stdout.splitlines()[:2]
    return f"not in the program ({address:#010x})" if function == "??" else function + ("" if line.startswith("?") else f" ({line})")


def main():
    if len(sys.argv) != 2:
        refuse("expected the board's program, espalier-bare.elf, and its console as standard input")
    elf, faults = sys.argv[1], 0
    addr2line = prefix(elf) + "-addr2line"
    if shutil.which(addr2line) is None:
        refuse(f"there is no program '{addr2line}'; expected the package binutils-{prefix(elf)}")
    sys.stdin.reconfigure(errors="replace")  # a console may have any bytes, also in front of a fault
    for line in sys.stdin:
        _, is_fault, rest = line.partition("fault:")
        number = {name: int(value, 16) for name, value in re.findall(r"(pc|lr|ra|reason|cause|address) (0x[0-9a-f]{8})", rest)}
        faults += is_fault != ""
        where = f": {number['address']:#010x}" if "address" in number else ""
        if "pc" in number:
            caller = number.get("lr", number.get("ra", 0)) & ~1
            print(f"stopped in {place(addr2line, elf, number['pc'])}, called from {place(addr2line, elf, caller)}")
        if "reason" in number:
            for bit, text in REASONS.items():
                if number["reason"] >> bit & 1:
                    print(text + where)
        if "cause" in number:
            print(CAUSES.get(number["cause"], f"cause {number['cause']}") + where)
    if not faults:
        refuse("the console has no line 'fault: ...'")


main()
