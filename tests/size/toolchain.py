"""Runs the bare-metal compiler and reads its output. Python's standard library only."""
import functools
import os
import re
import subprocess

PREFIX = "arm-none-eabi-"  # firmware.Build sets that of its compiler


def run(command):
    # A compiler cache would not bring the call graphs back.
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, "CCACHE_DISABLE": "1"})
    if done.returncode != 0:
        raise SystemExit(f"size: {' '.join(str(word) for word in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


# The budgets and the pages are of what this major version of GCC makes. What another makes may take a tenth more, or 16 bytes, and has no rows of
# its own: GCC 14 makes 2 % more of the whole firmware of mps2-an386.
BUDGET_COMPILER = "12"


@functools.cache
def is_budget_compiler():
    return run([PREFIX + "gcc", "-dumpversion"]).split(".")[0] == BUDGET_COMPILER


def allowed(budget):
    """The most that this compiler's code may take by a budget."""
    return budget if budget <= 0 or is_budget_compiler() else max(budget * 11 // 10, budget + 16)


@functools.cache  # of objects, asked again for each program that they are linked into
def symbols(file):
    """[(name, type letter, size, address)] of a file or an archive's members, which does not change any more."""
    found = []
    for line in run([PREFIX + "nm", "-P", file]).splitlines():
        parts = line.split()
        if len(parts) >= 2 and not line.endswith(":"):
            address, size = (int(parts[i], 16) if len(parts) > i else 0 for i in (2, 3))
            found.append((parts[0], parts[1], size, address))
    return found


def defined_in(files):
    """Names of global symbols that these objects or archives define."""
    return {name for item in files for name, kind, _, _ in symbols(item) if kind.isupper() and kind != "U"}


def sections(elf):
    """Section name -> bytes."""
    found = {}
    for line in run([PREFIX + "size", "-A", elf]).splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[0].startswith("."):
            found[parts[0]] = int(parts[1])
    return found


def addresses_taken(objects):
    """Names of functions whose address is used in data or in code as a value, not in a call."""
    return set().union(*map(addresses_taken_in, objects))


# Relocations that take an address.
ADDRESSES = {"R_ARM_ABS32", "R_ARM_THM_MOVW_ABS_NC", "R_RISCV_32", "R_RISCV_HI20", "R_RISCV_PCREL_HI20"}


@functools.cache
def addresses_taken_in(item):
    names, inside = set(), None
    for line in run([PREFIX + "readelf", "-rW", item]).splitlines():
        head = re.match(r"^Relocation section '\.rela?(\.\S+)'", line)
        if head:
            section = head.group(1)
        parts = line.split()
        if len(parts) < 5 or parts[2] not in ADDRESSES:
            continue
        if parts[4] == section:
            # GCC 14's tables of jumps in code for Arm have addresses inside of their own function.
            inside = jump_targets(item) if inside is None else inside
            if (section, int(parts[0], 16)) in inside:
                continue
        names.add(re.sub(r"^\.text\.", "", parts[4]))
    return names


def jump_targets(item):
    """{(section, offset)} of words in code that have an address behind the beginning of a section. With -ffunction-sections it is inside of
    the section's function. Bit 0 of an address means Thumb."""
    found, section, word = set(), None, 0
    for line in run([PREFIX + "objdump", "-dr", item]).splitlines():
        head = re.match(r"^Disassembly of section (\S+):$", line)
        data = re.match(r"^\s+[0-9a-f]+:\s.*\.word\s+0x([0-9a-f]+)", line)
        relocation = re.match(r"^\s+([0-9a-f]+): R_ARM_ABS32\s", line)
        if head:
            section = head.group(1)
        elif relocation:
            if word & ~1:
                found.add((section, int(relocation.group(1), 16)))
        else:
            word = int(data.group(1), 16) if data else 0
    return found


def disassembly_frames(elf, wanted):
    """Functions without a call graph of their own (functions of libgcc): name -> (upper bound of its frame in bytes, callees)."""
    frames = {}
    name = None
    for line in run([PREFIX + "objdump", "-d", "--no-show-raw-insn", elf]).splitlines():
        head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
        if head:
            name = head.group(1) if head.group(1) in wanted else None
            if name:
                frames.setdefault(name, [0, set()])
            continue
        code = re.match(r"^\s+[0-9a-f]+:\s+(\S+)\s*(.*)$", line)
        if not name or not code:
            continue
        frames[name][0] += pushed_bytes(code.group(1), code.group(2))
        callee = re.search(r"\b[0-9a-f]+ <([^+>]+)>", code.group(2))
        if code.group(1).startswith(("b", "j")) and callee and callee.group(1) != name:
            frames[name][1].add(callee.group(1))
    return frames


def pushed_bytes(operation, operands):
    """Bytes by which one instruction can lower the stack pointer."""
    operation = operation.split(".")[0]
    if operation == "push" or operation.startswith("stmdb") and operands.startswith("sp!"):
        registers = operands[operands.index("{") + 1:operands.index("}")]
        total = 0
        for part in registers.split(","):
            ends = part.strip().split("-")
            total += 4 * (REGISTERS.index(ends[-1]) - REGISTERS.index(ends[0]) + 1)
        return total
    if operation == "vpush":
        kind, numbers = operands.strip("{}")[0], [int(number) for number in re.findall(r"[sd](\d+)", operands)]
        return (8 if kind == "d" else 4) * (numbers[-1] - numbers[0] + 1)
    step = re.match(r"^(?:sp, )?(?:sp, )?#(\d+)", operands)
    if operation == "sub" and operands.startswith("sp") and step:
        return int(step.group(1))
    riscv = re.match(r"^sp,sp,-(\d+)$", operands)
    if riscv:
        return int(riscv.group(1))
    before = re.search(r"\[sp, #-(\d+)\]!", operands)
    return int(before.group(1)) if before else 0


REGISTERS = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "sl", "fp", "ip", "sp", "lr", "pc"]
