"""Every algorithm of `espalier list` in three sizes, for the tests of this folder. The command: $ESPALIER (or build/)."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "run"))
from espalier import COMMAND, ROOT, FolderTest, call, said as espalier  # noqa: E402,F401

# By what `espalier list` says of an algorithm's topologies: topologies, each with the blocks per segment that are wanted. The first three
# that an algorithm takes are used.
SIZES = {
    "any topology": (("complete:3", 1), ("complete:8", 3), ("complete:11", 6), ("complete:5", 2), ("complete:9", 4), ("complete:6", 2)),
    "mesh:RxC": (("mesh:2x4", 1), ("mesh:4x4", 3), ("mesh:4x8", 4), ("mesh:8x4", 3), ("mesh:3x4", 2)),
    "meshes, tori and rings": (("mesh:2x4", 1), ("torus:3x4", 1), ("mesh:2x2x3", 1), ("ring:6", 1)),
    "tori, rings and hypercubes": (("ring:5", 1), ("torus:3x4", 2), ("hypercube:3", 3)),
    "tori and rings": (("ring:5", 1), ("torus:3x4", 1), ("torus:2x2x3", 1)),
    "crossbar:AxB[xC..]": (("crossbar:2x4", 1), ("crossbar:4x4", 3), ("crossbar:8x8", 4)),
    "hosts:HxR": (("hosts:2x2", 1), ("hosts:2x4", 3), ("hosts:4x4", 4)),
    "fattree:k=K,h=H": (("fattree:k=2,h=2,c=1", 1), ("fattree:k=2,h=3,c=1", 3), ("fattree:k=4,h=2,c=1", 4)),
}
SIZES["at most 256 nodes of 16 links"] = SIZES["at most 64 nodes of 16 links"] = (("mesh:2x3", 1), ("torus:3x3", 3), ("hypercube:3", 4), ("ring:5", 2))
SIZES["fattree:k=K,h=H,c=1"] = SIZES["fattree:k=K,h=H"]
SIZES["topologies with routers, which run programs too"] = (("fattree:k=2,h=3,c=1", 1), ("crossbar:2x4", 3), ("hosts:3x2", 4))
SIZES["fat trees, whose routers run programs too"] = SIZES["fattree:k=K,h=H"]


def refusal(*words):
    """The one line with which the command refuses bad input; None if it does not."""
    done = call(*words)
    assert done.returncode in (0, 2), f"espalier {' '.join(map(str, words))}: {done.returncode} {done.stderr}"
    assert done.returncode == 0 or (done.stderr.count("\n") == 1 and not done.stdout), done
    return done.stderr.strip() if done.returncode == 2 else None


def algorithms():
    """(collective, algorithm, options of `compile`, ((topology, blocks), ...)) of all that the command lists."""
    return [(one["collective"], one["algorithm"], ["--run-length", "2"] if "--run-length" in one["parameters"] else [],
             SIZES[one["topologies"]]) for one in json.loads(espalier("list", "--format", "json"))]


def compile(path, topology, collective, algorithm, *more):
    """None, or the line with which the algorithm refuses the topology."""
    return refusal("compile", "--topology", topology, "--collective", collective, "--algorithm", algorithm, "-o", path, *more)


def least_blocks(path, wanted):
    """The least N >= wanted that the schedule has; 1 if it has only that."""
    facts = json.loads(espalier("show", path, "--rank", "0", "--format", "json"))
    if not facts["cuts_messages"]:
        return 1
    return wanted + ((facts["residue"] - wanted) % facts["residue_mod"] if facts["residue_mod"] else 0)
