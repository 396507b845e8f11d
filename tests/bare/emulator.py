"""The emulator of a bare-metal board's program."""
import pathlib

RISCV = 243  # the number of the processor in an ELF file


def words(elf, machine, *arguments, empty=False):
    """The command. machine: of qemu-system-arm, for a program with semihosting, which gets the arguments. RISC-V programs end the
    emulator by a device of the machine. empty: without the program, which another one then loads."""
    quiet = ["-display", "none", "-monitor", "none"]
    if int.from_bytes(pathlib.Path(elf).read_bytes()[18:20], "little") == RISCV:
        return ["qemu-system-riscv32", "-M", "virt", *quiet, "-bios", "none" if empty else str(elf)]
    semihosting = ",".join(["enable=on,target=native", *(f"arg={word}" for word in arguments)])
    return ["qemu-system-arm", "-M", machine, *quiet, "-semihosting-config", semihosting, *([] if empty else ["-kernel", str(elf)])]
