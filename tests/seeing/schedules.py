"""Schedule files and the output of `espalier show` for them, for the tests of this folder."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))
from espalier import COMMAND, ROOT, FolderTest, call, said as espalier  # noqa: E402,F401


def compile(path, topology, collective, algorithm, *more):
    espalier("compile", "--topology", topology, "--collective", collective, "--algorithm", algorithm, "-o", path, *more)
    return path


class Shown:
    """A schedule expanded for N = blocks."""

    def __init__(self, path, blocks):
        self.json = json.loads(espalier("show", path, "--blocks", blocks, "--format", "json"))
        self.topology = json.loads(espalier("topology", self.json["topology"], "--format", "json"))
        self.programs = self.json["programs"]
        self.steps = 1 + max((its["step"] for program in self.programs for its in program["steps"]), default=-1)

    def of(self, node, *kinds):
        return [its for its in self.programs[node]["steps"] if not kinds or its["kind"] in kinds]

    def transfers(self, step=None):
        """(step, from, to, segment, block) of each send."""
        found = []
        for program in self.programs:
            for its in program["steps"]:
                if its["kind"] != "send" or (step is not None and its["step"] != step):
                    continue
                found.append((its["step"], program["node"], its["peer"], its["a"]["segment"], its["a"]["block"]))
        return sorted(found)
