"""Runs the espalier command for tests. The programs: $ESPALIER, $ESPALIER_NODE (or build/)."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("ESPALIER", str(ROOT / "build/tools/espalier"))
NODE = os.environ.get("ESPALIER_NODE", str(ROOT / "build/firmware/node/espalier-node"))


def call(*words, program=COMMAND):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def said(*words):
    """The command's stdout; its one line of complaint is an AssertionError."""
    done = call(*words)
    assert done.returncode == 0, f"espalier {' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


def run(*words):
    """`espalier run ... --format json`: (exit status, its output as a value or None, stderr)."""
    done = call("run", *words, "--node-binary", NODE, "--format", "json")
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def runs(found):
    """The sizes of a run's output, also if auto took several schedules for them."""
    return [run for schedule in found.get("schedules", [found]) for run in schedule["runs"]]


def kept(collective):
    """The kinds of files that a run of it may leave: a barrier has no results."""
    return ("events",) if collective == "barrier" else ("output", "events")


def compile(path, topology, collective="broadcast", algorithm="two-tree", root=0):
    said("compile", "--topology", topology, "--collective", collective, "--algorithm", algorithm, "--root", root, "-o", path)
    return path


class FolderTest(unittest.TestCase):
    """A test case with a folder, `path`, of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
