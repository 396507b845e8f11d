"""The proofs of docs/results/verify.md: their list, and the cost of each. Every proof is a process of its own."""
import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

ANYWHERE, ROUTERS = "any topology", "fat trees, whose routers run programs too"
WITH_ROUTERS = "topologies with routers, which run programs too"
# Collectives whose rank-local algorithms are proven for a million ranks.
FOR_A_MILLION = ("broadcast", "reduce", "allreduce", "scan", "exscan", "barrier")
PARAMETERS = {(): ("",), ("--run-length",): ("--run-length 4",), ("--lambda",): ("--lambda 2", "--lambda 9/5"),
              ("--radix", "--lambda"): ("--radix 4", "--radix 3 --lambda 9/5"),
              ("--lambda", "--ratio"): ("--lambda 2", "--lambda 9/5 --ratio 29/50")}
# Topologies by what `espalier list` says an algorithm is for.
ROUTED = {
    "64": {ANYWHERE: ("complete:64",), ROUTERS: ("fattree:k=4,h=3,c=1", "fattree:k=2,h=6,c=k", "fattree:k=8x4x2,c=1"),
           "mesh:RxC": ("mesh:8x8",), "meshes, tori and rings": ("mesh:8x8", "torus:8x8"), "tori and rings": ("torus:8x8", "torus:4x4x4"),
           "tori, rings and hypercubes": ("torus:4x8", "hypercube:5"), "crossbar:AxB[xC..]": ("crossbar:8x8", "crossbar:2x4x8"),
           "at most 256 nodes of 16 links": ("mesh:8x8", "torus:8x8"), "at most 64 nodes of 16 links": ("torus:4x8", "hypercube:5"),
           WITH_ROUTERS: ("fattree:k=4,h=3,c=1", "crossbar:8x8", "crossbar:2x4x8", "hosts:8x8"),
           "hosts:HxR": ("hosts:8x8", "hosts:4x16"),
           "fattree:k=K,h=H,c=1": ("fattree:k=4,h=3,c=1", "fattree:k=8x4x2,c=1"),
           "fattree:k=K,h=H": ("fattree:k=4,h=3,c=1", "fattree:k=2,h=6,c=k", "fattree:k=8x4x2,c=1")},
    "1,024": {ANYWHERE: ("complete:1024",), ROUTERS: ("fattree:k=4,h=5,c=1", "fattree:k=32,h=2,c=1", "fattree:k=16x8x8,c=1"),
              "mesh:RxC": ("mesh:16x16", "mesh:32x32"), "meshes, tori and rings": ("mesh:32x32", "torus:32x32"),
              "tori and rings": ("torus:32x32", "torus:8x8x16"), "crossbar:AxB[xC..]": ("crossbar:32x32", "crossbar:4x8x32"),
              WITH_ROUTERS: ("fattree:k=4,h=5,c=1", "crossbar:8x8x16"),
              "hosts:HxR": ("hosts:64x16",), "fattree:k=K,h=H,c=1": ("fattree:k=4,h=5,c=1",),
              "fattree:k=K,h=H": ("fattree:k=4,h=5,c=1",)},
    "1,048,576": {ANYWHERE: ("complete:1048576",), ROUTERS: ("fattree:k=4,h=10,c=1", "fattree:k=32x16x8x4x4x4x4,c=1")},
}
HOP_BY_HOP = {
    "64": {ANYWHERE: ("mesh:8x8", "fattree:k=4,h=3,c=1", "fattree:k=8x4x2,c=1", "crossbar:2x4x8"),
           "mesh:RxC": ("mesh:8x8",), "meshes, tori and rings": ("mesh:8x8", "torus:8x8"), "tori and rings": ("torus:8x8", "torus:4x4x4"),
           "tori, rings and hypercubes": ("torus:4x8", "hypercube:5"), "crossbar:AxB[xC..]": ("crossbar:8x8", "crossbar:2x4x8"),
           "hosts:HxR": ("hosts:8x8",)},
    "256": {ANYWHERE: ("mesh:16x16", "fattree:k=4,h=4,c=1"), "mesh:RxC": ("mesh:16x16",),
            "crossbar:AxB[xC..]": ("crossbar:16x16", "crossbar:4x4x16")},
    "1,024": {ANYWHERE: ("mesh:32x32", "fattree:k=4,h=5,c=1"), "mesh:RxC": ("mesh:32x32",),
              "crossbar:AxB[xC..]": ("crossbar:32x32", "crossbar:4x8x32")},
}
# In the rows of algorithms for odd numbers of ranks these topologies take the place of the others.
ODD = {"complete:64": "complete:63", "complete:1024": "complete:1023", "complete:1048576": "complete:1048575",
       "mesh:8x8": "mesh:7x9", "fattree:k=4,h=3,c=1": "fattree:k=3,h=4,c=1",
       "fattree:k=8x4x2,c=1": "fattree:k=9x7,c=1", "crossbar:2x4x8": "crossbar:3x3x7",
       "mesh:16x16": "mesh:15x17", "fattree:k=4,h=4,c=1": "fattree:k=3,h=5,c=1",
       "mesh:32x32": "mesh:31x33", "fattree:k=4,h=5,c=1": "fattree:k=3,h=6,c=1"}

# A circulant broadcast has three progressions per rank and doubling of the ranks: a million ranks take minutes.
FEWER = {("broadcast", "circulant", "complete:1048576"): "complete:65536"}


@dataclasses.dataclass(frozen=True)
class Case:
    """A proof's subject: a rank-local algorithm as its programs are generated, any other from its file."""
    collective: str
    algorithm: str
    topology: str
    parameters: str = ""  # "--run-length 4"
    hop_by_hop: bool = False
    searched: bool = False

    def words(self):
        return ["--topology", self.topology, "--collective", self.collective, "--algorithm", self.algorithm,
                *self.parameters.split(), *(["--links", "hop-by-hop"] if self.hop_by_hop else [])]


@dataclasses.dataclass(frozen=True)
class Proof:
    verdict: dict   # as `espalier verify --format json` prints it; None: refused
    refusal: str    # the line that says why
    seconds: float  # of processor time
    memory: int     # bytes, at most

    def exact(self):
        """The cells of a row that are the same on every machine."""
        if self.verdict is None:
            return [f"refused: {self.refusal}"] + 5 * ["-"]
        reason = "" if self.verdict["for_all"] else f": {self.verdict['limited']}"
        counts = [self.verdict[name] for name in ("proven_blocks", "progressions", "instances", "checks")]
        return [self.verdict["proven_for"] + reason, self.verdict["steps"], *map(str, counts)]

    def operations(self):
        """The verifier's operations, counted."""
        return sum(self.verdict[name] for name in ("progressions", "instances", "checks"))


def cases_of(algorithms, by_place, hop_by_hop):
    cases = []
    for row in algorithms:
        for topology in by_place.get(row["topologies"], ()):
            if row["needs_odd_ranks"]:
                topology = ODD[topology]
            topology = FEWER.get((row["collective"], row["algorithm"], topology), topology)
            cases += [Case(row["collective"], row["algorithm"], topology, parameters, hop_by_hop, row["searched"])
                      for parameters in PARAMETERS[tuple(row["parameters"])]]
    return cases


def sections(program):
    """The page's tables: (ranks, cases) each; ranks: "1,024", or "1,024 hop-by-hop" for `--links hop-by-hop`. Every algorithm that
    `espalier list` prints has rows."""
    listed = json.loads(subprocess.run([program, "list", "--format", "json"], check=True, stdout=subprocess.PIPE).stdout)
    unknown = {row["topologies"] for row in listed} - ROUTED["64"].keys()
    assert not unknown, f"ROUTED has no topology for algorithms that are for {unknown}"
    local = [row for row in listed if row["collective"] in FOR_A_MILLION and not row["searched"]]
    found = [(ranks, cases_of(local if ranks == "1,048,576" else listed, by_place, False))
             for ranks, by_place in ROUTED.items()]
    return found + [(f"{ranks} hop-by-hop", cases_of(listed, by_place, True)) for ranks, by_place in HOP_BY_HOP.items()]


def run(words):
    """(its output, its one line of complaint, seconds of processor time, bytes of memory)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        printed, complaint = out.read(), err.read().strip()
    if process.returncode not in (0, 2) or (process.returncode == 2) != complaint.startswith("espalier: "):
        raise AssertionError(f"{' '.join(words)}: exit status {process.returncode}: {complaint}")
    return printed, complaint.removeprefix("espalier: "), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def prove(program, case, *options):
    """Proves `case` in a process of its own; where programs are searched or lowered, another makes the file before."""
    with tempfile.TemporaryDirectory() as folder:
        words = case.words()
        if case.searched or case.hop_by_hop:
            words = [str(pathlib.Path(folder) / "schedule.esp")]
            _, refusal, seconds, memory = run([program, "compile", "--no-verify", *case.words(), "-o", *words])
            if refusal:
                return Proof(None, refusal, seconds, memory)
        printed, refusal, seconds, memory = run([program, "verify", *words, *options, "--format", "json"])
    return Proof(json.loads(printed) if not refusal else None, refusal, seconds, memory)
