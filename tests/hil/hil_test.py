#!/usr/bin/python3
"""The runner of rigs itself: bad rigs, its commands, its verdicts on the output of a substitute for espalier, its
time limits, and that no process outlives it."""
import dataclasses
import functools
import json
import os
import pathlib
import select
import shlex
import signal
import subprocess
import tempfile
import time
import unittest

import coverage
import plan as plans
import rig as rigs
import verdict

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = os.environ.get("ESPALIER", str(rigs.ROOT / "build/tools/espalier"))
NODE = os.environ.get("ESPALIER_NODE", str(rigs.ROOT / "build/firmware/node/espalier-node"))
RIG = """name: "two" tests: "list" limit_s: 60
device { name: "host" board: "boards/linux-x86_64" count: 2 process { program: "/bin/true" } }
"""
LIST = """topology: "complete:2"
test { collective: "allreduce" algorithm: "chain" message { bytes: "8" } }
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, rig=RIG, tests=LIST):
        (self.path / "rig").write_text(rig)
        (self.path / "list").write_text(tests)
        return self.path / "rig"

    def plan(self, rig=RIG, tests=LIST, command=COMMAND):
        made = rigs.Rig(self.write(rig, tests))
        return plans.Plan(made, rigs.Tests(made.tests), self.path / "out", command, NODE, "/tmp/sockets")


class BadRigs(Folder):
    def refused(self, *says, rig=RIG, tests=LIST, words=()):
        path = self.write(rig, tests)
        done = subprocess.run([HERE / "hil.py", path, "--output", self.path / "out", *words], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertFalse((self.path / "out").exists(), "something was left behind")

    def refused_change(self, which, right, old, new, *says):
        self.assertIn(old, right)
        self.refused(str(self.path / {"rig": "rig", "tests": "list"}[which]), *says, **{which: right.replace(old, new)})

    def test_without_protobuf(self):
        for command in ([HERE / "hil.py", self.write()], [rigs.ROOT / "boards/limits.py", "flash", "board", "proto"]):
            # -S: without the folders of packages.
            done = subprocess.run(["/usr/bin/python3", "-S", *command], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertIn("python3-protobuf, which ./setup.sh installs", done.stderr)

    def test_rigs(self):
        refused = functools.partial(self.refused_change, "rig", RIG)
        refused("device {", "gadget {", "2:1", "gadget")
        refused('name: "two"', "", "the rig's name is ''")
        refused('name: "two"', 'name: "a b"', "'a b'", "letters")
        refused('tests: "list"', "", "no tests")
        refused('name: "two"', 'name: "two" provider: "pigeon"', "'pigeon'", "tcp or mem")
        refused('name: "two"', 'name: "two" provider: "shm"', "'shm'", "tcp or mem")
        refused('name: "host"', "", "device 0", "its name is ''")
        refused("boards/linux-x86_64", "boards/nothing", "device 0 ('host')", "no board 'boards/nothing'")
        refused('process { program: "/bin/true" }', "", "device 0 ('host')", "process, emulator, ssh, wire")
        refused('program: "/bin/true"', "", "process without program")
        refused('process { program: "/bin/true" }', 'emulator { program: "x" }', "without machine", "machine and program")
        refused('process { program: "/bin/true" }', 'wire { flash: "true" }', "without carrier")
        refused('process { program: "/bin/true" }', 'ssh { host: "a" program: "b" address: "10.0.0.2" }', "no address")
        refused("count: 2", "count: 2 patience: 0.5", "patience is 0.5", "1 to 1000")
        refused("count: 2", "count: 2 patience: nan", "patience is nan")
        refused("count: 2", "count: 2 rank: 0", "count is 2, and it has 1 rank")
        refused("count: 2", "rank: 0 rank: 2", "rank 2 among", "0 to 1")
        refused("/bin/true", "/bin/nothing", "no /bin/nothing")
        self.refused("li\\x00st", "null byte", rig=RIG.replace('tests: "list"', 'tests: "li\\000st"'))
        refused("boards/linux-x86_64", "x" * 300, "device 0 ('host')", "no board")
        refused("count: 2", "count: 4294967295", "more than 4096 devices")
        refused("count: 2", 'count: 2 instead: "b"', "instead of a process", "an emulator or a wire")
        wire = RIG.replace('process { program: "/bin/true" }', 'wire { carrier: "udp:1,b:2" }')
        self.refused("instead is 'b'", "another device", rig=wire.replace("count: 2", 'count: 2 instead: "b"'))
        self.refused("instead is 'host'", "itself without", rig=wire.replace("count: 2", 'count: 2 instead: "host"'))
        self.refused("carrier and cable", rig=wire.replace("carrier:", "cable {} carrier:"))
        self.refused("there is no /bin/nothing", rig=wire.replace("carrier:", 'program: "/bin/nothing" gateway: "/bin/true" carrier:'))
        mem = RIG.replace('name: "two"', 'name: "two" provider: "mem"')
        self.refused("this host alone", rig=mem.replace("process {", 'ssh { host: "board" address: "10.0.0.2"'))
        self.refused("two devices are called 'host-0'", rig=RIG + RIG.splitlines()[1])
        self.refused("all or none", rig=RIG + 'device { name: "b" board: "boards/linux-x86_64" rank: 2 process { program: "x" } }')

    def test_lists(self):
        refused = functools.partial(self.refused_change, "tests", LIST)
        refused('topology: "complete:2"', "", "no topology")
        refused("complete:2", "complete:3", "complete:3 has 3 nodes", "are 2")
        refused("complete:2", "circle:2", "circle:2")
        refused('algorithm: "chain"', "", "test 0", "espalier list")
        refused('bytes: "8"', "", "test 0", "without bytes")
        refused("test {", "kill { test: 1 } test {", "no test 1", "0 to 0")
        refused("test {", 'refuse: "ugly" test {', "'ugly'", "corrupted")
        refused("test {", 'refuse: "wrong-node" together: true test {', "wrong-node together", "together: false")
        refused('topology: "complete:2"', 'topology: "complete:2" ' + LIST.splitlines()[1], "test 1", "is there already")
        refused("chain", "../chain", "test 0", "algorithm is '../chain'", "letters")
        refused('bytes: "8"', 'bytes: "8/9"', "test 0", "bytes is '8/9'")
        refused("test {", 'spares: "some" test {', "unknown spares 'some'", "links, nodes or both")
        refused("test {", 'spares: "both" kill {} test {', "kill with spares", "expected lose")
        refused("test {", 'lose { what: "node:0" } test {', "node:0 without spares for it", '"nodes" or "both"')
        refused("test {", 'spares: "both" lose { what: "both" } test {', "what is 'both'", "link:A,B or node:V")
        refused("test {", 'spares: "both" lose { what: "node:2" } test {', "node:2", "devices of", "are 2")
        refused("test {", 'spares: "both" lose { what: "link:0,1" } test {', "link:0,1", "a carrier unix:")
        refused("test {", 'spares: "both" lose { what: "node:1" } lose { what: "node:1" } test {', "node:1 at moment 0 twice")
        refused("test {", 'spares: "both" lose { what: "node:1" returns: 4 } test {', "4 returns of node:1", "0 to 3")
        refused("test {", 'spares: "both" lose { what: "link:0,1" returns: 1 } test {', "1 returns of link:0,1", "and of a node")
        refused('bytes: "8"', 'bytes: "8" } message { bytes: "8" op: "sum"', "test 0: a message of 8 bytes twice")
        refused('"allreduce"', '"barrier"', "test 0: a barrier with messages")
        refused("test {", 'refuse: "corrupted" refuse: "corrupted" test {', "'corrupted' twice")
        refused("test {", "together: true test {", "together without refuse")
        scan = LIST.replace('"allreduce"', '"scan"') + 'spares: "nodes" lose { what: "node:1" }'
        self.refused("lose with scan", "allreduce, broadcast", tests=scan)
        self.refused("no case has 'nothing'", words=["--only", "nothing"])
        self.refused("nowhere", words=["--tests", "nowhere"])

    def test_losses_of_what_is_not_there(self):
        rig = RIG.replace("count: 2", "count: 3")
        rig += 'device { name: "wired" board: "boards/linux-x86_64" wire { carrier: "unix:a,b" program: "/bin/true" gateway: "/bin/true" } }\n'
        tests = LIST.replace("complete:2", "mesh:2x2") + 'spares: "both" lose { what: "link:0,3" }'
        words = ["--espalier", COMMAND, "--node", NODE, "--cluster", "/bin/true"]
        self.refused("lose: link:0,3 is no link of mesh:2x2", rig=rig, tests=tests, words=words)
        line = tests.replace("link:0,3", "node:3").replace("mesh:2x2", "crossbar:1x2")
        self.refused("lose: node:3 is a router", rig=rig, tests=line, words=words)
        for field in ('provider: "mem"', "window: 2", 'address: "10.0.0.1"'):
            local = RIG.replace("count: 2", "count: 4").replace("limit_s", f"{field} limit_s")
            self.refused("lose: node:3: with", rig=local, tests=tests.replace("link:0,3", "node:3"), words=words)

    def test_options(self):
        self.refused("unrecognized arguments: --bogus", words=["--bogus"])
        self.refused("not allowed with argument", words=["--page", "a", "--check", "b"])
        self.refused("--list writes no --output", words=["--list"])
        self.refused("nowhere: No such file", words=["--page", self.path / "nowhere", "--espalier", COMMAND, "--node", NODE])
        (self.path / "out").touch()
        done = subprocess.run([HERE / "hil.py", self.write(), "--output", self.path / "out", "--espalier", COMMAND, "--node", NODE],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("out: Not a directory", done.stderr)

    def test_a_folder_of_somebody_else(self):
        (self.path / "mine").mkdir()
        (self.path / "mine/file").touch()
        done = subprocess.run([HERE / "hil.py", self.write(), "--output", self.path / "mine"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("not empty", done.stderr)
        self.assertTrue((self.path / "mine/file").exists())

    def test_what_cannot_be_prepared(self):
        """The line is the failed command's own."""
        done = subprocess.run([HERE / "hil.py", self.write(tests=LIST.replace("chain", "magic")), "--output", self.path / "out",
                               "--espalier", COMMAND, "--node", NODE], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("magic", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Plans(Folder):
    def test_every_program_runs_on_every_kind_of_board(self):
        for name, kinds in (("default", 8), ("serial", 2)):
            rig = rigs.Rig(HERE / f"{name}.textproto")
            plan = plans.Plan(rig, rigs.Tests(rig.tests), self.path, COMMAND, NODE, "/tmp/sockets")
            self.assertEqual(len(rig.kinds()), kinds)
            for seats in rig.rotations(plan.tests):
                self.assertEqual(sorted(seat.name for seat in seats), sorted(seat.name for seat in rig.seats))
            cases = [dataclasses.replace(case, ranks=len(case.seats)) for case in plan.cases()]
            coverage.check(plan, cases)
            for test in range(len(plan.tests.entry.test)):
                for kind in rig.kinds():
                    self.assertEqual(coverage.placed(plan, cases)[test, kind.board], set(range(len(rig.seats))))
            with self.assertRaisesRegex(rigs.BadRig, "programs of ranks .* never run on .*; expected enough rotations"):
                coverage.check(plan, [case for case in cases if case.rotation != 1])
        rig = rigs.Rig(HERE / "default.textproto")
        self.assertEqual([seat.name for seat in rig.rotations(rigs.Tests(rig.tests))[1][:3]], ["host", "m0", "m3"])
        for name in ("x86-64", "aarch64"):
            alike = rigs.Rig(HERE / f"{name}.textproto")
            self.assertEqual(len(alike.rotations(rigs.Tests(alike.tests))), 1)

    def test_fixed_ranks(self):
        rig = RIG.replace("count: 2", "rank: 2 rank: 0") + \
            'device { name: "b" board: "boards/linux-x86_64" rank: 1 process { program: "x" } }'
        plan = self.plan(rig)
        (seats,) = plan.rig.rotations(plan.tests)
        self.assertEqual([seat.name for seat in seats], ["host-1", "b", "host-0"])

    def test_defaults_and_patience(self):
        plan = self.plan(RIG + 'device { name: "slow" board: "boards/linux-x86_64" patience: 2.5 process { program: "x" } }')
        self.assertEqual((plan.rig.deadline_ms, plan.rig.limit_s), (12500, 150))
        words = list(map(str, plan.run(plan.cases()[0])))
        self.assertEqual(words[words.index("--deadline") + 1], "12500")
        self.assertEqual(words[words.index("--provider") + 1], "tcp")
        self.assertEqual(words[words.index("--type") + 1], "f32")
        self.assertNotIn("--window", words)

    def test_cases(self):
        plan = self.plan(tests=LIST + 'kill {} refuse: "unsigned"')
        self.assertEqual([case.name for case in plan.cases()], ["rotation-0/allreduce-chain-8-sum-f32", "kill/linux-x86_64",
                                                                "refuse/linux-x86_64-unsigned"])
        kill, refuse = plan.cases()[1:]
        words = list(map(str, plan.run(kill)))
        self.assertEqual(words[words.index("--kill") + 1], "0@1000")
        self.assertIn("--back-to-back", words)
        self.assertIn(f"0,1={self.path}/out/flash/rotation-0/node-%r.flash", words)
        self.assertIn(f"0,1={self.path}/out/refuse/linux-x86_64-unsigned/node-%r.flash", map(str, plan.run(refuse)))

    def test_refusals_together(self):
        rig = RIG + 'device { name: "b" board: "boards/linux-aarch64" process { program: "x" } }'
        plan = self.plan(rig, LIST + 'refuse: "unsigned" refuse: "corrupted" together: true')
        self.assertEqual([(case.name, case.refused) for case in plan.cases()[1:]],
                         [("refuse/unsigned", ([0, 2], "unsigned")), ("refuse/corrupted", ([0, 2], "corrupted"))])

    def started(self, how, **fields):
        text = RIG.splitlines()[0] + "".join(f" {name}: {value}" for name, value in fields.items())
        plan = self.plan(f'{text} device {{ name: "it" board: "boards/linux-x86_64" count: 2 {how} }}')
        case = plan.cases()[0]
        return plan, case, shlex.split(plan.start(case, 1, case.seats[1]))

    def test_processes(self):
        _, _, words = self.started('process { under: "qemu-aarch64 -L /" program: "build x/node" }')
        self.assertEqual(words, ["qemu-aarch64", "-L", "/", str(rigs.ROOT / "build x/node")])

    def test_emulators(self):
        plan, _, words = self.started('emulator { machine: "mps2-an385" program: "node.elf" under: "nice" }')
        self.assertEqual(words[:3], [str(rigs.ROOT / rigs.GATEWAY), "--device", "unix:/tmp/sockets/it-1-gateway,/tmp/sockets/it-1-board"])
        board = shlex.split(words[words.index("--start") + 1])
        self.assertEqual(board[:4], ["nice", "qemu-system-arm", "-M", "mps2-an385"])
        self.assertIn(f"enable=on,target=native,arg=node,arg={plan.out}/flash/rotation-0/node-1.flash,arg={plan.key}.pub", board)
        self.assertIn("dgram,id=link,local.type=unix,local.path=/tmp/sockets/it-1-board,remote.type=unix,"
                      "remote.path=/tmp/sockets/it-1-gateway", board)

    def test_wires(self):
        plan, case, words = self.started('wire { carrier: "tty:/dev/ttyACM%r,115200" flash: "program %f --key %k" '
                                         'start: "reset %r" gateway: "g" }')
        self.assertEqual(words[:3], [str(rigs.ROOT / "g"), "--device", "tty:/dev/ttyACM1,115200"])
        self.assertEqual(words[words.index("--start") + 1], "reset 1")
        self.assertEqual(plan.bring(case, 1, case.seats[1]), f"program {plan.out}/flash/rotation-0/node-1.flash --key {plan.key}.pub")

    def test_cables(self):
        plan, case, words = self.started('wire { cable { lose: 100 cut: 300 } program: "node x" start: "%p %c %b %r" }')
        self.assertEqual(words[1:3], ["--device", "tty:/tmp/sockets/it-1-gateway,115200"])
        self.assertEqual(words[words.index("--start") + 1],
                         f"'{rigs.ROOT}/node x' /tmp/sockets/it-1-board {plan.key}.bin 1")
        self.assertEqual(plan.cables(case), [str(HERE / "cable.py"), "/tmp/sockets/it-0-gateway,/tmp/sockets/it-0-board,100,0,300",
                                             "/tmp/sockets/it-1-gateway,/tmp/sockets/it-1-board,100,0,300"])

    def test_losses(self):
        """spares-cluster is between a board and its gateway."""
        tests = LIST.replace("complete:2", "ring:3") + 'spares: "both" lose { what: "link:0,2" moment: 7 }'
        rig = RIG.splitlines()[0] + """
            device { name: "host" board: "boards/linux-x86_64" count: 2 process { program: "/bin/true" } }
            device { name: "bare" board: "tests/hil/hosted" wire { carrier: "unix:%s/g%r,%s/b%r" start: "run %s/b%r" } }"""
        plan = self.plan(rig, tests)
        case = plan.cases()[-1]
        self.assertEqual(case.name, "lose/link-0-2/7")
        words = list(map(str, plan.lose(case, [[1, 2], [0, 2], [1, 0]])))
        value = {word: words[at + 1] for at, word in enumerate(words) if word.startswith("--")}
        self.assertEqual(words[0], str(rigs.ROOT / "build/tests/hil/spares-cluster"))
        self.assertEqual((value["--loss"], value["--seed"], value["--at"], value["--boots"]), ("link:0,2", "7", "2:1", "0,1"))
        self.assertEqual(value["--relay"], "2:2=/tmp/sockets/g2,/tmp/sockets/b2,/tmp/sockets/g2-s,/tmp/sockets/g2-g")
        gateway = shlex.split(value["--start"].removeprefix("2="))
        self.assertEqual(gateway[1:3], ["--device", "unix:/tmp/sockets/g2-g,/tmp/sockets/g2-s"])
        self.assertEqual(gateway[gateway.index("--start") + 1], "run /tmp/sockets/b2")
        returns = self.plan(rig, tests.replace('"link:0,2"', '"node:2" returns: 2'))
        words = list(map(str, returns.lose(returns.cases()[-1], [[1, 2], [0, 2], [1, 0]])))
        self.assertEqual(words[words.index("--returns") + 1], "2")
        self.assertIn("--links hop-by-hop", " ".join(map(str, plan.compile(plan.tests.entry.test[0]))))
        self.assertIn("--spares both", " ".join(map(str, plan.build_image("boards/linux-x86_64", 0, "x", plan.tests.entry.test))))
        self.assertEqual(len([word for word in map(str, plan.run(plan.cases()[0])) if "/tmp/sockets/g2-g" in word]), 0)

    def test_ssh(self):
        plan, case, words = self.started('ssh { host: "pi" program: "/opt/node" address: "10.0.0.2" command: "far" }',
                                         address='"10.0.0.1"')
        self.assertEqual(words[1:], ["--node-command", "far pi /opt/node --stdio --address 10.0.0.2"])
        whole = list(map(str, plan.run(case)))
        self.assertEqual(whole[whole.index("--address") + 1], "10.0.0.1")
        # With `sh -c` for ssh, and a folder for the host: the files arrive at the same paths below it.
        flash = plan.flash(case, 1)
        flash.parent.mkdir(parents=True)
        flash.write_text("slots")
        pathlib.Path(plan.public()).write_text("key")
        command = plan.bring(case, 1, case.seats[1])
        host = self.path / "host"
        host.mkdir()
        far = self.path / "far"
        far.write_text(f"#!/bin/sh\ncd {host} && exec sh -c \"$(echo \"$2\" | sed 's: /: {host}/:g')\"\n")
        far.chmod(0o755)
        subprocess.run(command, shell=True, check=True, env={**os.environ, "PATH": f"{self.path}:{os.environ['PATH']}"})
        self.assertEqual((self.path / f"host/{flash}").read_text(), "slots")
        self.assertEqual((self.path / f"host/{plan.public()}").read_text(), "key")


class Verdicts(Folder):
    def setUp(self):
        super().setUp()
        self.case = self.plan(tests=LIST + 'kill {} refuse: "corrupted"').cases()[0]

    def folders(self, change=lambda folder: None):
        found = []
        for name in ("simulated", "real"):
            folder = self.path / name
            folder.mkdir(exist_ok=True)
            for rank in range(2):
                (folder / f"rank-{rank}.bin").write_bytes(b"0123")
                (folder / f"node-{rank}.events").write_bytes(bytes(32))
            found.append(folder)
        change(found[1])
        return verdict.same_files(self.case, *found)

    def test_the_same_bytes(self):
        self.assertEqual(self.folders(), [])
        self.assertEqual(self.folders(lambda real: (real / "rank-1.bin").write_bytes(b"01x3")),
                         ["host-1 (rank 1): its result differs from the simulation's from byte 2 on (4 bytes, 4 simulated)"])
        self.assertEqual(self.folders(lambda real: (real / "node-0.events").write_bytes(bytes(16))),
                         ["host-0 (rank 0): its log differs from the simulation's from byte 16 on (16 bytes, 32 simulated)"])
        self.assertEqual(self.folders(lambda real: (real / "node-0.events").unlink()),
                         ["host-0 (rank 0): its log is missing of the run"])
        self.assertEqual(self.folders(lambda real: (real / "rank-7.bin").touch()),
                         ["node 7: its result is missing in the simulation"])
        empty = self.path / "empty"
        empty.mkdir()
        self.assertEqual(len(verdict.same_files(self.case, empty, empty)), 1, "nothing to compare is not the same")

    def test_boot_reports(self):
        error = ("boot: /x/node-0.flash slot 0: boots, confirmed\n"
                 "espalier-gateway: node 1: board m3 boots slot 1, release 1.0.0 (its first run); slot 0: corrupt (status 5); "
                 "slot 1: ok\n")
        self.assertEqual(verdict.boots(error), {0: {0: "boots"}, 1: {0: "corrupt", 1: "boots"}})
        self.assertEqual(verdict.all_boot(self.case, error), [])
        self.assertEqual(verdict.all_boot(self.case, error.splitlines()[0] + "\n"),
                         ["host-1 (rank 1) did not say that it booted from its flash"])
        refused = self.plan(tests=LIST + 'refuse: "corrupted"').cases()[1]
        self.assertEqual(verdict.all_boot(refused, error), ["host-0 (rank 0): slot 1 says 'nothing'; expected 'corrupt'"])
        good = error + "boot: /x/node-0.flash slot 1: refused, corrupt (status 5)\n"
        self.assertEqual(verdict.all_boot(refused, good), [])
        self.assertEqual(len(verdict.all_boot(refused, good.replace("refused, corrupt", "refused, unsigned"))), 1)
        counters = "rolled back (status 8): its security counter 1 is below 2, the counter in "
        told = (f"boot: /x/node-0.flash slot 1: refused, {counters}flash\n"
                f"espalier-gateway: node 1: board m3 boots slot 0, release 1.0.0; slot 0: ok; slot 1: {counters}the board's flash\n")
        self.assertEqual(verdict.boots(told), {0: {1: "rolled back"}, 1: {0: "boots", 1: "rolled back"}})


    def test_another_nodes_image(self):
        """A bare-metal board boots it, and its gateway refuses the board."""
        rig = RIG.replace('process { program: "/bin/true" }', 'wire { carrier: "udp:1,b:2" }')
        case = self.plan(rig, LIST + 'refuse: "wrong-node"').cases()[1]
        self.assertTrue(verdict.is_refused_by_gateways(case))
        self.assertFalse(verdict.is_refused_by_gateways(self.plan(tests=LIST + 'refuse: "wrong-node"').cases()[1]))
        line = "espalier: rank 0: its board x at udp:1,b:2: its image is for node 1, expected one for 0"
        self.assertEqual(verdict.foreign(case, 1, f"boot\n{line}\n")[0], [])
        self.assertEqual(verdict.foreign(case, 0, line)[0], ["espalier run ended with status 0; expected 1"])
        self.assertEqual(len(verdict.foreign(case, 1, line.replace("rank 0", "rank 1"))[0]), 1)
        self.assertEqual(len(verdict.foreign(case, 1, "")[0]), 1)


class Coverage(Folder):
    def test_reasons(self):
        self.assertEqual(coverage.reason("", "m"), "")
        self.assertEqual(coverage.reason("espalier: '/x/y.esp': node 3's program has 18 actions, of at most 16; board 'm' loads no such "
                                         "program", "m"), "its program has 18 actions, of at most 16")
        self.assertEqual(coverage.reason("espalier: the programs of node 3 need 7 links; board 'm' has 3", "m"),
                         "its program needs 7 links, and the board has 3")
        self.assertEqual(coverage.reason("the image '/x/y.img' of board 'm'", "m"), "the image 'y.img' of board 'm'")

    def test_rooms(self):
        file = rigs.read(rigs.ROOT / "boards/microbit/board.textproto", "board.BoardFile")
        self.assertEqual(coverage.shortage(832, 32, file.limits), "")
        self.assertEqual(coverage.shortage(833, 32, file.limits), "a buffer needs 833 bytes, and its rooms have 832")
        self.assertEqual(coverage.shortage(832, 33, file.limits), "its log has 33 records, and room for 32")
        file = rigs.read(HERE / "hosted/board.textproto", "board.BoardFile")
        self.assertEqual(coverage.shortage(262144, 16384, file.limits), "")
        self.assertNotEqual(coverage.shortage(262145, 0, file.limits), "")

    def needed(self, collective, rank, scratch_blocks=0):
        tests = self.plan(tests=LIST.replace('"allreduce"', f'"{collective}"').replace('"chain"', '"chain" root: 1')
                          .replace('"8"', '"1KiB"')).tests
        test = tests.entry.test[0]
        return coverage.needed_bytes(test, test.message[0], rank, {"ranks": 2, "programs": [{"scratch_blocks": scratch_blocks}] * 2},
                                     {"segments": 2, "blocks": 4})

    def test_buffers(self):
        self.assertEqual([self.needed(name, 0) for name in ("allreduce", "scatter", "gather", "allgather", "reduce-scatter", "all-to-all")],
                         [1024, 1024, 1024, 2048, 2048, 2048])
        self.assertEqual([self.needed(name, 1) for name in ("allreduce", "scatter", "gather")], [1024, 2048, 2048])
        self.assertEqual(self.needed("allreduce", 0, 20), 20 * 128)

    def test_numbers(self):
        self.assertEqual([coverage.numbers(each) for each in ([], [4], [1, 0], [0, 1, 2, 5, 7, 6])], ["", "4", "0, 1", "0 to 2, 5 to 7"])

    def test_pages(self):
        page = self.path / "page"
        page.write_text("# Title\n\nWords.\n")
        for name, text in (("one", "a\n"), ("two", "b\n\nc\n"), ("one", "d\n"), ("two", "e\n")):
            coverage.write(page, name, text)
            self.assertEqual(coverage.part(page.read_text(), name), text)
        self.assertEqual(page.read_text(), "# Title\n\nWords.\n\n## one\n\nd\n\n## two\n\ne\n")
        self.assertIsNone(coverage.part(page.read_text(), "three"))


class Cables(Folder):
    def carry(self, rates, size):
        """Returns (what arrives of `size` bytes that count up, the counts)."""
        ends = [self.path / "left", self.path / "right"]
        cable = subprocess.Popen([HERE / "cable.py", ",".join(map(str, [*ends, *rates]))], stdout=subprocess.PIPE, text=True)
        self.assertEqual(cable.stdout.readline(), "ready\n")
        left, right = (os.open(end, os.O_RDWR | os.O_NOCTTY) for end in ends)
        sent, arrived, last = bytes(at % 255 for at in range(size)), b"", b"\xff" * 200  # more than a cut takes
        waiting = sent + last
        os.set_blocking(left, False)
        while not arrived.endswith(last[:100]):
            if waiting:
                try:
                    waiting = waiting[os.write(left, waiting):]
                except BlockingIOError:
                    pass
            if select.select([right], [], [], 0.01)[0]:
                arrived += os.read(right, 4096)
        cable.terminate()
        counts = json.loads(cable.communicate()[0])
        os.close(left)
        os.close(right)
        return sent, arrived[:arrived.index(b"\xff")], counts

    def test_a_good_cable(self):
        sent, arrived, counts = self.carry([0, 0, 0], 100_000)
        self.assertEqual(sent, arrived)
        self.assertEqual((counts["lost"], counts["repeated"], counts["cuts"]), (0, 0, 0))

    def test_bad_cables(self):
        sent, arrived, counts = self.carry([500, 0, 0], 50_000)
        self.assertLess(len(sent) - len(arrived), 300)
        self.assertGreater(counts["lost"], 20)
        sent, arrived, counts = self.carry([0, 500, 0], 50_000)
        self.assertGreater(len(arrived), len(sent) + 20)
        sent, arrived, counts = self.carry([0, 0, 5000], 50_000)
        self.assertGreater(counts["cuts"], 0)
        self.assertLess(len(arrived), len(sent))


class Runs(Folder):
    """With fake.py in place of the espalier command."""

    def start_fake(self, how, rig=RIG, tests=LIST, words=()):
        self.log = self.path / "log"
        return subprocess.Popen([HERE / "hil.py", self.write(rig, tests), "--output", self.path / "out", "--espalier",
                                 HERE / "fake.py", "--node", "/bin/true", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, "FAKE": how, "FAKE_LOG": str(self.log)})

    def run_fake(self, how, **more):
        runner = self.start_fake(how, **more)
        output, error = runner.communicate()
        self.assertEqual(error, "")
        return runner.returncode, output

    def failed(self, how, *says, **more):
        status, output = self.run_fake(how, **more)
        self.assertEqual(status, 1, output)
        self.assertIn("0 passed, 1 failed", output)
        (line,) = [line for line in output.splitlines() if line.startswith("FAILED")]
        for text in says:
            self.assertIn(text, line)

    def test_passed(self):
        status, output = self.run_fake("right")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"(?m)^ok      rotation-0/allreduce-chain-8-sum-f32, [0-9.]+ s$")
        self.assertIn("1 passed, 0 failed", output.splitlines()[-1])
        called = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual([" ".join(words[:2]) for words in called if words[0] in ("image", "run")],
                         ["image keygen"] * 2 + ["image build", "image install"] * 2 + ["run " + called[-1][1]])
        for kind in ("out", "err", "sh"):
            self.assertTrue((self.path / f"out/rotation-0/allreduce-chain-8-sum-f32/run.{kind}").exists())
        status, output = self.run_fake("right")  # into the same folder, again
        self.assertEqual(status, 0, output)

    def test_failed(self):
        self.failed("failed", "host-1 (rank 1): dead link: no word of rank 0")
        self.failed("loud", "dead link: no word of rank 0\\x1b[2J\\u202e")
        self.failed("wrong", "host-1 (rank 1): its result differs", "byte 3")
        self.failed("lost", "host-0 (rank 0): its log is missing")
        self.failed("dumb", "no report: espalier: node 1 did not start: its board says nothing")

    def test_too_long(self):
        begin = time.monotonic()
        self.failed("silent", "not done after 1 s", rig=RIG.replace("limit_s: 60", "limit_s: 1"))
        self.assertGreater(time.monotonic() - begin, 1)
        pid = int(pathlib.Path(f"{self.log}.pid").read_text())
        self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            runner, pid = self.start_fake("silent"), self.path / "log.pid"
            while not (pid.exists() and pid.read_text()):
                self.assertIsNone(runner.poll())
            runner.send_signal(number)
            self.assertEqual((runner.communicate()[1], runner.returncode), ("", 128 + number))
            self.assertRaises(ProcessLookupError, os.kill, int(pid.read_text()), 0)
            pid.unlink()

    def test_kills(self):
        tests = LIST + "kill { after_ms: 700 }"
        status, output = self.run_fake("right", tests=tests, words=["--only", "kill/"])
        self.assertEqual(status, 0, output)
        self.assertIn("host-0 (rank 0) killed, named by all within 1.5 of 10 s", output)
        self.assertIn("host-1 (rank 1): dead link", (self.path / "out/kill/linux-x86_64/stalls").read_text())
        words = {"tests": tests, "words": ["--only", "kill/"]}
        self.failed("late", "host-1 (rank 1) ended 99.00 s after host-0 (rank 0) was killed; expected at most 10 s", **words)
        self.failed("blamed", "host-1 (rank 1) blames host-1 (rank 1)", "a dead link to host-0 (rank 0)", **words)
        self.failed("vague", "host-1 (rank 1) does not say in which step and at which link it stood: dead link", **words)

    def test_leftovers(self):
        self.failed("haunted", "process ", " is left: sleep 1000")
        ghost = pathlib.Path("/proc") / (self.path / "log.pid").read_text() / "cmdline"
        self.assertFalse(ghost.exists() and ghost.read_bytes(), "it runs")  # it may be a zombie, if no process waits for orphans
        self.failed("littered", "crumb is left in TMPDIR")

    def test_boards_that_are_too_small(self):
        """A stand-in runs what a board cannot hold, and the line says so. Without a stand-in the tool's line is the error."""
        small = 'device { name: "m0" board: "boards/microbit" instead: "host" wire { carrier: "udp:1,b:2" gateway: "/bin/true" } }'
        rig = RIG.splitlines()[0] + "\n" + small + RIG.splitlines()[1].replace("count: 2", "")
        tests = LIST + 'test { collective: "scan" algorithm: "chain" } rotate: 1 kill {} '
        words = {"rig": rig, "tests": tests}
        status, output = self.run_fake("small", **words, words=["--only", "rotation-1/"])
        self.assertEqual(status, 0, output)
        self.assertIn("images have one program each, because microbit cannot hold all: 2 schedules; board 'microbit' has", output)
        self.assertRegex(output, r"ok      rotation-1/allreduce-chain-8-sum-f32, .* s: linux-x86_64 in place of m0 \(rank 1\): its program "
                                 "needs 4 links, and the board has 3")
        status, output = self.run_fake("small", **words, words=["--only", "rotation-0/"])
        self.assertNotIn("in place of", output)
        self.assertTrue((self.path / "out/flash/rotation-0/allreduce-chain/node-0.flash").exists())
        self.assertTrue((self.path / "out/images/microbit/allreduce-chain/node-0.img").exists())
        tests = tests.replace('"8"', '"833"')
        status, output = self.run_fake("small", rig=rig, tests=tests, words=["--only", "rotation-0/allreduce"])
        self.assertIn("in place of m0 (rank 0): a buffer needs 833 bytes, and its rooms have 832", output)
        status, output = self.run_fake("small", rig=rig, tests=tests, words=["--only", "kill/"])
        self.assertIn("left out kill/microbit: m0 (rank 0): a buffer needs 833 bytes", output)
        self.assertIn("1 passed, 0 failed, 1 left out", output)
        runner = self.start_fake("small", rig.replace('instead: "host"', ""), tests)
        self.assertIn("2 schedules; board 'microbit' has room for 1 program", runner.communicate()[1])
        self.assertEqual(runner.returncode, 2)

    def test_losses(self):
        cluster = self.path / "cluster"
        words = {"tests": LIST + 'spares: "nodes" lose { what: "node:1" }', "words": ["--only", "lose/", "--cluster", cluster]}
        for text, expected in (("echo node 1 lost: all right", 0), ("echo spares-cluster: node 1 lost: node 0 ends >&2; exit 1", 1)):
            cluster.write_text(f"#!/bin/sh\n{text}\n")
            cluster.chmod(0o755)
            status, output = self.run_fake("right", **words)
            self.assertEqual(status, expected, output)
            self.assertRegex(output, r"ok      lose/node-1/0, .* s: node 1 lost: all right" if status == 0 else
                             r"FAILED  lose/node-1/0, .* s: node 1 lost: node 0 ends")

    def test_a_device_that_cannot_be_flashed(self):
        wire = RIG.replace("process { program", 'wire { flash: "echo no such board >&2; false" carrier: "tty:x,1" gateway')
        self.failed("right", "host-0 (rank 0) could not be flashed: no such board", rig=wire)
        slow = wire.replace("echo no such board >&2; false", "sleep 100").replace("limit_s: 60", "limit_s: 1")
        self.failed("right", "host-0 (rank 0) could not be flashed: took too long", rig=slow)


if __name__ == "__main__":
    unittest.main(verbosity=2)
