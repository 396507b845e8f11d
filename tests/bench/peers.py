#!/usr/bin/python3
"""Espalier next to Open MPI, MPICH and Gloo: docs/results/peers.md. Places of hosts need root.

peers.py --out FILE [--places ...] [--collectives ...] [--sizes ...] [--contestants ...] [--quick]
    measures, and adds the repetitions to those that FILE has of the same commit; those of another commit go
peers.py --out FILE --profile [--places ...]
    samples where the time of Espalier's collectives goes, and puts it into FILE; needs perf, and root
peers.py --page FILE... [--whole FOLDER] or --page FILE... --plots FOLDER
    prints the page of these files, and writes all rows as peers.csv; or draws its plots

Places: hosts-P, P network namespaces with shaped links of 100 Mbit/s (lab.sh); machine-P, P processes on this machine. Contestants:
- espalier: espalier-bench under `espalier launch`
- shared, between processes of this machine: the same, with buffers of espalier::allocate()
- measured: espalier with the model that `espalier measure` fits to the place
- openmpi and mpich: as they come
- forced, on hosts: the best setting of peers_forced.toml for the collective and the size
- gloo: its tcp
All have one protocol (communicator/bench, peers_protocol.h): every result is checked, the time is that of the slowest rank. They take
turns, a batch of repetitions each, in processes that are started anew for each batch.
"""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import peers_page
import peers_profile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = str(ROOT / "tests/bench/lab.sh")
COLLECTIVES = ("broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather", "reduce-scatter", "all-to-all", "barrier")
PER_RANK = ("scatter", "gather", "allgather", "reduce-scatter", "all-to-all")
SIZES = (8, 64, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20)
PREDICTED_FROM = 1 << 20
CONTESTANTS = ("espalier", "shared", "measured", "openmpi", "mpich", "forced", "gloo")
NOT_IN_GLOO = ("scan", "exscan", "reduce-scatter")
SHORT, LONG, BATCHES = peers_page.SHORT, peers_page.LONG, peers_page.BATCHES
QUICK = {0: (2, 3, 1, "warm,cold"), SHORT: (2, 2, 1, "warm"), LONG: (2, 1, 1, "warm")}
HANG_S = 600
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "IPATH_NO_BACKTRACE": "1"}
# Each rank has a processor of its own, where there are enough.
PINNED = ["sh", "-c", 'exec taskset -c "${ESPALIER_RANK:-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" "$@"', "pinned"]
FORCED = tomllib.loads((ROOT / "tests/bench/peers_forced.toml").read_text())


class Failed(Exception):
    pass


def start(command, **more):
    """Starts a process group of its own."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env={**os.environ, **AS_ROOT, **more})


def output(process, what):
    """What the process printed; it is killed if it hangs."""
    try:
        out, err = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Failed(f"{what} hung for {HANG_S} s") from None
    if process.returncode:
        raise Failed(f"{what}: exit status {process.returncode}\n{out[-2000:]}{err[-2000:]}")
    return out


class Place:
    """Where the ranks run: `with` makes the hosts."""

    def __init__(self, name, build):
        self.name, self.build = name, build
        self.kind, ranks = name.rsplit("-", 1)
        self.is_lab, self.ranks = self.kind == "hosts", int(ranks)
        self.yields = self.ranks > os.cpu_count()  # the hosts of the lab have this machine's processors, too
        self.ends = contextlib.ExitStack()
        self.model = None

    def __enter__(self):
        self.folder = self.ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-peers-"))
        if not self.is_lab:
            return self
        lock = self.ends.enter_context(open("/run/lock/espalier-peers", "w", encoding="utf-8"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("peers.py: another run has the hosts; wait for its end")
        folder = self.folder
        os.environ.update(ESPALIER_LAB=f"{folder}/lab", ESPALIER_LAB_NAME="peers")
        subprocess.run([LAB, "down"], check=True)  # left by a killed run
        self.ends.callback(subprocess.run, [LAB, "down"])
        subprocess.run([LAB, "up", str(self.ranks), "100"], check=True)
        self.agent = pathlib.Path(folder) / "rsh"
        self.agent.write_text(f'#!/bin/sh\nexec {LAB} rsh "$@"\n')
        self.agent.chmod(0o755)
        self.hostfile = f"{folder}/lab/hostfile"
        self.mpich_hosts = f"{folder}/mpich"
        pathlib.Path(self.mpich_hosts).write_text("".join(f"peers{host}:1\n" for host in range(self.ranks)))
        return self

    def __exit__(self, *exception):
        self.ends.close()

    def on(self, host):
        return [LAB, "on", str(host)] if self.is_lab else []

    def program(self, name):
        return [*([] if self.yields else PINNED), str(self.build / name)]

    def ring(self, size):
        """The seconds that `size` bytes took on each host, all sending right and receiving left at once; nothing without links."""
        if not self.is_lab:
            return []
        ring = self.build / "tests/bench/ring"
        running = [start([*self.on(host), str(ring), str(host), str(self.ranks), str(size), "2"]) for host in range(self.ranks)]
        return [float(line) for process in running for line in output(process, "the raw ring").split()]

    def measured(self, words, setting):
        """Espalier with a model of this place, which is fitted once."""
        if not self.model:
            self.model = f"{self.folder}/model"
            links = ["--provider", "tcp", "--launch-prefix", "ip netns exec peers%r", "--address", "10.79.0.%n"] if self.is_lab else ["--provider", "mem"]
            counts = [count for count in (2, 4, 7) if count < self.ranks]
            receivers = ["--receivers", ",".join(map(str, counts))] if counts else []
            nodes = str(max([1, *counts]) + 1)  # the measurement's, all of this machine
            output(start([str(self.build / "tools/espalier"), "measure", *links, *receivers, "--ranks-per-host", nodes, "-o", self.model]),
                   "espalier measure")
        return self.espalier(words, setting, "--model", self.model)

    def predicted(self, collective, size, algorithm):
        """The us that the model of measured() predicts for what it chose. `size`: of the whole message, or of each rank's part."""
        out = output(start([str(self.build / "tools/espalier"), "explain", "--topology", f"complete:{self.ranks}", "--collective", collective,
                            "--bytes", str(size), "--model", self.model, "--all", "--format", "json"]), "espalier explain")
        ranking = json.loads(out)["sizes"][0]["ranking"]
        found = [row["predicted_ps"] / 1e6 for row in ranking if row["candidate"] == algorithm]
        if not found:
            raise Failed(f"espalier explain does not rank {algorithm}, which was chosen for {collective} of {size} bytes")
        return found[0]

    def espalier(self, words, setting, *options):
        return re.sub(r"^\[0\] ", "", output(start(self.espalier_command(words, *options)), "espalier"), flags=re.M)

    def espalier_command(self, words, *options):
        hosts = ["--hosts", ",".join(f"peers{host}" for host in range(self.ranks)), "--rsh", f"{LAB} rsh"] if self.is_lab else []
        collectives, sizes, starts, repetitions, warmups = words
        started = [] if "," in starts else ["--start", starts]
        sized = ["--bytes", sizes] if sizes else []
        return [*self.on(0), str(self.build / "tools/espalier"), "launch", "-n", str(self.ranks), *hosts,
                *self.program("communicator/bench/espalier-bench"), "--collective", collectives, *sized, *started, *options,
                "--repeat", repetitions, "--warmup", warmups, "--format", "json"]

    def shared(self, words, setting):
        return self.espalier(words, setting, "--shared")

    def openmpi(self, words, setting):
        options = ["--mca", "mpi_yield_when_idle", "1"] if self.yields else []
        if setting:
            collective = {"broadcast": "bcast", "all-to-all": "alltoall"}.get(words[0], words[0].replace("-", "_"))
            algorithm, _, segment = setting.partition("/")
            options += ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", f"coll_tuned_{collective}_algorithm", algorithm]
            if segment:
                options += ["--mca", f"coll_tuned_{collective}_algorithm_segmentsize", segment]
        if self.is_lab:
            options += ["--hostfile", self.hostfile, "--map-by", "node", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(self.agent),
                        "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "routed", "direct", "--mca", "oob_tcp_if_include", "eth0",
                        "--mca", "btl_tcp_if_include", "eth0", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        else:
            options += ["--oversubscribe"]
        return output(start([*self.on(0), "mpirun.openmpi", "-np", str(self.ranks), "--bind-to", "none", *options,
                             *self.program("tests/bench/peers-mpi-openmpi"), *with_size(words)]), f"Open MPI {setting}")

    def mpich(self, words, setting):
        settings = mpich_variables(words[0], setting)
        if self.yields:
            settings["LD_PRELOAD"] = str(self.build / "tests/bench/libyield-when-idle.so")
        options = []
        if self.is_lab:
            settings.update(UCX_TLS="tcp,self", UCX_NET_DEVICES="eth0")
            options = ["-launcher", "rsh", "-launcher-exec", str(self.agent), "-f", self.mpich_hosts, "-iface", "eth0", "-ppn", "1"]
        passed = [word for name, value in settings.items() for word in ("-genv", name, value)]
        return output(start([*self.on(0), "mpiexec.hydra", *options, "-bind-to", "none", *passed, "-n", str(self.ranks),
                             *self.program("tests/bench/peers-mpi-mpich"), *with_size(words)]), f"MPICH {setting}")

    def gloo(self, words, _):
        with tempfile.TemporaryDirectory(prefix="espalier-gloo-") as store:
            running = [start([*self.on(rank), *self.program("tests/bench/peers-gloo"), str(rank), str(self.ranks),
                              f"10.79.0.{rank + 1}" if self.is_lab else "127.0.0.1", store, *with_size(words)], PMI_RANK=str(rank))
                       for rank in range(self.ranks)]
            return "".join(output(process, "Gloo") for process in running)


def with_size(words):
    """The arguments with a size for a barrier, too."""
    return [words[0], words[1] or "0", *words[2:]]


def mpich_variables(collective, setting):
    """The control variables of a setting."""
    if not setting:
        return {}
    name = {"broadcast": "BCAST", "all-to-all": "ALLTOALL"}.get(collective, collective.replace("-", "_").upper())
    algorithm, _, segment = setting.partition("/")
    variables = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", f"MPIR_CVAR_{name}_INTRA_ALGORITHM": algorithm}
    if not algorithm.startswith("tsp_"):
        return variables
    variables[f"MPIR_CVAR_{name}_INTRA_ALGORITHM"] = "nb"
    tree = re.fullmatch(r"tsp_(kary|knomial)([0-9]+)", algorithm)
    variables[f"MPIR_CVAR_I{name}_INTRA_ALGORITHM"] = "tsp_tree" if tree else algorithm
    if tree:
        variables.update({f"MPIR_CVAR_I{name}_TREE_TYPE": {"kary": "kary", "knomial": "knomial_1"}[tree[1]],
                          f"MPIR_CVAR_I{name}_TREE_KVAL": tree[2], f"MPIR_CVAR_I{name}_TREE_PIPELINE_CHUNK_SIZE": segment})
    elif segment:
        variables[f"MPIR_CVAR_I{name}_RING_CHUNK_SIZE"] = segment
    return variables


def forced_setting(place, collective, size):
    """The library and its best setting; None: there is none, or the best is how a library comes."""
    lists = FORCED.get("hosts-16" if place.ranks > 8 else "hosts-8") if place.is_lab else None
    if lists is None:
        return None
    sizes = FORCED["sizes"] if collective != "barrier" else [0]
    index = min(range(len(sizes)), key=lambda i: (max(sizes[i], size) / max(1, min(sizes[i], size)), -i))
    return tuple(lists[collective][index].split()) or None


def batches(place, contestant, collective, sizes):
    """What a contestant starts for these sizes: (library, setting, sizes)."""
    if (contestant == "gloo" and collective in NOT_IN_GLOO) or (contestant == "shared" and (place.is_lab or collective == "barrier")):
        return []
    if contestant != "forced":
        return [(contestant, "", sizes)]
    found = {}
    for size in sizes:
        if setting := forced_setting(place, collective, size):
            found.setdefault(setting, []).append(size)
    return [(*setting, sizes) for setting, sizes in found.items()]


def run(place, library, setting, collective, sizes, batch):
    """Runs a batch; returns the rows of its JSON. A peer that fails is started once more: MPICH hangs now and then."""
    _, repetitions, warmups, starts = batch
    parts = [part_bytes(place, collective, size) for size in sizes]
    words = [collective, "" if collective == "barrier" else ",".join(map(str, parts)), starts, str(repetitions), str(warmups)]
    for is_last in (False, True):
        try:
            rows = json.loads(getattr(place, library)(words, setting))
            break
        except Failed as failure:
            if is_last or library in peers_page.OWN:
                raise Failed(f"{collective} on {place.name}: {failure}") from None
            print(f"peers.py: once more: {failure}", file=sys.stderr, flush=True)
    for row in rows:
        if row["wrong"]:
            raise Failed(f"{library} gave a wrong {collective} of {row['bytes']} bytes on {place.name}")
    return rows


def significant(seconds):
    """us, with three digits, from 1 ms four: files stay small."""
    rounded = (float(f"{value * 1e6:.{3 if value < 1e-3 else 4}g}") for value in seconds)
    return [int(value) if value >= 100 else value for value in rounded]


def measure_group(place, contestants, collective, sizes, batch, kept):
    cells, commit = kept["cells"], kept["machine"]["commit"]
    for size in sizes:
        key = f"{place.name} {collective} {size}"
        if kept["commits"].get(key) != commit:
            cells[key] = {}
        kept["commits"][key] = commit
    for turn in range(batch[0]):
        for contestant in contestants if turn % 2 == 0 else reversed(contestants):
            for library, setting, of_setting in batches(place, contestant, collective, sizes):
                rows = run(place, library, setting, collective, of_setting, batch)
                for size, row in zip(of_setting, rows):
                    cell = cells[f"{place.name} {collective} {size}"].setdefault(contestant, {})
                    cell["by"] = f"{library} {setting}" if setting else row.get("algorithm", "")
                    if contestant == "measured" and place.is_lab and size >= PREDICTED_FROM and "predicted" not in cell:
                        cell["predicted"] = significant([place.predicted(collective, row["bytes"], cell["by"]) / 1e6])[0]
                    for kind in ("warm", "cold"):
                        cell.setdefault(kind, []).extend(significant(row.get(f"{kind}_s", [])))


def part_bytes(place, collective, size):
    """The size of each rank's part, or of the whole message."""
    return max(8, size // place.ranks // 8 * 8) if collective in PER_RANK else size


def profile(options, kept):
    for name in options.places:
        with one_group(), Place(name, pathlib.Path(options.build).resolve()) as place:
            for collective, size, repetitions in peers_profile.PROFILED[place.kind]:
                words = [collective, str(part_bytes(place, collective, size)), "warm", str(repetitions), "10"]
                try:
                    found = peers_profile.profile(place.espalier_command(words, "--unchecked"))
                except FileNotFoundError:
                    raise Failed("there is no perf; ./setup.sh bench installs it") from None
                except subprocess.CalledProcessError as failed:
                    raise Failed(f"{' '.join(failed.cmd)}: exit status {failed.returncode}\n{failed.stdout}{failed.stderr}") from None
                kept.setdefault("profiles", {})[f"{name} {collective} {size}"] = {"commit": kept["machine"]["commit"], "shares": found}


def groups(sizes, collective, table):
    """The batches of these sizes: (batch, sizes)."""
    if collective == "barrier":
        return [(table[0], [0])]
    bounds = sorted(table)
    of = {low: [size for size in sizes if max(bound for bound in bounds if bound <= size) == low] for low in bounds}
    return [(table[low], of[low]) for low in bounds if of[low]]


def installed(build, wanted):
    """Those of the contestants that can be started; prints why the others cannot."""
    program = {"openmpi": "tests/bench/peers-mpi-openmpi", "mpich": "tests/bench/peers-mpi-mpich", "gloo": "tests/bench/peers-gloo"}
    def is_built(name):
        return (build / program[name]).exists()

    found = [name for name in wanted if name not in program or is_built(name)]
    for name in wanted:
        if name not in found:
            print(f"peers.py: not measured: {name}; there is no {build / program[name]}", file=sys.stderr)
    if "forced" in found and not (is_built("openmpi") and is_built("mpich")):
        print("peers.py: not measured: forced; it needs Open MPI and MPICH", file=sys.stderr)
        found.remove("forced")
    return found


def versions():
    found = {}
    for name, package in {"Open MPI": "libopenmpi3", "MPICH": "libmpich12", "Gloo": "libgloo0", "libfabric": "libfabric1"}.items():
        asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
        if asked.returncode == 0:
            found[name] = asked.stdout
    return found


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    asks = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    commit = subprocess.run(asks, capture_output=True, text=True).stdout.strip() if shutil.which("git") else ""
    return {"commit": commit or "unknown", "processors": os.cpu_count(), "model": model[1] if model else platform.machine(), "kernel": platform.release(), **versions()}


@contextlib.contextmanager
def one_group():
    """All ranks in one group of the scheduler, with the weight of nice -10. Linux may otherwise give each session a group of its own (autogroup),
    and launchers' daemons are sessions: a rank that yields would yield to no other rank."""
    old, new = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
    try:
        if (old / "cpu.shares").exists():
            root, members, weight = old, "tasks", ("cpu.shares", "20480")
        else:
            (new / "cgroup.subtree_control").write_text("+cpu")
            root, members, weight = new, "cgroup.procs", ("cpu.weight", "2000")
        group = root / "espalier-peers"
        group.mkdir(exist_ok=True)
        (group / weight[0]).write_text(weight[1])
        (group / members).write_text(str(os.getpid()))
    except OSError as error:
        print(f"peers.py: the ranks are not in one group of the scheduler, so they may yield to other sessions only: {error}", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        (root / members).write_text(str(os.getpid()))
        with contextlib.suppress(OSError):  # a process that has not ended yet
            group.rmdir()


def write(kept, out):
    out.write_text(json.dumps(kept, separators=(",", ":")).replace('},"', '},\n"') + "\n")


def measure(options):
    build = pathlib.Path(options.build).resolve()
    out = pathlib.Path(options.out)
    kept = results_in(out) if out.exists() else {"cells": {}, "commits": {}, "rings": {}, "load": []}
    kept["machine"] = machine()
    if options.profile:
        profile(options, kept)
        write(kept, out)
        return
    contestants = installed(build, options.contestants)
    for name in options.places:
        with one_group(), Place(name, build) as place:
            for collective in options.collectives:
                kept["load"].append(round(os.getloadavg()[0], 1))
                kept["rings"].setdefault(name, []).extend(significant(place.ring(peers_page.RING_BYTES)))
                for batch, sizes in groups(options.sizes, collective, QUICK if options.quick else BATCHES[place.kind]):
                    measure_group(place, contestants, collective, sizes, batch, kept)
                    print(f"{name} {collective} {','.join(map(str, sizes))}: done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
                    write(kept, out)


def results_in(file):
    try:
        found = json.loads(pathlib.Path(file).read_text())
        if {"cells", "commits", "rings", "load"} <= set(found):
            return found
        reason = "it has other contents"
    except (OSError, ValueError) as error:
        reason = error
    print(f"peers.py: {file} is no file of results: {reason}", file=sys.stderr)
    sys.exit(2)


def size_of(text):
    match = re.fullmatch(r"([0-9]+)(Ki|Mi)?", text)
    size = int(match[1]) << {None: 0, "Ki": 10, "Mi": 20}[match[2]] if match else 0
    if size == 0 or size % 8:
        raise argparse.ArgumentTypeError(f"'{text}' is no multiple of 8 bytes; expected e.g. 8, 64Ki or 1Mi")
    return size


def place_of(text):
    if not re.fullmatch(r"(hosts|machine)-([2-9]|[1-9][0-9]+)", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no place; expected e.g. hosts-8 or machine-2")
    if text.startswith("hosts") and os.getuid() != 0:
        raise argparse.ArgumentTypeError(f"{text}: network namespaces need root")
    return text


def one_of(names):
    def parse(text):
        if text not in names:
            raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(names)}")
        return text
    return parse


def listed(parse):
    return lambda text: [parse(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="the file of results, to which this run adds; cells of another commit are replaced")
    parser.add_argument("--places", type=listed(place_of), metavar="LIST", help="default: machine-2,machine-8,hosts-8")
    parser.add_argument("--collectives", type=listed(one_of(COLLECTIVES)), metavar="LIST", help="default: all")
    parser.add_argument("--sizes", type=listed(size_of), metavar="LIST", help="bytes of the whole message; default: 8 to 64Mi")
    parser.add_argument("--contestants", type=listed(one_of(CONTESTANTS)), metavar="LIST", help="default: all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--profile", action="store_true", help="sample where the time goes, instead of measuring")
    parser.add_argument("--build", help="default: build")
    parser.add_argument("--page", nargs="+", metavar="FILE")
    parser.add_argument("--plots", metavar="FOLDER")
    parser.add_argument("--whole", metavar="FOLDER")
    options = parser.parse_args()
    measures = ("places", "collectives", "sizes", "contestants", "quick", "profile", "out")
    if options.page and any(getattr(options, name) for name in measures):
        parser.error("--page prints what was measured; expected no " + ", ".join(f"--{name}" for name in measures))
    if not options.page and (options.plots or options.whole or not options.out):
        parser.error("expected --out FILE, or --page FILE...; --plots and --whole are of --page")
    chosen = [name for name in ("collectives", "sizes", "contestants", "quick") if getattr(options, name)]
    if options.profile and chosen:
        parser.error("--profile has collectives of its own; expected no " + ", ".join(f"--{name}" for name in chosen))
    options.build = options.build or str(ROOT / "build")
    if options.page:
        files = [results_in(file) for file in options.page]
        if options.plots:
            return peers_page.write_plots(files, pathlib.Path(options.plots), pathlib.Path(options.build) / "tests/bench/line-plot")
        page, rows = peers_page.page(files)
        sys.stdout.write(page)
        if options.whole:
            (pathlib.Path(options.whole) / "peers.csv").write_text(rows)
        return
    options.places = options.places or ["machine-2", "machine-8", "hosts-8"]
    for name, kind in (("shared", "machine"), ("forced", "hosts")):
        if name in (options.contestants or ()) and not any(place.startswith(kind) for place in options.places):
            parser.error(f"{name} runs on {kind}-P only; expected such a place, or other contestants")
    options.collectives = options.collectives or COLLECTIVES
    options.sizes = sorted(options.sizes or SIZES)
    options.contestants = options.contestants or CONTESTANTS
    try:
        measure(options)
    except Failed as failure:
        sys.exit(f"peers.py: {failure}")


if __name__ == "__main__":
    main()
