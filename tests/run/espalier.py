"""Runs the espalier command for tests. The programs: $ESPALIER, $ESPALIER_NODE (or build/)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))  # sample, processes
COMMAND = os.environ.get("ESPALIER", str(ROOT / "build/tools/espalier"))
os.environ["ESPALIER_TEST_FAULTS"] = "1"  # the commands take --kill and --stop
NODE = os.environ.get("ESPALIER_NODE", str(ROOT / "build/firmware/node/espalier-node"))

# An algorithm for any topology for each collective.
COLLECTIVES = {"broadcast": "two-tree", "reduce": "two-tree", "allreduce": "two-tree", "scan": "two-tree", "exscan": "two-tree",
               "scatter": "binomial", "gather": "binomial", "allgather": "ring", "reduce-scatter": "ring", "all-to-all": "pairwise",
               "barrier": "dissemination"}
PER_RANK = {"scatter", "gather", "allgather", "reduce-scatter", "all-to-all"}
COMBINE = {"reduce", "allreduce", "scan", "exscan", "reduce-scatter"}
ROOTED = {"broadcast", "reduce", "scatter", "gather"}



def offers():
    return told("list")


def call(*words, program=COMMAND):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def said(*words):
    """The command's stdout; its one line of complaint is an AssertionError."""
    done = call(*words)
    assert done.returncode == 0, f"espalier {' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


def told(*words):
    """The command's output as a value."""
    return json.loads(said(*words, "--format", "json"))


def run_words(*words):
    return ["run", *map(str, words), "--node-binary", NODE]


def run_text(*words):
    return call(*run_words(*words))


def run(*words):
    """`espalier run ... --format json`: (exit status, its output as a value or None, stderr)."""
    done = run_text(*words, "--format", "json")
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def what(topology, collective="broadcast", algorithm="two-tree"):
    """The words that name a schedule."""
    return ["--topology", topology, "--collective", collective, "--algorithm", algorithm]


def runs(found):
    """The sizes of a run's output, also if auto took several schedules for them."""
    return [run for schedule in found.get("schedules", [found]) for run in schedule["runs"]]


def keep(collective, folder):
    """The words with which a run leaves all files that it may in the folder: a barrier has no results."""
    return [word for kind in ("output", "events") if (collective, kind) != ("barrier", "output") for word in (f"--{kind}", folder)]


def contents(folder):
    """The bytes of each file in the folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def compile(path, *names, root=0, more=()):
    """Writes the schedule file of what(*names), and returns its path."""
    said("compile", *what(*names), "--root", root, *more, "-o", path)
    return path


def make_flash(path, schedules, board, node):
    """Writes a flash that boots an image of these schedule files."""
    image = path.with_suffix(".image")
    said("image", "build", *schedules, "--board", board, "--node", node, "--release", "1.0.0", "-o", image)
    said("image", "install", image, "--board", board, "--flash", path, "--unsigned", "--confirmed")
    image.unlink()


class Case(unittest.TestCase):
    def right(self, *words):
        """Runs it; every result is right. Returns the run's output."""
        status, found, error = run(*words)
        self.assertEqual(status, 0, f"{words}: {error}{found}")
        self.assertTrue(found["right"], words)
        return found

    def refused(self, done, *texts, status=2):
        """`done` ended with this status and one line, which has all `texts`."""
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (status, "", 1), done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def fails(self, rank, text, *words):
        """The run fails, which `text` and the rank explain."""
        done = run_text(*words)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in (text, f"rank {rank}"):
            self.assertIn(part, done.stderr + done.stdout)


class FolderTest(Case):
    """A test case with a folder, `path`, of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/tmp")  # short enough for the names of sockets
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
