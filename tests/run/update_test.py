#!/usr/bin/python3
"""espalier update on real processes with flash files. A new release goes to all nodes; updates that are refused change nothing; nodes of
two releases run nothing together. tests/hil/updates_test.py kills nodes meanwhile."""
import pathlib
import re
import shutil
import tempfile
import unittest

import espalier

BOARD = espalier.ROOT / "boards/linux-x86_64"
NODES = 4
OLD, NEW = "1.0.0", "1.1.0"


class Update(espalier.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.keys = ["--public-key", cls.path / "release.key.pub"]
        cls.check(espalier.call("image", "keygen", "-o", cls.path / "release.key"))
        cls.files = {name: espalier.compile(cls.path / f"{name}.esp", f"complete:{NODES}", name, algorithm)
                     for name, algorithm in (("broadcast", "binomial"), ("scatter", "binomial"), ("allreduce", "two-tree"),
                                             ("reduce", "binomial"))}
        programs = ["broadcast", "scatter", "allreduce"]
        cls.build("old", programs, OLD)
        cls.build("new", [*programs, "reduce"], NEW)
        for node in range(NODES):
            cls.check(espalier.call("image", "install", cls.path / f"old-{node}.img", "--board", BOARD, "--flash",
                                    cls.path / f"made-{node}.flash", "--node", node, *cls.keys, "--confirmed"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def check(cls, done):
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    @classmethod
    def build(cls, name, programs, release, *more, key="release.key"):
        cls.check(espalier.call("image", "build", *(cls.files[program] for program in programs), "--board", BOARD, "--release",
                                release, "--key", cls.path / key, "-o", cls.path / f"{name}-%r.img", *more))

    def setUp(self):
        for node in range(NODES):
            shutil.copy(self.path / f"made-{node}.flash", self.path / f"{node}.flash")

    def words(self, *words):
        return ["update", *words, "--flash", self.path / "%r.flash", "--node-binary", espalier.NODE, "--deadline", 2000]

    def update(self, *words):
        return espalier.call(*self.words(*words))

    def settle(self):
        """Returns the release in which all nodes end."""
        done = self.update("--settle", *self.keys)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return re.search(rf"^all {NODES} nodes run release (\S+)$", done.stdout, re.M).group(1)

    def run_collective(self):
        return espalier.call("run", self.files["broadcast"], "--provider", "tcp", "--bytes", "64KiB", "--node-binary",
                             espalier.NODE, "--flash", self.path / "%r.flash", *self.keys)

    def test_all_nodes_switch(self):
        done = self.update(self.path / "new-%r.img", *self.keys)
        self.assertEqual((done.returncode, done.stdout),
                         (0, f"all {NODES} nodes switch to release {NEW}\nall {NODES} nodes run release {NEW}\n"), done.stderr)
        self.assertEqual(self.settle(), NEW)
        self.check(self.run_collective())
        # Again, to a release of the same number: nothing keeps an engineer from repeating it.
        self.check(self.update(self.path / "new-%r.img", *self.keys))

    def refused(self, says, *words, status=1):
        done = self.update(*words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("espalier: "), done.stderr)
        self.assertIn(says, last)

    def test_refusals(self):
        new = self.path / "new-%r.img"
        self.refused("expected the new images, or --settle", *self.keys, status=2)
        self.refused("expected one of --public-key FILE and --unsigned", new, status=2)
        self.refused("--from 4: expected a node from 0 to 3", new, *self.keys, "--from", 4, status=2)
        self.refused("--kill", new, *self.keys, "--kill", "9@1", status=2)
        # Before anything starts, also that of the second session.
        done = self.update(new, *self.keys, "--kill", "1@1", "--kill", "9@1")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("bad --kill 9@1: expected NODE@MS", done.stderr)
        self.refused("there is no flash file", new, *self.keys, "--start", "5=true", status=2)
        self.refused("--flash has no effect: all nodes have a --start", new, *self.keys, "--start", "0-3=true", status=2)
        for words, says in (((new, "--start", "0=true", "--unsigned"), "boards have their own key"),
                            ((new, "--start", "1=true"), "node 0 is not started; expected --flash FILE, or a --start for it")):
            done = espalier.call("update", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
        self.refused("No such file", self.path / "none-%r.img", *self.keys, status=2)
        self.build("few", ["broadcast", "allreduce"], NEW)
        self.refused("cannot be updated again: expected an allreduce, and a broadcast and a scatter from root 0",
                     self.path / "few-%r.img", *self.keys, status=2)
        self.refused("and a scatter from root 1", new, *self.keys, "--from", 1, status=2)
        # Node 2 refuses its image; all know, and nothing changes.
        images = {node: (self.path / f"new-{node}.img").read_bytes() for node in range(NODES)}
        bad = bytearray(images[2])
        bad[-1] ^= 1
        for contents, says in ((bytes(bad), "corrupt (status 5)"), (images[1], "wrong node (status 9)"),
                               ((self.path / "old-2.img").read_bytes(), "mismatch (status 14)")):
            for node in range(NODES):
                (self.path / f"bad-{node}.img").write_bytes(contents if node == 2 else images[node])
            self.refused(f"node 2 refuses the update: {says}; all run release {OLD}", self.path / "bad-%r.img", *self.keys)
        self.check(espalier.call("image", "keygen", "-o", self.path / "other.key"))
        self.build("other", ["broadcast", "scatter", "allreduce"], NEW, key="other.key")
        self.refused("other-0.img is refused: bad signature (status 24)", self.path / "other-%r.img", *self.keys, status=2)
        self.build("older", ["broadcast", "scatter", "allreduce"], "0.9.0")
        self.refused("node 0 refuses the update: older release (status 28)", self.path / "older-%r.img", *self.keys)
        self.assertEqual(self.settle(), OLD)

    def test_nodes_of_two_releases_do_not_join(self):
        self.check(espalier.call("image", "install", self.path / "new-1.img", "--board", BOARD, "--flash", self.path / "1.flash",
                                 "--node", 1, *self.keys, "--confirmed"))
        done = self.run_collective()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], r"rank 1 has release 1\.1\.0 \(digest [0-9a-f]{16}\), rank 0 has release "
                         r"1\.0\.0 \(digest [0-9a-f]{16}\), and nodes of two releases run nothing together")
        self.refused("the nodes run several releases, which no update explains", "--settle", *self.keys)

    def test_settles_what_an_update_left(self):
        """Nodes that lost power at the switch: the flash of a node that has prepared is that of one that has switched without that mark."""
        old = [(self.path / f"{node}.flash").read_bytes() for node in range(NODES)]
        self.check(self.update(self.path / "new-%r.img", *self.keys))
        switched = [(self.path / f"{node}.flash").read_bytes() for node in range(NODES)]
        prepared = []
        for flash in switched:
            mark = flash.rindex((0x4b52414d + 5).to_bytes(4, "little"))  # firmware/boot/slots.cc
            prepared.append(flash[:mark] + b"\xff" * 16 + flash[mark + 16:])
        refusal = "nodes of two releases run nothing together"
        for states, before, after in (((switched, prepared, prepared, prepared), refusal, NEW),
                                      ((prepared, prepared, prepared, prepared), None, OLD),
                                      ((prepared, old, old, prepared), None, OLD)):
            for node, flash in enumerate(states):
                (self.path / f"{node}.flash").write_bytes(flash[node])
            done = self.run_collective()
            self.assertEqual(done.returncode, 1 if before else 0, done.stderr)
            self.assertIn(before or "", done.stderr)
            self.assertEqual(self.settle(), after)
            self.check(self.run_collective())
        # A node that has lost what it prepared while another has switched: no update explains that.
        for node, flash in enumerate((switched, old, prepared, prepared)):
            (self.path / f"{node}.flash").write_bytes(flash[node])
        self.refused("the nodes run several releases, which no update explains", "--settle", *self.keys)


if __name__ == "__main__":
    unittest.main()
