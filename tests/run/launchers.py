"""What starts a program's processes: the environment, a private Slurm, hosts that are network namespaces. For tests."""
import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS))  # processes
LAB = str(TESTS / "bench/lab.sh")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def free_port():
    """A port below those that Linux gives to connections and to listeners that ask for any: nobody gets it meanwhile."""
    while True:
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", random.randrange(20000, 30000)))
            return listener.getsockname()[1]


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "OMPI", "SLURM"))}
    return {**clean, "IPATH_NO_BACKTRACE": "1", **more}


def run_by_hand(command, ranks, preexec_fn=None, total=None, **variables):
    """Runs the first ranks of a job that the environment alone describes; `total`: its size. Returns (status, stdout, stderr) of each."""
    port = str(free_port())
    jobs = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             preexec_fn=preexec_fn, env=environment(RANK=str(rank), WORLD_SIZE=str(total or ranks), MASTER_ADDR="127.0.0.1",
                                                                    MASTER_PORT=port, **variables)) for rank in range(ranks)]
    outputs = [job.communicate() for job in jobs]
    return [(job.returncode, *output) for job, output in zip(jobs, outputs)]


class Slurm:
    """A private Slurm of this machine."""

    def __init__(self, folder):
        self.daemons = []
        host = socket.gethostname()
        key = os.path.join(folder, "munge.key")
        with open(key, "wb") as file:
            file.write(os.urandom(128))
        os.chmod(key, 0o400)
        os.chmod(folder, 0o755)
        for name in ("state", "spool", "munge"):
            os.makedirs(os.path.join(folder, name), mode=0o755)
        munge = os.path.join(folder, "munge", "socket")
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}",
                   *(f"--{kind}-file={folder}/munge/{kind}" for kind in ("pid", "log", "seed")))
        self.conf = os.path.join(folder, "slurm.conf")
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:32
""")
        self.start("slurmctld", "-D", "-f", self.conf)
        self.start("slurmd", "-D", "-f", self.conf, "-N", host)
        self.env = environment(SLURM_CONF=self.conf)

    def start(self, *command):
        self.daemons.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(0.5)

    def kinds(self):
        """The values of srun's --mpi that Espalier joins by and that this Slurm has. Debian unstable's 26.05.5 has no PMIx."""
        done = subprocess.run(["srun", "--mpi=list"], env=self.env, capture_output=True, text=True, check=True)
        listed = (done.stdout + done.stderr).split()
        kinds = [kind for kind in ("pmix", "pmi2") if kind in listed]
        if not kinds:
            raise AssertionError(f"srun --mpi=list has neither pmix nor pmi2: {listed}")
        for kind in {"pmix", "pmi2"} - set(kinds):
            print(f"srun --mpi={kind}: skipped, this Slurm does not have it")
        return kinds

    def wait_until_up(self):
        """Returns why it does not come up; nothing: it is up."""
        for _ in range(120):
            done = subprocess.run(["srun", "-n", "1", "--immediate=5", "true"], env=self.env, capture_output=True, text=True)
            if done.returncode == 0:
                return None
            if any(daemon.poll() is not None for daemon in self.daemons):
                return "one of its daemons ended"
            time.sleep(0.5)
        return done.stderr.strip().splitlines()[-1]

    def end(self):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()


def start_slurm(ends):
    """Returns a private Slurm that ends with the ExitStack, and None; or None and the reason why there is none."""
    missing = [name for name in ("slurmctld", "slurmd", "srun", "munged") if not shutil.which(name)]
    if missing:
        return None, "not installed: " + ", ".join(missing)
    if os.getuid() != 0:
        return None, "not root"
    slurm = Slurm(ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-slurm-", dir="/tmp")))
    ends.callback(slurm.end)
    reason = slurm.wait_until_up()
    return (None, f"the private Slurm did not come up: {reason}") if reason else (slurm, None)


def start_hosts(ends, count):
    """Makes network namespaces that end with the ExitStack. Returns the words that run a command on the first one, those of
    `espalier launch` for all of them, and None; or None, None and the reason why there are none."""
    os.environ["ESPALIER_LAB"] = ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-lab-", dir="/tmp")) + "/lab"
    ends.callback(subprocess.run, [LAB, "down"])
    up = subprocess.run([LAB, "up", str(count), "0"], capture_output=True, text=True)
    if up.returncode != 0:
        return None, None, f"no network namespaces: {up.stderr.strip()}"
    return (LAB, "on", "0"), ("--hosts", ",".join(f"esplab{host}" for host in range(count)), "--rsh", f"{LAB} rsh"), None


class OnHosts(unittest.TestCase):
    """Tests on HOSTS hosts that are network namespaces. Where there can be none, they are skipped with the reason."""
    HOSTS = 2

    @classmethod
    def setUpClass(cls):
        ends = contextlib.ExitStack()
        cls.addClassCleanup(ends.close)
        cls.on_host_0, cls.words, reason = start_hosts(ends, cls.HOSTS)
        if reason:
            raise unittest.SkipTest(reason)

    def start(self, espalier, processes, program):
        """Starts `espalier launch` of this program on the hosts of self.words; it is killed when the test ends."""
        job = subprocess.Popen([*self.on_host_0, espalier, "launch", "-n", str(processes), *self.words, program], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        return job
