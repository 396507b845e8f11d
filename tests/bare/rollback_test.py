#!/usr/bin/python3
"""rollback_test.py --espalier PROGRAM --session PROGRAM (--hosted PROGRAM | --elf FILE): someone who can write a node's flash writes an
older signed image with its marks, and erases the counter there. Without one-time bits the node boots it (docs/images.md says so). With
them it refuses it, and names the counter and both values."""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import power_test  # noqa: E402
from power_test import expect  # noqa: E402

BLOCK = 4096  # of the flash; its first two are the counter's


def attack(args, folder, otp):
    """Updates a node from release and counter 1 to 2, then rolls its flash back. Returns the node and what its next boot says."""
    node = power_test.Node(args, folder, otp)
    node.flash.unlink(missing_ok=True)
    power_test.install(args, power_test.build(args, folder, 1), node.flash, folder)
    old = bytearray(node.flash.read_bytes())
    old[:2 * BLOCK] = b"\xff" * (2 * BLOCK)
    node.says("--install", power_test.build(args, folder, 2))
    expect(power_test.booted(node.says("--run")) == (2, True), "the update did not boot", node)
    expect(power_test.booted(node.says()) == (2, False), "the update is not confirmed", node)
    node.flash.write_bytes(old)
    return node, node.says()


def main():
    with power_test.life() as (args, folder):
        node, said = attack(args, folder, None)
        expect(power_test.booted(said) == (1, False), "the older image does not boot, though its counter is in flash", node)
        otp = folder / "otp"
        otp.write_bytes(bytes(4))
        node, said = attack(args, folder, otp)
        expect("boot nothing to boot" in said, f"the older image boots: {said}", node)
        reason = "rolled back (status 22): its security counter 1 is below 2, the board's own counter"
        expect(reason in node.console.read_text(), f"expected '{reason}' in", node)
        expect(otp.read_bytes() == bytes([3, 0, 0, 0]), f"expected bits 0 and 1, set are {otp.read_bytes()}", node)
        # The board is not lost: an image of the newest counter boots.
        node.says("--install", power_test.build(args, folder, 2))
        expect(power_test.booted(node.says("--run"))[0] == 2, "the newest image does not boot any more", node)
        # Bits that cannot be read are not bits that are not set.
        otp.write_bytes(b"")
        if args.elf:
            expect("boot nothing to boot" in node.says(), "an image boots without the bits", node)
    print("an older image with its marks and an erased counter boots without one-time bits, and is refused with them")


if __name__ == "__main__":
    main()
