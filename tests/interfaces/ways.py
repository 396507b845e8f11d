"""The ways to start a job on the hosts of hosts.py: each returns how a program of RANKS ranks is started, and what is measured."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path += [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "run")]
import launchers  # noqa: E402
from hosts import NAMES, RSH, lan  # noqa: E402

HANG_S = 20  # what has not ended by then never will


class Programs:
    """What a build folder has: `espalier`, the member, and MPI programs with the libraries that take their collectives over."""

    def __init__(self, build):
        build = pathlib.Path(build).resolve()
        self.espalier, self.member = build / "tools/espalier", build / "tests/interfaces/member"
        pairs = {name: (build / f"tests/interfaces/bridged.{name}", build / f"bridge/libespalier-mpi-{name}.so") for name in ("openmpi", "mpich")}
        self.bridged = {name: pair for name, pair in pairs.items() if pair[0].exists()}


class Slurm:
    """A Slurm whose controller is on the first host and that has a daemon on each."""

    def __init__(self, hosts, folder):
        self.folder, self.daemons = folder, []
        for name in ("state", "munge"):
            os.makedirs(f"{folder}/{name}", mode=0o755)
        key = os.open(f"{folder}/munge.key", os.O_CREAT | os.O_WRONLY, 0o400)
        os.write(key, os.urandom(128))
        os.close(key)
        socket = f"{folder}/munge/socket"
        nodes = "\n".join(f"NodeName={name} NodeAddr={lan(number, hosts.variant)} CPUs=2 State=UNKNOWN" for number, name in enumerate(NAMES, 1))
        only_ipv6 = "CommunicationParameters=EnableIPv6,DisableIPv4\n" if hosts.variant == "ipv6" else ""
        self.conf = f"{folder}/slurm.conf"
        pathlib.Path(self.conf).write_text(f"""ClusterName=test
SlurmctldHost=hosta({lan(1, hosts.variant)})
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={socket}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
{only_ipv6}{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:32
""", encoding="utf-8")
        # Otherwise the hosts would share the folder of the job's PMIx servers.
        pathlib.Path(f"{folder}/mpi.conf").write_text(f"PMIxCliTmpDirBase={hosts.state}/private\n", encoding="utf-8")
        self.start(hosts, "hosta", "munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={socket}",
                   *(f"--{kind}-file={folder}/munge/{kind}" for kind in ("pid", "log", "seed")))
        self.start(hosts, "hosta", "slurmctld", "-D", "-f", self.conf)
        for name in NAMES:
            os.makedirs(f"{folder}/spool-{name}", mode=0o755)
            self.start(hosts, name, "slurmd", "-D", "-f", self.conf, "-N", name)

    def start(self, hosts, name, *command):
        self.daemons.append(subprocess.Popen(hosts.on(name, command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(0.5)

    def wait_until_up(self, hosts):
        """Returns whether it starts jobs; what each way makes of it is the cell's own matter."""
        env = launchers.environment(SLURM_CONF=self.conf)
        for _ in range(20):
            words = hosts.on("hosta", ["srun", "-N", str(len(NAMES)), "--immediate=3", "true"])
            if subprocess.run(words, env=env, capture_output=True, timeout=HANG_S).returncode == 0:
                return True
            if any(daemon.poll() is not None for daemon in self.daemons):
                return False
        return False

    def processes(self):
        return [daemon.pid for daemon in self.daemons]

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()


class Start:
    """How one way starts its processes: a list of (host, words, variables); `ready` takes the words of a program that no rank needs, such as
    hostname, to see whether the launcher itself works here."""

    def __init__(self, command=None, each=None, needs=(), variables=None, program=None):
        """`program`: of this way alone, an MPI program."""
        self.command, self.each, self.needs, self.variables, self.program = command, each, needs, variables or {}, program

    def processes(self, hosts, words, per_host):
        if self.command:
            return [("hosta", [*self.command(hosts, per_host), *words], self.variables(hosts) if callable(self.variables) else self.variables)]
        ranks = len(NAMES) * per_host
        return [(NAMES[rank // per_host], *self.each(hosts, words, rank, ranks)) for rank in range(ranks)]


def ranks_of(per_host):
    return str(len(NAMES) * per_host)


def by_launch(programs):
    return lambda hosts, per_host: [programs.espalier, "launch", "-n", ranks_of(per_host), "--hosts", ",".join(NAMES), "--rsh", RSH]


def by_mpirun(hosts, per_host):
    # The interface of its own connections; the program's are not named.
    return ["mpirun.openmpi", "--host", ",".join(f"{name}:{per_host}" for name in NAMES), "--mca", "plm_rsh_agent", RSH,
            "--mca", "oob_tcp_if_include", "eth0", *(("--mca", "oob_tcp_disable_ipv6_family", "0") if hosts.variant == "ipv6" else ()),
            "-n", ranks_of(per_host)]


def by_mpiexec(hosts, per_host):
    return ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", RSH, "-iface", "eth0", "-hosts", ",".join(NAMES), "-ppn", str(per_host),
            "-n", ranks_of(per_host)]


def by_srun(kind):
    return lambda hosts, per_host: ["srun", f"--mpi={kind}", "-N", str(len(NAMES)), "--overlap", "-O", "-n", ranks_of(per_host), "-m", "block"]


def bridged(programs, name):
    """An MPI program with the library in front; MPI's own connections are told the interface."""
    program, library = programs.bridged[name]
    def command(hosts, per_host):
        if name == "openmpi":
            words = by_mpirun(hosts, per_host)
            return [*words, "--mca", "btl_tcp_if_include", "eth0", "-x", f"LD_PRELOAD={library}", "-x", "ESPALIER_MPI_COUNTS"]
        return [*by_mpiexec(hosts, per_host), "-genv", "LD_PRELOAD", library]
    variables = {"ESPALIER_MPI_COUNTS": "1", **(launchers.AS_ROOT if name == "openmpi" else {})}
    return Start(command, needs=("mpirun.openmpi" if name == "openmpi" else "mpiexec.hydra",), variables=variables, program=program)


def by_hand(address):
    def each(hosts, words, rank, ranks):
        return words, {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": address, "MASTER_PORT": str(launchers.free_port())}
    return each


def by_folder(hosts, words, rank, ranks):
    return [*words, hosts.state, f"job{hosts.jobs}", rank, ranks], {}


def ways(programs):
    """{name: its start}, in the order of the table."""
    return {
        "espalier launch": Start(by_launch(programs)),
        "espalier launch, a shell that sets SSH_CONNECTION": Start(by_launch(programs), variables=lambda hosts: {"ESPALIER_LAB_CALLER": lan(1, hosts.variant)}),
        "mpirun of Open MPI": Start(by_mpirun, needs=("mpirun.openmpi",), variables=launchers.AS_ROOT),
        "mpiexec of MPICH": Start(by_mpiexec, needs=("mpiexec.hydra",)),
        "srun --mpi=pmix": Start(by_srun("pmix"), needs=("srun", "slurmctld", "slurmd", "munged")),
        "srun --mpi=pmi2": Start(by_srun("pmi2"), needs=("srun", "slurmctld", "slurmd", "munged")),
        "by hand, MASTER_ADDR a name": Start(each=by_hand("hosta")),
        "by hand, MASTER_ADDR an IPv4 address": Start(each=by_hand("10.77.0.1")),
        "by hand, MASTER_ADDR an IPv6 address": Start(each=by_hand("fd77::1")),
        "by a shared folder": Start(each=by_folder),
        **{f"an MPI program, {launcher} and the bridge": bridged(programs, name)
           for name, launcher in (("openmpi", "mpirun of Open MPI"), ("mpich", "mpiexec of MPICH")) if name in programs.bridged},
    }


def prefer():
    """Other work on this machine does not count."""
    os.nice(-15)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="utf-8") as group:
        group.write("-15")


def preferred(words):
    """The same for a program that a launcher's daemon starts in a session of its own."""
    return ["sh", "-c", 'echo -15 2>&- >/proc/self/autogroup; exec "$0" "$@"', *words]


class Running:
    """The processes of one start."""
    is_preferred = False  # before all others of this machine

    def __init__(self, hosts, start, words, per_host, slurm=None, more=None):
        hosts.jobs = getattr(hosts, "jobs", 0) + 1
        self.hosts, self.slurm = hosts, slurm
        port = {"MASTER_PORT": str(launchers.free_port())}  # one for all ranks
        self.begun = time.monotonic()
        self.processes = []
        for host, command, variables in start.processes(hosts, words, per_host):
            variables = {**variables, **(port if "MASTER_PORT" in variables else {}), "ESPALIER_LAB": hosts.state, **(more or {})}
            if slurm:
                variables["SLURM_CONF"] = slurm.conf
            self.processes.append(subprocess.Popen(hosts.on(host, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                   text=True, start_new_session=True, preexec_fn=prefer if self.is_preferred else None, env=launchers.environment(**variables)))

    def end(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.hosts.end_others(self.slurm.processes() if self.slurm else ())

    def wait(self):
        """Returns (whether all ended with 0, what they printed)."""
        until, texts, good = time.monotonic() + HANG_S, [], True
        for process in self.processes:
            try:
                text, _ = process.communicate(timeout=max(0.1, until - time.monotonic()))
                good = good and process.returncode == 0
            except subprocess.TimeoutExpired:
                self.end()
                text, good = process.communicate()[0] + f"not done after {HANG_S} s\n", False
            texts.append(text)
        if not good:
            self.end()
        return good, "".join(texts)


def seconds_to_join(text, ranks):
    """From the last rank's call of join() to the return of the last one; None: not all joined."""
    found = {int(rank): (int(called), int(returned)) for rank, called, returned in re.findall(r"member (\d+) (\d+) (\d+)", text)}
    if len(found) != ranks or re.search(r"MPI_\* \(all\) +\d+ +[1-9]", text):  # calls that the bridge did not take over
        return None
    return 1e-6 * (max(returned for _, returned in found.values()) - max(called for called, _ in found.values()))


def missing(start):
    """The first program that the way needs and that is not installed."""
    return next((program for program in start.needs if not shutil.which(program)), None)


def refusal(hosts, name, start, slurm):
    """Why this cell cannot be; None: it can."""
    if program := missing(start):
        return f"{program} is not installed"
    if hosts.variant == "ipv6" and name.endswith("an IPv4 address"):
        return "the hosts have no IPv4 address"
    if not start.command:
        return None
    good, text = Running(hosts, start, ["hostname"], 1, slurm).wait()
    if good and sorted(re.findall(r"^(?:\[\d\] )?(host[abc])$", text, re.M)) == sorted(NAMES):
        return None
    lines = [line for line in text.splitlines() if re.search(r"[a-z]{3}", line)] or ["no output"]
    return f"it cannot start hostname: {lines[0][:110]}"
