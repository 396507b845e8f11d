#!/usr/bin/python3
"""Four x86-64 and four nodes of another processor (under qemu-user) in one cluster over tcp and mem: every collective is right, and every
rank's bytes and every node's log equal the simulation. PROCESSOR is aarch64, armhf (32 bits) or s390x (big-endian); the test needs its
build (boards/linux-PROCESSOR/README.md).

mixed_test.py PROCESSOR          one size, one of two ways to place them; tcp and mem in turn
mixed_test.py PROCESSOR --whole  more sizes, six ways to place them, both providers
"""
import filecmp
import pathlib
import shutil
import sys
import tempfile
import unittest

import espalier

PROCESSOR = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "aarch64"
NODE = espalier.ROOT / f"build-{PROCESSOR}/firmware/node/espalier-node"
EMULATOR = {"aarch64": "qemu-aarch64", "armhf": "qemu-arm", "s390x": "qemu-s390x"}[PROCESSOR]
# Where the emulator finds libraries.
LIBRARIES = "/" if PROCESSOR == "aarch64" else f"'{espalier.ROOT / f'build-root-{PROCESSOR}'}'"
COLLECTIVES = [("broadcast", "two-tree"), ("reduce", "two-tree"), ("allreduce", "two-tree"), ("scan", "two-tree"),
               ("exscan", "two-tree"), ("scatter", "binomial"), ("gather", "binomial"), ("allgather", "ring"),
               ("reduce-scatter", "ring"), ("all-to-all", "pairwise"), ("barrier", "dissemination")]
COMBINE = ("reduce", "allreduce", "scan", "exscan", "reduce-scatter")
WHOLE = "--whole" in sys.argv
PLACES = ["4-7", "0,2,4,6", "1,3,5,7", "0-3", "0,1,6,7", "2-5"] if WHOLE else ["4-7", "0,2,4,6"]
PROVIDERS = ["tcp", "mem"]
SIZES = [8, 1000, 100000] if WHOLE else [20000]


class Mixed(unittest.TestCase):
    equal = dict.fromkeys(PROVIDERS, 0)  # provider -> runs

    @staticmethod
    def kept(collective, folder):
        return [word for what in espalier.kept(collective) for word in (f"--{what}", folder)]

    def test_every_collective(self):
        for at, (collective, algorithm) in enumerate(COLLECTIVES):
            for size in [0] if collective == "barrier" else SIZES:
                with tempfile.TemporaryDirectory() as folder:
                    file = espalier.compile(pathlib.Path(folder) / "schedule.esp", "complete:8", collective, algorithm)
                    what = [file, "--bytes", size, *(["--type", "f32"] if collective in COMBINE else [])]
                    expected = pathlib.Path(folder) / "simulated"
                    done = espalier.call("simulate", *what, *self.kept(collective, expected))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for places in PLACES if WHOLE else PLACES[at % 2:][:1]:
                        for provider in PROVIDERS if WHOLE else PROVIDERS[at // 2 % 2:][:1]:
                            with self.subTest(collective=collective, size=size, other=places, provider=provider):
                                found = pathlib.Path(folder) / "run"
                                self.same_as(expected, found, [*what, *self.kept(collective, found)], places, provider)

    def same_as(self, expected, found, what, places, provider):
        status, value, error = espalier.run(*what, "--provider", provider, "--deadline", 60000,
                                            "--start", f"{places}={EMULATOR} -L {LIBRARIES} '{NODE}'")
        self.assertEqual(status, 0, error)
        self.assertEqual(len(value["runs"][0]["ranks"]), 8)
        names = sorted(path.name for path in expected.iterdir())
        self.assertEqual(sum(name.endswith(".events") for name in names), 8)
        self.assertEqual(sorted(path.name for path in found.iterdir()), names)
        self.assertEqual(filecmp.cmpfiles(expected, found, names, shallow=False)[1:], ([], []))
        shutil.rmtree(found)
        self.equal[provider] += 1

    @classmethod
    def tearDownClass(cls):
        for provider, runs in cls.equal.items():
            print(f"{runs} runs over {provider} equal the simulation", flush=True)


if __name__ == "__main__":
    if not NODE.exists() or shutil.which(EMULATOR) is None:
        print(f"no {NODE} or no {EMULATOR}: ./setup.sh {PROCESSOR}, ninja -C build-{PROCESSOR} firmware/node/espalier-node")
        sys.exit(77)
    sys.argv = [word for word in sys.argv if word != "--whole"]
    unittest.main()
