#!/usr/bin/python3
"""uninstalled_test.py ROOT BUILD COMPILER...: the pkg-config files of a build folder have the flags that every public C++ header needs, and
the first error of a compiler that is told an older standard than C++20 says so.
"""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
COMPILER = sys.argv[3:]
C_HEADERS = {"espalier/espalier.h", "espalier/espalier_node.h", "espalier/espalier_types.h"}


def public_headers():
    """Returns the public headers in C++, as a program includes them."""
    paths = {str(path.relative_to(ROOT / "include")) for path in (ROOT / "include").rglob("*.h")}
    return sorted(path for path in paths if "/internal/" not in path and path not in C_HEADERS)


class Uninstalled(unittest.TestCase):
    def compile(self, headers, *options):
        flags = subprocess.run(["pkg-config", "--cflags", "espalier"], check=True, text=True, capture_output=True,
                               env={**os.environ, "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")}).stdout.split()
        source = "".join(f'#include "{header}"\n' for header in headers)
        return subprocess.run([*COMPILER, *flags, *options, "-x", "c++", "-"], input=source, capture_output=True, text=True, cwd="/")

    def test_flags(self):
        headers = public_headers()
        self.assertGreater(len(headers), 15)
        done = self.compile(headers, "-std=c++20", "-fsyntax-only")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_older_standards(self):
        for header in public_headers():
            with self.subTest(header):
                done = self.compile([header], "-std=c++17", "-E", "-o", os.devnull)
                self.assertNotEqual(done.returncode, 0)
                first = next(line for line in done.stderr.splitlines() if "error:" in line)
                self.assertRegex(first, r"status\.h:\d+:\d+: error: (#error )?\"Espalier's C\+\+ headers need C\+\+20: compile with -std=c\+\+20")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
