#!/usr/bin/python3
"""abi_test.py ABI_PY [LIBRARY ...]: the version script that ABI_PY prints hides all that is not listed, and ABI_PY finds each kind of
difference between list, library and header. The static libraries, all of each, can be part of such a shared library."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ABI, LIBRARIES = sys.argv[1], sys.argv[2:]
SYMBOLS = "libtry.so.0 libtry0 #MINVER#\n ESPALIER_0@ESPALIER_0 0.1.0\n espalier_one@ESPALIER_0 0.1.0\n espalier_two@ESPALIER_0 0.1.0\n"
HEADER = "// espalier_three(int);\ntypedef int (*espalier_function)(int);\nint espalier_one(int);\n\nconst char* espalier_two(void);\n"
SOURCE = "int espalier_one(int a) { return a; }\nconst char* espalier_two(void) { return \"\"; }\nint espalier_inner(void) { return 1; }\n"


class AbiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def abi(self, *arguments):
        run = subprocess.run([ABI, *arguments], capture_output=True, text=True)
        return run.returncode, run.stdout, run.stderr

    def check(self, symbols=SYMBOLS, header=HEADER, source=SOURCE, hides=True, more=()):
        status, script, _ = self.abi("script", self.write("symbols.good", SYMBOLS if hides is True else hides))
        self.assertEqual(status, 0)
        library = str(self.folder / "libtry.so.0")
        subprocess.run(["c++", "-shared", "-fPIC", "-o", library, "-x", "c", self.write("try.c", source), "-x", "none",
                        "-Wl,--version-script=" + self.write("script", script), "-Wl,-z,text", *more], check=True)
        return self.abi("check", self.write("symbols", symbols), library, self.write("try.h", header))

    def test_equal(self):
        status, out, _ = self.check()
        self.assertEqual((status, out), (0, "2 symbols\n"))

    def test_differences(self):
        all_three = SYMBOLS + " espalier_inner@ESPALIER_0 0.1.0\n"
        for words, arguments in (("espalier_inner@ESPALIER_0 is exported and not listed", {"hides": all_three}),
                                 ("espalier_inner@ESPALIER_0 is listed and not exported", {"symbols": all_three}),
                                 ("espalier_inner is listed and not declared", {"symbols": all_three}),
                                 ("espalier_three is declared and not listed", {"header": HEADER + "int espalier_three(\n  int a);\n"}),
                                 ("espalier_one@ESPALIER_0 is listed and not exported", {"source": SOURCE.replace("espalier_one", "other")})):
            with self.subTest(words):
                status, out, _ = self.check(**arguments)
                self.assertEqual(status, 1)
                self.assertIn(words, out)

    def test_a_later_node_builds_on_the_first(self):
        status, out, _ = self.abi("script", self.write("symbols", SYMBOLS + " espalier_new@ESPALIER_1 0.2.0\n"))
        self.assertEqual(status, 0)
        self.assertIn("espalier_new;\n} ESPALIER_0;", out)
        self.assertEqual(out.count("local: *"), 1)

    def test_refuses(self):
        for words, arguments in (("expected script SYMBOLS", []), ("cannot read", ["script", str(self.folder / "none")]),
                                 (":2: expected ' NAME@", ["script", self.write("a", "lib\nname\n")]),
                                 (":3: espalier_one is listed twice", ["script", self.write("b", "lib\n" + 2 * " espalier_one@E_0 1\n")])):
            with self.subTest(words):
                status, out, err = self.abi(*arguments)
                self.assertEqual((status, out, err.count("\n")), (2, "", 1))
                self.assertIn(words, err)

    @unittest.skipUnless(LIBRARIES, "no static libraries were given")
    def test_static_libraries_can_be_part_of_it(self):
        more = ["-Wl,--whole-archive", *LIBRARIES, "-Wl,--no-whole-archive", "-lprotobuf", "-lprotobuf-nanopb", "-lfabric", "-lsodium",
                "-Wl,--no-undefined"]
        status, out, _ = self.check(more=more)
        self.assertEqual((status, out), (0, "2 symbols\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
