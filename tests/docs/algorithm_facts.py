"""What the commands of espalier say about its algorithms: schedules, periods, costs, and which algorithm is the fastest where."""
import dataclasses
import fractions
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pages import size_text

KIBI = 1024
SIZES = [8 << power for power in range(24)]  # 8 B to 64 MiB
PRINTED_SIZES = (8, 64 * KIBI, 64 * KIBI ** 2)
PER_RANK = ("scatter", "gather", "allgather", "reduce-scatter", "all-to-all")  # --bytes are one rank's part
COMBINING = ("reduce", "allreduce", "reduce-scatter")
WINDOW_BLOCKS = 8  # enough for the steady state of few ranks
LAMBDA = "lambda3.textproto"
LAMBDA_MODEL = "link {\n  link_class: FABRIC\n  lambda_permille: 3000\n  line { alpha_ps: 20000000 beta_fs_per_byte: 1000000 }\n}\n"

# By what `espalier list` says of an algorithm's topologies: the small case for a picture, and the three of the tables of steps.
TOPOLOGIES = {
    "any topology": ("complete:8", ("complete:8", "complete:16", "complete:64")),
    "mesh:RxC": ("mesh:3x4", ("mesh:2x4", "mesh:4x4", "mesh:8x8")),
    "meshes, tori and rings": ("mesh:3x4", ("mesh:4x4", "mesh:4x4x4", "torus:8x8")),
    "tori, rings and hypercubes": ("torus:3x3", ("torus:4x4", "torus:4x4x4", "hypercube:4")),
    "tori and rings": ("ring:8", ("ring:16", "torus:4x4", "torus:4x4x4")),
    "crossbar:AxB[xC..]": ("crossbar:2x4", ("crossbar:2x4", "crossbar:4x4", "crossbar:8x8")),
    "hosts:HxR": ("hosts:2x4", ("hosts:2x4", "hosts:4x4", "hosts:8x8")),
    "fattree:k=K,h=H": ("fattree:k=2,h=3,c=1", ("fattree:k=2,h=3,c=1", "fattree:k=4,h=2,c=1", "fattree:k=4,h=3,c=1")),
}
for nodes in (64, 256):
    TOPOLOGIES[f"at most {nodes} nodes of 16 links"] = ("mesh:2x3", ("complete:16", "mesh:4x4", "fattree:k=4,h=2,c=1"))
TOPOLOGIES["fattree:k=K,h=H,c=1"] = TOPOLOGIES["fattree:k=K,h=H"]
TOPOLOGIES["topologies with routers, which run programs too"] = TOPOLOGIES["fattree:k=K,h=H"]
TOPOLOGIES["fat trees, whose routers run programs too"] = TOPOLOGIES["fattree:k=K,h=H"]


class Wrong(Exception):
    """The pages cannot be made; one line says why."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """A topology, and options of `espalier explain`, under which the algorithms are ranked."""
    topology: str
    label: str = ""                  # what the options say, in words
    options: tuple = ()
    collectives: tuple = ()          # empty: all
    plot: str = ""                   # the family in the names of the plots; empty: no plot

    @property
    def name(self):
        return f"`{self.topology}`" + (f", {self.label}" if self.label else "")

    def plot_command(self, collective):
        """The line of a page that says how its plot is drawn."""
        sizes = ",".join(size_text(size).removesuffix(" B").replace(" ", "") for size in SIZES)
        return (f"Picture: {collective} on {self.topology}, time by size: `espalier explain --topology {self.topology} --collective "
                f"{collective} --bytes {sizes} --plot time-{collective}-{self.plot}.svg`")

    def serves(self, collective):
        return not self.collectives or collective in self.collectives


SETTINGS = (
    Setting("complete:16", plot="complete"), Setting("complete:64"), Setting("complete:101"),
    Setting("mesh:4x4", plot="mesh"), Setting("mesh:8x8"), Setting("mesh:8x16", collectives=("broadcast",)),
    Setting("torus:4x4", plot="torus"), Setting("torus:4x4x4"),
    Setting("fattree:k=4,h=2,c=1", plot="fattree"), Setting("fattree:k=4,h=3,c=1"),
    Setting("crossbar:4x4", plot="crossbar"), Setting("crossbar:8x8"),
    Setting("hosts:4x4", plot="hosts"), Setting("hosts:8x8"),
    Setting("complete:16", "the operator does not commute", ("--op", "affine"), COMBINING),
    Setting("complete:16", "the operator does not commute, root 5", ("--op", "affine", "--root", "5"), ("reduce",)),
    Setting("complete:16", "simplex ports", ("--node-ports", "simplex"), ("broadcast", "reduce", "allreduce", "scan", "exscan")),
    Setting("mesh:4x4", "hop by hop", ("--links", "hop-by-hop"), ("broadcast", "reduce", "allreduce", "allgather", "reduce-scatter",
                                                                        "all-to-all")),
    Setting("complete:16", "lambda = 3", ("--model", LAMBDA), ("broadcast", "reduce", "allreduce", "scatter", "gather")),
)


def time_text(picoseconds):
    for unit, name in ((1e12, "s"), (1e9, "ms"), (1e6, "us")):
        if picoseconds >= unit:
            return f"{picoseconds / unit:.4g} {name}"
    return f"{picoseconds} ps"


def data_of(message):
    """The segments and the block of a send or receive."""
    return message["a" if message["kind"] == "send" else "into"]


@dataclasses.dataclass
class Schedule:
    """A compiled schedule on one topology, as `espalier show` prints it; expanded for one N."""
    facts: dict
    steps: str  # formulas in N
    bound: str

    @property
    def programs(self):
        return self.facts["programs"]

    def messages(self, phase=None):
        """(node, instance) of every send and receive, of one phase."""
        for program in self.programs:
            for one in program["steps"]:
                if one["kind"] in ("send", "receive") and phase in (None, program["actions"][one["action"]]["phase"]):
                    yield program["node"], one

    def phases(self):
        """Phase: (first step, number of steps) of those that have messages."""
        steps = {}
        for program in self.programs:
            for one in program["steps"]:
                steps.setdefault(program["actions"][one["action"]]["phase"], []).append(one["step"])
        return {phase: (min(found), max(found) - min(found) + 1) for phase, found in sorted(steps.items())}

    def period_of(self, phase):
        return max(program["phases"][phase]["period"] for program in self.programs for action in program["actions"]
                   if action["phase"] == phase)

    def longest(self):
        """The segments of the longest message of each step that has one."""
        found = {}
        for _, one in self.messages():
            found[one["step"]] = max(found.get(one["step"], 0), data_of(one)["segments"])
        return list(found.values())

    def data_text(self, one):
        """"1.0": block 0 of segment 1; "4-7": whole segments; empty: the whole message."""
        parts = []
        data = data_of(one)
        if self.facts["segments"] > 1:
            last = (data["segment"] + data["segments"] - 1) % self.facts["segments"]
            parts.append(str(data["segment"]) + (f"-{last}" if data["segments"] > 1 else ""))
        if self.facts["cuts_messages"]:
            parts.append(str(data["block"]))
        return ".".join(parts)


class Espalier:
    """Runs the command in a folder of its own."""

    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.path = pathlib.Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, self.path)
        (self.path / LAMBDA).write_text(LAMBDA_MODEL)
        self.list = json.loads(self.run("list", "--format", "json"))

    def try_run(self, *arguments):
        """(output, None) or (None, the command's one line of refusal)."""
        done = subprocess.run([self.program, *arguments], cwd=self.path, capture_output=True, text=True)
        if done.returncode == 2:
            return None, done.stderr.strip().removeprefix("espalier: ")
        if done.returncode != 0:
            raise Wrong(f"espalier {' '.join(arguments)} ends with status {done.returncode}: {done.stderr.strip()}")
        return done.stdout, None

    def run(self, *arguments):
        out, refusal = self.try_run(*arguments)
        if refusal:
            raise Wrong(f"espalier {' '.join(arguments)}: {refusal}")
        return out

    def compile(self, name, topology, collective, algorithm, options=""):
        """The reason of a refusal, or None; the file is `name`."""
        return self.try_run("compile", "--topology", topology, "--collective", collective, "--algorithm", algorithm,
                            *options.split(), "-o", name)[1]

    def show(self, name, blocks=0):
        """The schedule of a file, for the least N >= blocks that it has; not expanded: 0."""
        facts = json.loads(self.run("show", name, "--rank", "0", "--format", "json"))
        formulas = re.search(r"^  steps (.*), at least (.*); ", self.run("show", name, "--rank", "0"), re.MULTILINE).groups()
        if blocks == 0:
            return Schedule(facts, *formulas)
        if not facts["cuts_messages"]:
            blocks = 1
        elif facts["residue_mod"] > 0:
            blocks += (facts["residue"] - blocks) % facts["residue_mod"]
        return Schedule(json.loads(self.run("show", name, "--blocks", str(blocks), "--format", "json")), *formulas)

    def ranking(self, setting, collective, algorithm=None, sizes=SIZES):
        """The sizes of `explain --format json`."""
        arguments = ["explain", "--topology", setting.topology, "--collective", collective, "--format", "json", *setting.options]
        if collective != "barrier":
            arguments += ["--bytes", ",".join(map(str, sizes))]
        if algorithm:
            arguments += ["--algorithm", algorithm]
        out, refusal = self.try_run(*arguments)
        if refusal and not algorithm:
            raise Wrong(f"espalier {' '.join(arguments)}: {refusal}")
        return json.loads(out)["sizes"] if out else []


def period(small, larger):
    """[(phase, first step, number of steps, whether they repeat)]: one period of each phase in the steady state, or all its steps if N
    adds none. `larger` is the same schedule for the next N."""
    found = []
    before, after = small.phases(), larger.phases()
    for phase, (first, steps) in before.items():
        added = after[phase][1] - steps
        if added <= 0:
            found.append((phase, first, steps, False))
            continue
        length = min(steps, max(added, small.period_of(phase)))
        counts = {}
        for _, one in small.messages(phase):
            counts[one["step"]] = counts.get(one["step"], 0) + 1
        starts = range(first, first + steps - length + 1)
        begin = max(starts, key=lambda at: sum(counts.get(step, 0) for step in range(at, at + length)))
        found.append((phase, begin, length, True))
    return found


def share_text(number):
    """A factor of a product: empty for 1."""
    if number == 1:
        return ""
    return (str(number) if number.denominator == 1 else f"{float(number):.5g}") + "*"


def cost_text(schedule, collective):
    """The cost in alpha, beta, m, N."""
    steps, segments = schedule.steps, schedule.facts["segments"]
    longest = schedule.longest()
    if collective == "barrier":
        return f"{share_text(fractions.Fraction(len(longest)))}alpha"
    whole = fractions.Fraction(1, 1 if collective in PER_RANK else segments)
    if not schedule.facts["cuts_messages"]:
        sent = share_text(sum(longest) * whole)
        return f"{share_text(fractions.Fraction(len(longest)))}alpha + {sent}beta*m"
    if max(longest) > 1:
        raise Wrong(f"{collective} by {schedule.facts['algorithm']}: messages of several segments, cut in blocks; give them a cost")
    below = "N" if whole == 1 else f"({whole.denominator}N)"
    product = steps if re.fullmatch(r"\d*N?", steps) else f"({steps})"
    return f"{product} * (alpha + beta*m/{below})"
