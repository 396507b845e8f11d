#!/usr/bin/python3
"""Images: made and signed by the command, refused for each reason by command and node, booted by a cluster; slots of a
flash; and the steps of docs/boards.md, followed to the letter."""
import json
import os
import re
import shutil
import subprocess
import unittest

import espalier

BOARD = espalier.ROOT / "boards/linux-x86_64"
# Statuses as include/espalier/base/status.h numbers them: logs contain them.
CODES = {"truncated": 4, "corrupt": 5, "unknown format version": 6, "wrong topology": 8, "wrong node": 9, "malformed": 11,
         "no image": 20, "wrong board": 21, "rolled back": 22, "unsigned": 23, "bad signature": 24}


class Images(espalier.FolderTest):
    def setUp(self):
        super().setUp()
        self.key = self.path / "release.key"
        self.call("keygen", "-o", self.key)
        self.public = self.path / "release.key.pub"
        self.broadcast = espalier.compile(self.path / "b.esp", "complete:4")
        self.allreduce = espalier.compile(self.path / "a.esp", "complete:4", "allreduce", "chain")

    def shown(self, path):
        return espalier.told("image", "show", path)

    def call(self, *words, status=0):
        done = espalier.call("image", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1 if status else 0, done.stderr)
        return done

    def refused(self, *words, status=2, says=()):
        before = sorted(self.path.iterdir())
        done = self.call(*words, status=status)
        self.assertTrue(done.stderr.startswith("espalier: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertEqual(sorted(self.path.iterdir()), before, "something was left behind")

    def build(self, name, *more, release="1.0.0", node=1, board=BOARD, schedules=None, key=True):
        words = schedules or [self.broadcast, self.allreduce]
        if node is not None:
            more = [*more, "--node", node]
        if key:
            more = [*more, "--key", self.key]
        self.call("build", *words, "--board", board, "--release", release, "-o", self.path / name, *more)
        return self.path / name

    def node(self, *words):
        return espalier.call("--check", "--topology", "complete:4", *words, program=espalier.NODE)

    def run_cluster(self, *words):
        return espalier.run_text(self.broadcast, "--provider", "mem", "--bytes", "64KiB", "--format", "json", *words)

    def test_shown_as_built(self):
        path = self.build("1.img", "--counter", 7, release="1.2.3")
        shown = self.shown(path)
        self.assertEqual({name: shown[name] for name in ("board", "node", "release", "counter", "signed", "bytes")},
                         {"board": "linux-x86_64", "node": 1, "release": "1.2.3", "counter": 7, "signed": True,
                          "bytes": path.stat().st_size})
        self.assertEqual([program["algorithm"] for program in shown["programs"]], ["two-tree", "chain"])
        self.assertEqual({program["status"] for program in shown["programs"]}, {"ok"})
        peers = [link["peer"] for link in shown["links"]]
        self.assertEqual(peers, sorted(set(peers)))
        text = self.call("show", path).stdout
        self.assertIn("release 1.2.3, security counter 7, signed", text)
        self.assertIn("program 1: allreduce by chain", text)

    def test_keys(self):
        self.assertEqual(self.key.stat().st_mode & 0o777, 0o600)
        self.refused("keygen", "-o", self.key, says=["File exists"])
        path = self.build("1.img", key=False)
        self.call("check", path, "--public-key", self.public, status=1)
        self.call("sign", path, "--key", self.key)
        self.call("check", path, "--public-key", self.public)
        self.assertEqual(path.read_bytes(), self.build("again.img").read_bytes(), "the same inputs, the same bytes")
        self.key.chmod(0o640)
        self.refused("sign", path, "--key", self.key, says=["0600"])
        if not shutil.which("openssl"):
            print("skipped: comparing with openssl, which is not installed")
            return
        other, public = self.path / "other.key", self.path / "other.pub"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", other], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", other, "-pubout", "-out", public], check=True, capture_output=True)
        other.chmod(0o600)
        self.call("sign", path, "--key", other)
        self.call("check", path, "--public-key", public)
        whole = path.read_bytes()
        (self.path / "header").write_bytes(whole[:128])
        (self.path / "signature").write_bytes(whole[128:192])
        subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", self.path / "header",
                        "-sigfile", self.path / "signature"], check=True, capture_output=True)

    def test_every_refusal_has_its_status(self):
        path = self.build("1.img", "--counter", 3)
        whole = path.read_bytes()
        good = ["--public-key", self.public, "--node", 1, "--counter", 3]
        self.assertEqual(self.node("--image", path, *good).returncode, 0)
        self.call("build", self.broadcast, "--board", espalier.ROOT / "boards/linux-aarch64", "--node", 1, "--release", "1.0.0",
                  "--key", self.key, "-o", self.path / "other.img")
        other = espalier.compile(self.path / "five.esp", "complete:5")

        def damaged(at, value):
            return whole[:at] + bytes([value]) + whole[at + 1:]

        self.call("keygen", "-o", self.path / "foreign.key")
        self.call("sign", path, "--key", self.path / "foreign.key", "-o", self.path / "foreign.img")
        cases = {
            "truncated": whole[:-1], "corrupt": damaged(len(whole) - 1, whole[-1] ^ 1), "no image": damaged(0, 0),
            "unknown format version": damaged(8, 9), "malformed": damaged(12, 9),
            "bad signature": (self.path / "foreign.img").read_bytes(),
            "unsigned": self.build("unsigned.img", "--counter", 3, key=False).read_bytes(),
            "wrong board": (self.path / "other.img").read_bytes(),
            "wrong topology": self.build("five.img", "--counter", 3, schedules=[other]).read_bytes(),
            "wrong node": self.build("2.img", "--counter", 3, node=2).read_bytes(),
            "rolled back": self.build("old.img", "--counter", 2).read_bytes(),
        }
        self.assertEqual(cases.keys(), CODES.keys())
        bad = self.path / "bad.img"
        for status, content in cases.items():
            bad.write_bytes(content)
            told = espalier.call("image", "check", bad, "--board", "linux-x86_64", "--topology", "complete:4", "--format",
                                 "json", *good)
            self.assertEqual(told.returncode, 1, status)
            self.assertEqual((json.loads(told.stdout)["status"], json.loads(told.stdout)["code"]), (status, CODES[status]))
            self.assertEqual(told.stderr.count("\n"), 1)
            done = self.node("--image", bad, *good)
            self.assertEqual((done.returncode, done.stdout), (2, ""), status)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn(f"bad.img is refused: {status} (status {CODES[status]})", done.stderr)

    def test_check_says_which_rule(self):
        path = self.build("1.img")
        words = ["check", path, "--public-key", self.public]
        self.assertNotIn("REFUSED", self.call(*words).stdout)
        done = self.call(*words, "--node", 2, status=1)
        self.assertEqual(done.stdout.splitlines()[-1], "REFUSED  its node")
        self.assertIn("node 1 of topology", done.stderr)
        self.assertIn("any      its signature", self.call("check", path, "--unsigned").stdout)
        self.refused("check", path, says=["no key to check signatures with"])
        path.write_bytes(path.read_bytes() + b"x")
        self.call(*words, status=1)

    def what(self, option=None, value=None):
        """Arguments that build an image; if given, with another value of the option."""
        words = ["build", self.broadcast, "--board", BOARD, "--node", 0, "--release", "1.0.0", "-o", self.path / "x.img"]
        if option is not None:
            words[words.index(option) + 1] = value
        return words

    def test_bad_input(self):
        what = self.what()

        def refused(words, *says):
            self.refused(*words, says=says)

        refused(self.what("--release", "1.2"), "--release '1.2'", "1.2.3")
        refused(self.what("--release", "256.0.0"), "255")
        refused(self.what("--node", 4), "--node", "3")
        refused(self.what("--board", self.path / "nothing"), "nothing")
        refused([*what, "--counter", -1], "--counter")
        refused([*what, "--key", self.public], "0600")
        refused(["build", self.broadcast, self.broadcast, *what[2:]], "both broadcast by two-tree, root 0")
        refused(["build", self.broadcast, "--board", BOARD, "--release", "1.0.0", "-o", self.path / "x.img"], "--node", "%r")
        (self.path / "y2.img").mkdir()  # a folder in the place of one image: none is written
        refused(["build", self.broadcast, "--board", BOARD, "--release", "1.0.0", "-o", self.path / "y%r.img"], "cannot write", "y2.img")
        self.assertEqual([path.name for path in self.path.glob("y*")], ["y2.img"])
        five = espalier.compile(self.path / "five.esp", "complete:5")
        refused(["build", self.broadcast, five, *what[2:]], "complete:5", "complete:4", "one topology")
        refused(["show", self.broadcast], "no image")
        refused(["sign", self.path / "nothing", "--key", self.key], "nothing")

    def test_bad_boards(self):
        board, what = self.path / "board.textproto", self.what()
        good = (BOARD / "board.textproto").read_text()

        def with_board(text, *says):
            board.write_text(text)
            self.refused(*self.what("--board", board), says=["board.textproto", *says])

        with_board("name: ", "line 1")
        with_board(good.replace('"linux-x86_64"', '"a b"'), "line 3", "'a b'")
        with_board(good.replace("signature: ED25519", ""), "no signature")
        for old, new, words in (('kind: OFI provider: "tcp"', 'kind: SERIAL provider: "tcp"', "a provider is libfabric's"),
                                ('provider: "tcp"', 'carrier: "uart"', "a carrier is of serial links"),
                                ('provider: "tcp"', "baud: 9600", "baud is of a UART"),
                                ('kind: OFI provider: "tcp"', 'kind: SERIAL carrier: "ethernet" baud: 9600', "baud is of a UART"),
                                ('provider: "tcp"', "eager_bytes: 256", "eager_bytes"), ("kind: OFI", "", "no fabric kind")):
            self.assertIn(old, good)
            with_board(good.replace(old, new), "line 4", words)
        with_board(good.replace("fabric {", "fabrics {"), "line 4", "fabrics")
        with_board(good.replace("unit_bytes: 16", "unit_bytes: 65"), "unit_bytes")
        with_board(good.replace("limits {", "limits { links: 129"), "links is 129", "1 to 128")
        with_board(good.replace("limits {", "limits { actions: 0"), "actions is 0", "1 to 64")
        with_board(good.replace("selections: 4", "selections: 5"), "selections is 5", "0 to 4")
        with_board(good + "link { device: 1 }\nlink { device: 1 }", "link 1", "another link's")
        for old, new, words in (("limits {", "link { peer: 3 port: 1 }\nlimits {", ["link to node 1", "has none"]),
                                ("limits {", "limits { links: 1", ["need 2 links"]),
                                ("limits {", "limits { actions: 4", ["has 5 actions, of at most 4", "a.esp", "node 2"]),
                                ("limits {", 'position { topology: "complete:5" }\nlimits {', ["complete:5"])):
            board.write_text(good.replace(old, new))
            self.refused(*["build", self.allreduce, "--board", board, "--node", 2, *what[6:]], says=words)
        board.write_text(good.replace("limits {", "limits { rotated_scratch: false"))
        rotated = espalier.compile(self.path / "r.esp", "complete:4", "allgather", "bruck")
        self.refused(*["build", rotated, "--board", board, *what[4:]], says=["has rotated scratch", "rotated_scratch: true", "r.esp"])

    def test_limits(self):
        good = (BOARD / "board.textproto").read_text()
        # What the firmware is built with is read by limits.py. Both take and refuse the same.
        folder = self.path / "linux-x86_64"
        folder.mkdir()
        for old, new, is_right in (("", "", True), ("unit_bytes: 16", "unit_bytes: 65", False), ("bytes: 1048576", "bytes: 20480", False),
                                   ("block_bytes: 4096", "block_bytes: 100", False), ("selections: 4", "selections: 0", True),
                                   ("selections: 4", "selections: 5", False), ("limits {", "limits { max_mtu: 95", False),
                                   ("limits {", "limits { max_mtu: 96", True), ("limits {", "limits { room_bytes: 63", False),
                                   ("limits {", "limits { room_events: 0", False), ("limits {", "limits { window: 65", False)):
            self.assertIn(old, good)
            (folder / "board.textproto").write_text(good.replace(old, new))
            built = espalier.call("macros", folder / "board.textproto", espalier.ROOT / "proto", program=espalier.ROOT / "boards/limits.py")
            image = espalier.call("image", *self.what("--board", folder))
            with self.subTest(new=new):
                self.assertEqual((built.returncode, image.returncode), (0, 0) if is_right else (2, 2), built.stderr + image.stderr)

    def test_spares(self):
        def compiled(name, *names):
            return espalier.compile(self.path / name, *names, more=("--links", "hop-by-hop"))

        meshed = compiled("m.esp", "mesh:2x3", "allreduce")
        what = ["build", meshed, "--board", BOARD, "--release", "1.0.0", "-o", self.path / "s%r.img"]
        for kind, losses in (("links", 7), ("nodes", 6), ("both", 13)):
            told = json.loads(self.call(*what, "--spares", kind, "--format", "json").stdout)
            for node, image in enumerate(told):
                self.assertEqual(image["spares"], losses, "none for the loss of the node itself, one for a node that comes back")
                self.assertGreater(image["bytes"], image["spare_bytes"])
                shown = self.shown(image["file"])
                names = [row["loss"] for row in shown["spares"]]
                self.assertEqual(len(names), image["spares"])
                self.assertNotIn(f"node {node}", names)
                self.assertEqual("nothing" in names, kind != "links")
                self.call("check", image["file"], "--unsigned", "--node", node, "--topology", "mesh:2x3")
        good = (BOARD / "board.textproto").read_text()
        board = self.path / "board.textproto"
        small = ["build", meshed, "--board", board, "--release", "1.0.0", "-o", self.path / "t%r.img", "--spares", "both"]
        for old, new, words in (("limits {", "limits { spares: false", ["can hold no spares", "spares: true"]),
                                ("limits {", "limits { actions: 20", ["link 0 - 1", "22 actions, of at most 20", "--fewer-spares"]),
                                ("bytes: 1048576", "bytes: 40960", ["room for 12288 bytes", "of the 14 spares", "--fewer-spares"])):
            board.write_text(good.replace(old, new))
            self.refused(*small, says=words)
        fewer = self.call(*small, "--fewer-spares").stdout
        left_out = re.findall(r"^no spare for (\w+ [\d -]*\d):", fewer, re.M)
        self.assertTrue(0 < len(left_out) < 13, fewer)
        for node in range(6):
            shown = self.shown(self.path / f"t{node}.img")
            names = {row["loss"] for row in shown["spares"]} | {f"node {node}"} | set(left_out)
            self.assertEqual(len(names), 14, "the same are left out on all nodes")
        self.refused(*what, "--fewer-spares", says=["without --spares"])
        self.refused(*what, "--spares", "all", says=["'all'", "links, nodes or both"])
        self.refused("build", compiled("line.esp", "mesh:1x3", "broadcast", "chain"), *what[2:], "--spares", "links",
                     says=["link 0 - 1", "nothing to run"])
        self.refused("build", espalier.compile(self.path / "routed.esp", "mesh:2x3"), *what[2:], "--spares", "links",
                     says=["routed.esp", "hop-by-hop"])
        self.refused("build", compiled("two.esp", "complete:2", "broadcast", "chain"), *what[2:], "--spares", "nodes",
                     says=["fewer than three ranks"])

    def test_a_cluster_boots_from_images(self):
        self.build("node-%r.img", node=None)
        images = ["--image", self.path / "node-%r.img", "--public-key", self.public]
        done = self.run_cluster(*images)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        for node in range(4):
            self.assertIn(f"node-{node}.img: board linux-x86_64, node {node}, release 1.0.0, counter 0, signature checked",
                          done.stderr)
        digests = [[rank["sha256"] for rank in told["runs"][0]["ranks"]] for told in (result, json.loads(self.run_cluster().stdout))]
        self.assertEqual(digests[0], digests[1], "as from schedule files")
        second = espalier.run_text(self.allreduce, "--provider", "mem", "--bytes", "64KiB", "--nodes-per-process", 2, *images)
        self.assertEqual(second.returncode, 0, second.stderr)
        # The commands of some nodes say what they boot.
        some = self.run_cluster("--image", f"1,3={self.path}/node-%r.img", "--public-key", self.public, "--start",
                                f"0,2={espalier.NODE} --image {self.path}/node-%r.img --unsigned")
        self.assertEqual(some.returncode, 0, some.stderr)
        for node in range(4):
            checked = "signature checked" if node % 2 else "SIGNATURE NOT CHECKED"
            self.assertRegex(some.stderr, f"node-{node}.img: board linux-x86_64, node {node}, .*{checked}")
        # A node gets the image of another node: refused before anything starts.
        shutil.copy(self.path / "node-1.img", self.path / "node-2.img")
        done = self.run_cluster(*images)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("node-2.img is refused: wrong node (status 9)", done.stderr)
        self.assertEqual(self.run_cluster("--image", "x").returncode, 2)
        for words, missing in ((["--image", self.path / "no-%r.img"], "no-0.img', which node 0 boots"),
                               (["--flash", f"2,3={self.path}/no-%r", "--start", f"0,1={espalier.NODE}"], "no-2', which node 2 boots")):
            done = self.run_cluster(*words, "--unsigned")
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn(missing, done.stderr)

    def test_a_program_calls_what_its_image_has(self):
        self.build("node-%r.img", node=None)
        calls = os.environ.get("ESPALIER_IMAGE_CALLS", espalier.ROOT / "build/tests/run/image-calls")

        def joined(*words, ranks=4):
            return espalier.call("launch", "-n", ranks, calls, *words)

        done = joined("--image", self.path / "node-%r.img", self.public)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Both sizes by the image's programs, except for the gather, which it does not have.
        self.assertRegex(done.stdout, "(allreduce chain in-place chain broadcast two-tree gather [a-z0-9, -]+ ?){2}$")
        for node in range(4):
            self.call("install", self.path / f"node-{node}.img", "--board", BOARD, "--flash", self.path / f"{node}.flash", "--node", node,
                      "--public-key", self.public)
        before = (self.path / "1.flash").read_bytes()
        flash = joined("--flash", self.path / "%r.flash", self.public)
        self.assertEqual((flash.returncode, flash.stdout), (0, done.stdout), flash.stderr)
        self.assertEqual((self.path / "1.flash").read_bytes(), before)
        self.call("keygen", "-o", self.path / "other.key")
        for words, ranks, says in ((["node-%r.img", self.path / "other.key.pub"], 4, "node-0.img is refused: bad signature (status 24)"),
                                   (["node-1.img"], 1, "node-1.img is refused: wrong node (status 9)"),
                                   (["node-%r.img"], 3, "is for 4 ranks and 4 nodes; expected one for the 3 ranks of this job")):
            done = joined("--image", self.path / words[0], *words[1:], ranks=ranks)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)

    def test_slots(self):
        trust = ["--public-key", self.public]

        def install(name, node, *more, status=0):
            return self.call("install", self.path / name, "--board", BOARD, "--flash", self.path / f"{node}.flash", "--node",
                             node, *trust, *more, status=status)

        flash = ["--flash", self.path / "%r.flash", *trust]
        self.build("v1-%r.img", node=None)
        self.build("v2-%r.img", "--counter", 1, node=None, release="1.1.0")
        for node in range(4):
            install(f"v1-{node}.img", node, "--confirmed")
            install(f"v2-{node}.img", node)
        install("v1-0.img", 0, status=1)  # the fall-back is kept until the newest has run
        done = self.run_cluster(*flash)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("slot 1: boots, for the first time"), 4, done.stderr)
        self.assertEqual(done.stderr.count("boot: confirmed, stored counter 1"), 4, done.stderr)
        done = self.run_cluster(*flash)
        self.assertEqual(done.stderr.count("slot 1: boots, confirmed"), 4, done.stderr)
        # The newest is damaged: the other slot would boot, but it is below the stored counter.
        whole = bytearray((self.path / "2.flash").read_bytes())
        at = whole.rindex(b"ESPIMAGE")
        whole[at + 250] ^= 1
        (self.path / "2.flash").write_bytes(whole)
        done = self.run_cluster(*flash)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("nothing to boot (status 27)", done.stderr)
        self.assertIn("slot 0: rolled back (status 22): its security counter 0 is below 1, the counter in flash; "
                      "slot 1: corrupt (status 5)", done.stderr)
        # A node of another release does not join.
        damaged = (self.path / "2.flash").read_bytes()
        self.build("v3.img", "--counter", 1, node=2, release="1.2.0")
        install("v3.img", 2)
        done = self.run_cluster(*flash)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("rank 2 has release 1.2.0", done.stderr)
        self.assertIn("nodes of two releases run nothing together", done.stderr)
        (self.path / "2.flash").write_bytes(damaged)
        install("v2-2.img", 2)
        done = self.run_cluster(*flash)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = install("v1-3.img", 3, status=1)
        self.assertIn("its security counter 0 is below 1, the counter in flash", done.stderr)
        self.build("v2-3.img", "--counter", 1, node=3, release="0.9.0")
        done = install("v2-3.img", 3, status=1)
        self.assertIn("older release: its release 0.9.0 is below 1.1.0, the release that boots", done.stderr)
        done = install("v1-3.img", 3, "--counter", 4, status=1)
        self.assertIn("its security counter 0 is below 4, which --counter gives", done.stderr)

    def test_an_image_that_does_not_run_well_is_not_confirmed(self):
        trust = ["--public-key", self.public]
        for release in ("1.0.0", "2.0.0"):
            self.build("%r.img", node=None, release=release)
            for node in range(4):
                self.call("install", self.path / f"{node}.img", "--board", BOARD, "--flash", self.path / f"{node}.flash",
                          *trust, *(["--confirmed"] if release == "1.0.0" else []))
        flash = ["--flash", self.path / "%r.flash", *trust]
        done = self.run_cluster(*flash, "--back-to-back", 1000000000, "--deadline", 500, "--kill", "1@200")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("slot 1: boots, for the first time", done.stderr)
        done = self.run_cluster(*flash)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("slot 0: boots, confirmed"), 4, done.stderr)
        self.assertEqual(done.stderr.count("slot 1: refused, unconfirmed"), 4, done.stderr)

    def test_a_flash_that_changes_under_its_node(self):
        """The node runs what it checked. A file that another process has changed gets no mark."""
        trust = ["--public-key", self.public]
        self.build("%r.img", node=None)
        flashes = [self.path / f"{node}.flash" for node in range(4)]
        for node, flash in enumerate(flashes):
            self.call("install", self.path / f"{node}.img", "--board", BOARD, "--flash", flash, *trust)
        words = [espalier.COMMAND, "run", self.broadcast, "--provider", "mem", "--bytes", "4KiB", "--back-to-back", "50000",
                 "--node-binary", espalier.NODE, "--flash", self.path / "%r.flash", *trust]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            error = ""
            while error.count("boots, for the first time") < 4:
                line = process.stderr.readline()
                self.assertTrue(line, "the run ended: " + error)
                error += line
            flashes[1].write_bytes(b"")
            flashes[2].write_bytes(bytes(1 << 20))
            output, rest = process.communicate()
        error += rest
        self.assertEqual(process.returncode, 0, output + error)
        self.assertEqual(error.count("espalier-node: cannot confirm the image: back end"), 2, error)
        self.assertEqual(error.count("boot: confirmed"), 2, error)
        self.assertEqual([flash.read_bytes().strip(b"\0") for flash in flashes[1:3]], [b"", b""], "a mark was written")

    def test_the_steps_to_add_a_board(self):
        """docs/boards.md: in a copy of boards/, with names put in, every command of the list runs, for a copy of each board."""
        shutil.copytree(espalier.ROOT / "boards", self.path / "boards")
        boards = sorted(file.parent.name for file in (self.path / "boards").glob("*/board.textproto"))
        text = (espalier.ROOT / "docs/boards.md").read_text().split("## Adding one\n")[1].split("\n## ")[0]
        steps = [" ".join(words.split()) for words in re.findall(r"`((?:cp|grep|espalier) [^`]*)`", text)]
        self.assertEqual(len(steps), 6)
        self.assertIn("template", boards)
        for number, board in enumerate(boards):
            name = f"throw-away-{number}"
            for step in steps:
                words = re.sub(r"^espalier", espalier.COMMAND, step).replace("NAME", name).replace("BOARD", board)
                done = subprocess.run(words, shell=True, cwd=self.path, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)
                if step.startswith("grep"):
                    self.no_board_is_named(self.path / "boards" / name, boards)
            self.assertIn(f"board '{name}'", self.call("show", self.path / "0.img").stdout)
            (self.path / "0.flash").unlink()
            done = espalier.call("--image", self.path / "0.img", "--unsigned", "--board", name, "--node", 0, "--check",
                                 program=espalier.NODE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("SIGNATURE NOT CHECKED", done.stdout)

    def no_board_is_named(self, folder, boards):
        for file in folder.iterdir():
            for line in file.read_text().splitlines():
                named = [board for board in boards if board in line and "-M" not in line]
                self.assertEqual(named, [], f"{file}: {line}")

    def test_a_board_that_still_has_the_templates_name_is_refused(self):
        for words in (["build", self.broadcast, "--node", 1, "--release", "1.0.0", "-o", self.path / "t.img"],
                      ["install", self.build("1.img"), "--flash", self.path / "t.flash", "--unsigned"]):
            self.refused(*words, "--board", espalier.ROOT / "boards/template", says=["name 'template'", "its folder has"])

    def test_a_flash_of_the_boards_shape(self):
        """A board with another flash: --flash-shape boots it, and a node that was built for the usual shape says what it expects."""
        board = self.path / "board.textproto"
        board.write_text((BOARD / "board.textproto").read_text().replace("bytes: 1048576 block_bytes: 4096", "bytes: 98304 block_bytes: 8192"))
        self.call("install", self.build("1.img", board=board), "--board", board, "--flash", self.path / "1.flash", "--unsigned")
        words = ["--flash", self.path / "1.flash", "--unsigned", "--node", 1]
        self.assertEqual(self.node(*words, "--flash-shape", "98304,8192,16").returncode, 0)
        refused = self.node(*words)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("it has 98304 bytes; expected 1048576", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
