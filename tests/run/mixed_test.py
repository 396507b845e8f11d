#!/usr/bin/python3
"""Four x86-64 and four nodes of another processor (under qemu-user) in one cluster over tcp and mem: every collective is right, and every
rank's bytes and every node's log equal the simulation. PROCESSOR is aarch64, armhf (32 bits) or s390x (big-endian); the test needs its
build (boards/linux-PROCESSOR/README.md).

mixed_test.py PROCESSOR          one size, one of two ways to place them; tcp and mem in turn
mixed_test.py PROCESSOR --whole  more sizes, six ways to place them, both providers
"""
import shutil
import sys
import unittest

import espalier
from espalier import COLLECTIVES, COMBINE, keep

PROCESSOR = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "aarch64"
NODE = espalier.ROOT / f"build-{PROCESSOR}/firmware/node/espalier-node"
EMULATOR = {"aarch64": "qemu-aarch64", "armhf": "qemu-arm", "s390x": "qemu-s390x"}[PROCESSOR]
# Where the emulator finds libraries.
LIBRARIES = "/" if PROCESSOR == "aarch64" else f"'{espalier.ROOT / f'build-root-{PROCESSOR}'}'"
WHOLE = "--whole" in sys.argv
PLACES = ["4-7", "0,2,4,6", "1,3,5,7", "0-3", "0,1,6,7", "2-5"] if WHOLE else ["4-7", "0,2,4,6"]
PROVIDERS = ["tcp", "mem"]
SIZES = [8, 1000, 100000] if WHOLE else [20000]


class Mixed(espalier.FolderTest):
    equal = dict.fromkeys(PROVIDERS, 0)  # provider -> runs

    def test_every_collective(self):
        for at, (collective, algorithm) in enumerate(COLLECTIVES.items()):
            for size in [0] if collective == "barrier" else SIZES:
                file = espalier.compile(self.path / "schedule.esp", "complete:8", collective, algorithm)
                what = [file, "--bytes", size, *(["--type", "f32"] if collective in COMBINE else [])]
                expected = self.path / f"simulated-{collective}-{size}"
                espalier.said("simulate", *what, *keep(collective, expected))
                for places in PLACES if WHOLE else PLACES[at % 2:][:1]:
                    for provider in PROVIDERS if WHOLE else PROVIDERS[at // 2 % 2:][:1]:
                        with self.subTest(collective=collective, size=size, other=places, provider=provider):
                            found = self.path / "run"
                            self.same_as(expected, found, [*what, *keep(collective, found)], places, provider)

    def same_as(self, expected, found, what, places, provider):
        value = self.right(*what, "--provider", provider, "--deadline", 60000, "--start", f"{places}={EMULATOR} -L {LIBRARIES} '{NODE}'")
        self.assertEqual(len(value["runs"][0]["ranks"]), 8)
        self.assertEqual(len(list(expected.glob("*.events"))), 8)
        self.assertEqual(espalier.contents(found), espalier.contents(expected))
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
