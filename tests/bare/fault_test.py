#!/usr/bin/python3
"""fault_test.py MACHINE INSTRUCTION ADDRESS: boards/fault.py explains why two programs (tests/bare/fault.cc) stopped: one with an
undefined instruction, and one that reads where there is no memory."""
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import emulator  # noqa: E402

FAULT = pathlib.Path(__file__).resolve().parents[2] / "boards/fault.py"
MACHINE, INSTRUCTION, ADDRESS = sys.argv[1:4]


def explained(program):
    """The exit status and console of a board with the program, and the lines of fault.py."""
    board = subprocess.run([*emulator.words(program, MACHINE), "-serial", "stdio"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    print(board.stdout)
    done = subprocess.run([FAULT, program], input=board.stdout, stdout=subprocess.PIPE, text=True, check=True)
    return board.returncode, board.stdout, done.stdout.splitlines()


class Fault(unittest.TestCase):
    def test_undefined_instruction(self):
        status, _, lines = explained(INSTRUCTION)
        self.assertEqual(status, 3)
        self.assertRegex(lines[0], r"^stopped in .*go_wrong.*, called from .*main")
        self.assertIn("this is no instruction of this processor: see `processor` in the board's cross.ini", lines[1:])

    def test_no_memory(self):
        status, _, lines = explained(ADDRESS)
        self.assertEqual(status, 3)
        self.assertRegex(lines[0], r"^stopped in .*go_wrong")
        self.assertRegex(lines[1], "there is no memory or device at this address.*: 0xb0000000$")

    def test_the_page(self):
        page = (FAULT.parents[1] / "docs/boards.md").read_text()
        without_places = re.compile("pc 0x[0-9a-f]{8}, (lr|ra) 0x[0-9a-f]{8}")
        _, console, lines = explained(ADDRESS)
        for line in [without_places.sub(r"PLACES, \1", line) for line in console.splitlines()] + lines[1:]:
            self.assertIn("    " + line + "\n", without_places.sub(r"PLACES, \1", page))

    def test_a_console_without_a_fault(self):
        done = subprocess.run([FAULT, INSTRUCTION], input="boot: slot 0\n", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", "fault: the console has no line 'fault: ...'\n"))

    def test_a_console_with_noise(self):
        console = b"\xff\xfe\x80~fault: the processor stopped\r\n\xc0fault: pc 0x00000000, lr 0x00000001\r\n"
        done = subprocess.run([FAULT, INSTRUCTION], input=console, capture_output=True)
        self.assertEqual((done.returncode, done.stdout[:11], done.stderr), (0, b"stopped in ", b""))

    def test_bad_input(self):
        for words, says in (((), "expected the board's program"), ((FAULT,), "is no program; expected the board's espalier-bare.elf"),
                            (("/nowhere",), "'/nowhere' is no program")):
            done = subprocess.run([FAULT, *words], input="", capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
