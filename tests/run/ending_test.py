#!/usr/bin/python3
"""A program that uses the library ends by its signals as without it, whatever the libraries behind libfabric do with them.

ending_test.py ESPALIER ENDING [LIBRARY]     LIBRARY: the library for C
"""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

import launchers

ESPALIER, ENDING, *LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:])
SIGNALS = {"abort": signal.SIGABRT, "segv": signal.SIGSEGV, "term": signal.SIGTERM, "int": signal.SIGINT, "bus": signal.SIGBUS, "ill": signal.SIGILL}
# Loads the library while it runs, and ends by a signal. The library replaces no action of the program.
LOADS = """
import ctypes, os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: None)
library = ctypes.CDLL(sys.argv[1])
world = ctypes.c_void_p()
assert library.espalier_join(None, ctypes.byref(world)) == 0
library.espalier_leave(world)
os.kill(os.getpid(), signal.SIGUSR1)
os.kill(os.getpid(), getattr(signal, sys.argv[2]))
"""


def environment(variables):
    """Of a user: nothing keeps the libraries behind libfabric from handling signals, except `variables`."""
    clean = launchers.environment()
    del clean["IPATH_NO_BACKTRACE"]
    return clean | variables


class Ending(unittest.TestCase):
    def end(self, *command, **variables):
        """Returns the status of the command, which prints nothing and leaves no file."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, env=environment(variables), cwd=folder, capture_output=True, text=True,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
            self.assertEqual((done.stdout, os.listdir(folder)), ("", []), command)
            return done.returncode, done.stderr

    def test_by_its_signal(self):
        for name, number in SIGNALS.items():
            for variables in ({}, {"HFI_BACKTRACE": "1"}, {"FI_PROVIDER": "tcp"}):
                with self.subTest(name=name, variables=variables):
                    self.assertEqual(self.end(ENDING, name, **variables), (-number, ""))

    def test_by_its_handler(self):
        for name in SIGNALS:
            with self.subTest(name=name):
                self.assertEqual(self.end(ENDING, name, "handled"), (42, ""))

    def test_under_launch(self):
        for name, number in SIGNALS.items():
            with self.subTest(name=name):
                self.assertEqual(self.end(ESPALIER, "launch", "-n", "2", "--kill-on-failure", ENDING, name)[0], 128 + number)

    def test_ignores_what_the_launcher_ignores(self):
        """A signal that is ignored raises nothing: the program goes on and ends with 0."""
        command = f"trap '' INT TERM; exec {ESPALIER} launch -n 1 {ENDING} term"
        self.assertEqual(self.end("sh", "-c", command), (0, ""))

    def test_of_a_program_that_loads_the_library(self):
        self.assertTrue(LIBRARIES, "no library for C was built")
        for name in ("SIGABRT", "SIGSEGV", "SIGTERM"):
            with self.subTest(name=name):
                status, _ = self.end(sys.executable, "-c", LOADS, LIBRARIES[0], name)
                self.assertEqual(status, -getattr(signal, name))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
