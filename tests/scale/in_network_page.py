#!/usr/bin/python3
"""What combining inside the network takes: steps by topology, and an allreduce next to the best direct one, by size.

in_network_page.py ESPALIER                          prints docs/results/in_network.md
in_network_page.py --check ESPALIER PAGE             compares it with PAGE; exit status 1 if they differ
in_network_page.py --plot ESPALIER LINE_PLOT FOLDER  draws its plot into FOLDER
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pages

COLLECTIVES = ("broadcast", "reduce", "allreduce", "scan", "exscan", "barrier")
TOPOLOGIES = ("fattree:k=2,h=1,c=1", "fattree:k=2,h=3,c=1", "fattree:k=4,h=3,c=1", "fattree:k=4,h=5,c=1", "fattree:k=8x4x2,c=1",
              "crossbar:8x8", "crossbar:2x4x8", "hosts:8x8")
TREE = "fattree:k=4,h=3,c=1"
SIZES = [8 * 8 ** power for power in range(8)] + [64 << 20]
MODEL = "link {\n  link_class: FABRIC\n  line { alpha_ps: 20000000 beta_fs_per_byte: 1000000 }\n}\n"
ALPHA, BETA = "20e-6", "1e-9"
PLOT = "in_network-allreduce.svg"
HEAD = f"""# Combining inside the network

Written by `tests/scale/in_network_page.py build/tools/espalier >docs/results/in_network.md`; a test compares it.
[in-network](../algorithms/in-network.md) is the algorithm: routers combine what comes up a breadth-first tree from the centre of the
topology, and replicate what goes down.

## Steps

*nodes*: ranks and routers; all of them have programs. The columns have the steps of N blocks, proven for every N that occurs, and after
"of" the greatest lower bound if that is less. Roots are rank 0. Links of crossbars between modules have two lanes, of which the tree uses
one; therefore the bounds there are about half.
"""
TREE_HEAD = f"""
## Next to the best direct allreduce

An allreduce on `{TREE}`: 64 ranks, 21 routers, 2h + N - 1 = N + 5 steps. *Direct*: the ranks alone have programs, and the fabric routes
cut-through; the routers only forward. The algorithm is the one that `espalier explain --all` predicts to be the fastest of those for that
size. Both have the block table that the default model gives (alpha = 20 us, beta = 1 ns/B). The times are those of
`espalier simulate --no-data --alpha {ALPHA} --beta {BETA}` running freely; the time to combine is not in them.

`tests/scale/in_network_page.py --plot build/tools/espalier build/tests/bench/line-plot build/docs/pictures` draws:

- `{PLOT}`: allreduce on {TREE}, time by size

"""


class Tool:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.model = self.folder / "model.textproto"
        self.model.write_text(MODEL)

    def json(self, *words):
        done = subprocess.run([self.program, *map(str, words), "--format", "json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"in_network_page.py: espalier {' '.join(map(str, words))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def compile(self, topology, collective, algorithm, *more):
        """What the command says of the schedule, and its file."""
        file = self.folder / "schedule.esp"
        return self.json("compile", "--topology", topology, "--collective", collective, "--algorithm", algorithm, "-o", file,
                         *more), file

    def steps(self, topology, collective):
        """("85", "N+5 of N+3"): nodes and steps."""
        made, file = self.compile(topology, collective, "in-network")
        verdict = self.json("verify", file)
        if not verdict["for_all"]:
            sys.exit(f"in_network_page.py: {collective} on {topology} is not proven for every N")
        steps, bound = verdict["steps"], verdict["bound"]
        return str(made["nodes"]), steps if steps == bound else f"{steps} of {bound}"

    def time(self, candidate, size):
        parameters = [word for name in ("run_length", "radix", "lambda", "ratio", "embedding") if candidate[name]
                      for word in ("--" + name.replace("_", "-"), candidate[name])]
        _, file = self.compile(TREE, "allreduce", candidate["algorithm"], "--model", self.model, *parameters)
        return self.json("simulate", file, "--bytes", size, "--no-data", "--alpha", ALPHA, "--beta", BETA)


def time_text(seconds):
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def against_direct(tool):
    """The rows of the table, and the plot's two lines."""
    ranked = tool.json("explain", "--topology", TREE, "--collective", "allreduce", "--all", "--model", tool.model, "--bytes",
                       ",".join(map(str, SIZES)))
    rows, inside, direct = [], [], []
    for size in ranked["sizes"]:
        many = size["bytes"]
        best = next(one for one in size["ranking"] if one["algorithm"] != "in-network")
        ours = next(one for one in size["ranking"] if one["algorithm"] == "in-network")
        one, other = tool.time(ours, many), tool.time(best, many)
        if one["simulated_steps"] != 2 * 3 + one["blocks"] - 1:
            sys.exit(f"in_network_page.py: {one['simulated_steps']} steps of {one['blocks']} blocks; expected 2h + N - 1")
        inside.append([many, one["simulated_seconds"] * 1e6])
        direct.append([many, other["simulated_seconds"] * 1e6])
        rows.append([pages.size_text(many), str(one["blocks"]), str(one["simulated_steps"]), time_text(one["simulated_seconds"]),
                     f"[{best['candidate']}](../algorithms/{best['algorithm']}.md)", str(other["blocks"]),
                     str(other["simulated_steps"]), time_text(other["simulated_seconds"]),
                     f"{other['simulated_seconds'] / one['simulated_seconds']:.2f}"])
    return rows, [{"name": "in-network", "points": inside}, {"name": "best direct", "points": direct}]


def page(program):
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(program, folder)
        steps = []
        for topology in TOPOLOGIES:
            cells = [tool.steps(topology, collective) for collective in COLLECTIVES]
            steps.append([f"`{topology}`", cells[0][0], *(text for _, text in cells)])
        head = ("bytes", "N", "steps", "in-network", "best direct", "N", "steps", "direct", "times in-network")
        return (HEAD + "\n" + pages.markdown(("topology", "nodes", *COLLECTIVES), steps) + TREE_HEAD +
                pages.markdown(head, against_direct(tool)[0]))


def plot(program, line_plot, folder):
    with tempfile.TemporaryDirectory() as work:
        content = {"title": f"allreduce on {TREE}, simulated", "x": {"name": "bytes", "logarithmic": True, "is_bytes": True},
                   "y": {"name": "us", "logarithmic": True, "is_bytes": False}, "lines": against_direct(Tool(program, work))[1]}
    drawn = subprocess.run([line_plot], input=json.dumps(content), capture_output=True, text=True, check=True).stdout
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(folder) / PLOT).write_text(drawn)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plot"]:
        plot(*sys.argv[2:])
    else:
        pages.main(page, "tests/scale/in_network_page.py")
