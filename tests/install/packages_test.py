#!/usr/bin/python3
"""packages_test.py ROOT: packages.txt, debian/control and packaging/container/Containerfile name the same packages, and the scripts that make
packages and images refuse bad input with one line and leave nothing. They themselves run by hand: as root, for a quarter of an hour.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
# The Debian packages depend on no launcher: what they build does without this library.
NOT_IN_CONTROL = {"libpmix-dev"}


def listed(*sections):
    """Returns the packages of these sections of packages.txt."""
    names, on = set(), False
    for line in (ROOT / "packages.txt").read_text().splitlines():
        if line.startswith("#"):
            on = line.split()[1] in sections
        elif on:
            names |= set(line.split("#")[0].replace("|", " ").split())
    return names


def control(field):
    """Returns the packages that a field of debian/control names, of all its paragraphs."""
    text = (ROOT / "debian/control").read_text()
    names = set()
    for words in re.findall(rf"^{field}: (.*(?:\n .*)*)", text, re.M):
        names |= {re.split(r"[ :(]", entry.strip())[0] for entry in words.split(",")}
    return names


class Packages(unittest.TestCase):
    def test_control_is_of_the_list(self):
        depends = control("Build-Depends") - {"debhelper-compat"}
        self.assertEqual(depends - listed("build", "package", "boards", "tests") - listed("aarch64"), set(), "debian/control names what packages.txt does not")
        libraries = {name for name in listed("build") if name.startswith(("lib", "coinor", "nlohmann"))}
        self.assertEqual(libraries - depends, NOT_IN_CONTROL, "packages.txt names libraries to build with that debian/control does not")

    def test_containerfile_is_of_the_list(self):
        text = re.sub(r"\\\n", "", (ROOT / "packaging/container/Containerfile").read_text())
        names = set()
        for words in re.findall(r"apt-get -y --no-install-recommends install ([^&\n]*)", text):
            names |= {word for word in words.split() if not word.startswith("/")}
        self.assertGreater(len(names), 2)
        # build-essential has the compiler and make.
        self.assertEqual(names - listed("build", "package") - control("Recommends") - {"build-essential"}, set())
        made = set(re.findall(r"/?(\w+)_\*\.deb", text))
        self.assertLessEqual(made, control("Package"))
        self.assertIn("espalier", made)

    def test_the_last_stage_has_no_compiler(self):
        last = (ROOT / "packaging/container/Containerfile").read_text().rsplit("\nFROM ", 1)[1]
        self.assertNotRegex(last, r"build-dep|build-essential|g\+\+|^COPY|-dev\b")


class BadInput(unittest.TestCase):
    def refuses(self, script, *arguments, words, under=()):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([*under, ROOT / script, *(argument.replace("FOLDER", folder) for argument in arguments)], capture_output=True, text=True,
                                 env={**os.environ, "TMPDIR": folder}, cwd=folder)
            self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), run.stderr)
            self.assertIn(words, run.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_container(self):
        for words, arguments in (("at most one NAME, not 2", ["a", "b"]), ("'Espalier' is no name of an image", ["Espalier"]), ("'' is no name", [""]),
                                 ("'a b' is no name", ["a b"]), ("'--help' is no name", ["--help"]), ("'a/b:c:d' is no name", ["a/b:c:d"]), ("'a-b:c/d:e' is no name", ["a-b:c/d:e"])):
            with self.subTest(arguments):
                self.refuses("packaging/container/build.sh", *arguments, words=words)

    def test_debs(self):
        for words, arguments in (("expected FOLDER", []), ("unknown release '11'; expected 12 or 13", ["FOLDER/a", "11"]),
                                 ("unknown architecture 'armhf'; expected amd64 or arm64", ["FOLDER/a", "13", "armhf"]), ("expected FOLDER", list("abcde")),
                                 ("FOLDER is empty", [""]), ("has unusual characters", ["FOLDER/a b"]), ("expected MIRROR", ["FOLDER/a", "13", "amd64", ""])):
            with self.subTest(arguments):
                self.refuses("tests/install/clean_root.sh", *arguments, words=words)

    @unittest.skipUnless(os.geteuid() == 0, "no root privileges to give up")
    def test_without_root(self):
        # The capability to read: ROOT may be inside /root, which is closed to other users.
        under = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        for script, arguments in (("packaging/container/build.sh", []), ("tests/install/clean_root.sh", ["FOLDER/a"])):
            with self.subTest(script):
                self.refuses(script, *arguments, words="root", under=under)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
