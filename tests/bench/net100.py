"""The measurements of net100.sh: rounds of all measurements in turn, then medians and verdicts. Needs the laboratory up."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

HOSTS = 8
LARGE = 8 << 20
LAB = "tests/bench/lab.sh"
PIPELINE = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
# (collective, bytes, Espalier's algorithm, repetitions per round)
CASES = [("broadcast", 8, "binomial", 40), ("broadcast", LARGE, "chain", 2), ("reduce", LARGE, "chain", 2)]
LIMITS = {("broadcast", LARGE): 1.08, ("reduce", LARGE): 1.12}
SMALL_LIMIT = 1.5


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"net100: exit status {done.returncode}: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def ring():
    """Returns a list: the seconds that LARGE bytes took on each host."""
    running = [subprocess.Popen([LAB, "on", str(host), "build/bench/ring", str(host), str(HOSTS), str(LARGE), "2"],
                                stdout=subprocess.PIPE, text=True) for host in range(HOSTS)]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit("net100: the raw ring failed")
    return [float(line) for output in outputs for line in output.split()]


def espalier(collective, size, algorithm, repetitions):
    command = ["build/tools/espalier", "run", "--topology", f"complete:{HOSTS}", "--collective", collective,
               "--algorithm", algorithm, "--provider", "tcp", "--bytes", str(size), "--repeat", str(repetitions),
               "--warmup", "1", "--launch-prefix", "ip netns exec esplab%r", "--address", "10.79.0.%n",
               "--format", "json"]
    result = json.loads(run(command))["runs"][0]
    if not result["right"]:
        sys.exit(f"net100: Espalier's {collective} of {size} bytes gave a wrong result")
    return result["times_s"]


def open_mpi(collective, size, repetitions, options):
    state = os.environ["ESPALIER_LAB"]
    command = [LAB, "on", "0", "mpirun.openmpi", "--allow-run-as-root", "--hostfile", f"{state}/hostfile",
               "-np", str(HOSTS), "--map-by", "node", "--bind-to", "none",
               "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", f"{os.getcwd()}/{LAB} rsh",
               "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "routed", "direct",
               "--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0",
               "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "mpi_yield_when_idle", "1", *options,
               f"{os.getcwd()}/build/bench/mpi_collective", collective, str(size), str(repetitions), "1"]
    return [float(line) for line in run(command).split()]


def forced(collective, segment):
    """Selects Open MPI's pipeline explicitly: algorithm 3 of both collectives."""
    name = {"broadcast": "bcast", "reduce": "reduce"}[collective]
    return PIPELINE + ["--mca", f"coll_tuned_{name}_algorithm", "3",
                       "--mca", f"coll_tuned_{name}_algorithm_segmentsize", str(segment)]


def measure(rounds):
    """(what, collective, bytes) -> seconds, over all rounds; 'ring' -> seconds."""
    times = {"ring": []}
    for turn in range(rounds):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
        times["ring"] += ring()
        for collective, size, algorithm, repetitions in CASES:
            for what, measured in (
                    (f"Espalier {algorithm}", lambda: espalier(collective, size, algorithm, repetitions)),
                    ("Open MPI", lambda: open_mpi(collective, size, max(1, repetitions // 2), [])),
                    ("Open MPI pipeline/16384", lambda: open_mpi(collective, size, repetitions, forced(collective, 16384)))):
                times.setdefault((what, collective, size), []).extend(measured())
    return times


def report(times):
    """Prints the medians; true if every limit held."""
    goodput = LARGE / statistics.median(times["ring"])
    print(f"raw TCP ring: {goodput * 8e-6:.2f} Mbit/s a host each way (median of {len(times['ring'])}); "
          f"bound for {LARGE} bytes: {LARGE / goodput * 1e3:.1f} ms")
    print(f"{'collective':10} {'bytes':>8}  {'what':24} {'median ms':>10} {'least':>9} {'most':>9} {'/ bound':>8}  n")
    for key, values in times.items():
        if key != "ring":
            what, collective, size = key
            ratio = f"{statistics.median(values) / (size / goodput):8.3f}" if size == LARGE else f"{'-':>8}"
            print(f"{collective:10} {size:8}  {what:24} {statistics.median(values) * 1e3:10.3f} {min(values) * 1e3:9.3f} "
                  f"{max(values) * 1e3:9.3f} {ratio}  {len(values)}")
    held = True
    for collective, size, algorithm, _ in CASES:
        ours = statistics.median(times[(f"Espalier {algorithm}", collective, size)])
        if size == LARGE:
            ratio, limit, to = ours / (size / goodput), LIMITS[(collective, size)], "the bound"
        else:
            ratio, limit, to = ours / statistics.median(times[("Open MPI", collective, size)]), SMALL_LIMIT, "Open MPI"
        held &= ratio <= limit
        print(f"{'held' if ratio <= limit else 'MISSED'}: {collective} of {size} bytes is {ratio:.3f} times {to}, limit {limit}")
    return held


def main():
    times = measure(int(sys.argv[1]))
    pathlib.Path("build/bench/net100.json").write_text(
        json.dumps({" ".join(map(str, key)) if key != "ring" else key: value for key, value in times.items()}, indent=1))
    sys.exit(0 if report(times) else 1)


if __name__ == "__main__":
    main()
