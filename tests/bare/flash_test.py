#!/usr/bin/python3
"""flash_test.py BUILD BOARD [COMMAND...]: firmware/bare/flash.py, which `meson compile flash` calls, puts the program of a bare-metal BUILD
into an emulated board without a program, through the emulator's GDB port, and the board then boots. Its refusals, with COMMAND as the
board's own. (Meson itself may be building there at this time, so the test does not call it.)"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import emulator  # noqa: E402

BUILD, BOARD, *COMMAND = sys.argv[1:]
PROGRAM = str(pathlib.Path(BUILD) / "firmware/bare/espalier-bare")
FLASH = pathlib.Path(__file__).resolve().parents[2] / "firmware/bare/flash.py"


def flash(command=COMMAND, **environment):
    keep = {name: value for name, value in os.environ.items() if name != "ESPALIER_GDB"}
    return subprocess.run([FLASH, BOARD, PROGRAM + ".elf", PROGRAM + ".bin", PROGRAM + ".hex", *command], env={**keep, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Flash(unittest.TestCase):
    def test_by_a_gdb_server(self):
        with tempfile.TemporaryDirectory() as folder:
            server, console = pathlib.Path(folder) / "gdb", pathlib.Path(folder) / "console"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(console))
                listener.listen()
                board = subprocess.Popen([*emulator.words(PROGRAM + ".elf", BOARD, empty=True), "-S", "-serial", f"unix:{console}",
                                          "-chardev", f"socket,id=gdb,path={server},server=on,wait=off", "-gdb", "chardev:gdb"],
                                         stdin=subprocess.DEVNULL)
                try:
                    uart, _ = listener.accept()
                    with uart:
                        done = flash(ESPALIER_GDB=str(server))
                        self.assertEqual(done.returncode, 0, done.stdout)
                        said = b""
                        while b"boot:" not in said:
                            got = uart.recv(4096)
                            self.assertTrue(got, said)
                            said += got
                finally:
                    board.kill()
                    board.wait()

    def test_refusals(self):
        done = flash(ESPALIER_GDB="/nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("flash: gdb-multiarch ended with status 1; expected a GDB server at /nowhere whose target is halted", done.stdout)
        done = flash()  # the tools of a probe are not installed for tests
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout, r"flash: (there is no program 'pyocd'; expected the package python3-pyocd|"
                                      r"boards/(mps2-an385|virt-rv32)/meson.build has no command for its flash \(board_flash\))")
        for word in ("{elv}", "{", "{0}", "{elf.x"):
            done = flash(["echo", word])
            self.assertEqual((done.returncode, done.stdout.count("\n")), (2, 1), done.stdout)
            self.assertIn(f"flash: boards/{BOARD}/meson.build: board_flash:", done.stdout)
        self.assertIn("espalier-bare.elf {x}", flash(["echo", "{elf} {{x}}"]).stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
