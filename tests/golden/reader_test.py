#!/usr/bin/python3
"""examples/reader, which follows docs/descriptor.md alone, takes every golden file, and no changed one."""
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
READER, GOLDEN = ROOT / "examples/reader/reader.py", ROOT / "tests/golden/encodings"
FLIPS, SEED = 60, 11  # per file


def topology_of(name):
    """As the page of the golden files says."""
    if any(part in name for part in ("leaf", "in-network", "lowered-")):
        return "fattree:k=3,h=2,c=1"
    if "hosts-" in name:
        return "hosts:3x4"
    if "bidirectional-bucket" in name:
        return "torus:3x4"
    if "bucket" in name or "-mesh-" in name:
        return "mesh:3x4"
    return None if name in ("sample", "table", "selection", "all-to-all-packed-paths") else "complete:13"


def read(file, *more):
    return subprocess.run([sys.executable, READER, file, *more], capture_output=True, text=True, check=False)


class Reader(unittest.TestCase):
    def test_has_80_lines(self):
        self.assertLessEqual(len(READER.read_text().splitlines()), 80)

    def test_descriptors(self):
        files = sorted(GOLDEN.glob("*.binpb"))
        self.assertGreater(len(files), 80)
        for file in files:
            with self.subTest(file=file.name):
                spec = topology_of(file.stem)
                done = read(file, *([spec] if spec else []))
                self.assertEqual(done.returncode, 0, done.stderr)
                if spec:
                    self.assertIn("wrong topology", read(file, spec + "0").stderr)

    def test_files_and_each_changed_bit(self):
        dice = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            changed = pathlib.Path(folder) / "changed.esp"
            for file in sorted(GOLDEN.glob("*.esp")):
                self.assertEqual(read(file).returncode, 0, read(file).stderr)
                good = file.read_bytes()
                for at in [*range(0, 48, 4), *(dice.randrange(len(good)) for _ in range(FLIPS))]:
                    bad = bytearray(good)
                    bad[at] ^= 1 << dice.randrange(8)
                    changed.write_bytes(bad)
                    with self.subTest(file=file.name, at=at):
                        self.assertNotEqual(read(changed).returncode, 0)
                for size in (7, 40, len(good) // 2, len(good) - 1):
                    changed.write_bytes(good[:size])
                    self.assertNotEqual(read(changed).returncode, 0)


if __name__ == "__main__":
    unittest.main()
