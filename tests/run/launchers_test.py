#!/usr/bin/env python3
"""One program under every launcher: by hand, mpirun of Open MPI, mpiexec of MPICH, srun (PMIx, PMI-2).

launchers_test.py JOINED
A launcher that is not installed is skipped with its reason.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

RANKS = 4


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "OMPI", "SLURM"))}
    return {**clean, "IPATH_NO_BACKTRACE": "1", **more}


def check(name, command, env):
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode != 0 or f"{RANKS} processes joined" not in done.stdout:
        sys.exit(f"{name}: status {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{name}: {RANKS} processes joined")


def check_missing(name, command, env, line):
    """One rank of four never joins: the others end at their deadline, and the launcher ends that rank."""
    done = subprocess.run([*command[:-1], "sh", "-c", f'[ "${{PMIX_RANK-$PMI_RANK}}" = 3 ] && exec sleep 1000; exec {command[-1]} 1000'],
                          env=env, capture_output=True, text=True)
    if done.returncode == 0 or line not in done.stderr:
        sys.exit(f"{name}, rank 3 does not join: status {done.returncode}, expected '{line}'\n{done.stdout}{done.stderr}")


def by_hand(program, secret):
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [program],
            env=environment(RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **secret),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(RANKS)
    ]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes) or f"{RANKS} processes joined" not in outputs[0]:
        sys.exit("by hand: " + "".join(outputs))
    print(f"by hand{' with a secret' if secret else ''}: {RANKS} processes joined")


def refusals(program):
    """Bad input: one line, status 2, nothing left behind."""
    cases = [
        ({"RANK": "1"}, "the environment has no WORLD_SIZE"),
        ({"RANK": "4", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}, "RANK=4; expected a number"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}, "no server of the job"),
        ({"FI_PROVIDER": "none such"}, "no provider 'none such'"),
    ]
    for variables, line in cases:
        done = subprocess.run([program, "500"], env=environment(**variables), capture_output=True, text=True)
        if done.returncode != 2 or line not in done.stderr or done.stderr.count("\n") != 1:
            sys.exit(f"{variables}: status {done.returncode}, expected 2 and '{line}':\n{done.stderr}")


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


def under_slurm(program):
    with contextlib.ExitStack() as ends:
        slurm, reason = start_slurm(ends)
        if not slurm:
            print(f"srun: skipped, {reason}")
            return
        for kind in ("pmix", "pmi2"):
            check(f"srun --mpi={kind}", ["srun", "-O", f"--mpi={kind}", "-n", str(RANKS), program], slurm.env)


def main():
    program = os.path.abspath(sys.argv[1])
    by_hand(program, {})
    with tempfile.TemporaryDirectory() as folder:
        secret = os.path.join(folder, "secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(32))
        by_hand(program, {"ESPALIER_SECRET_FILE": secret})
    refusals(program)
    as_root = environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    for name, manager, command in (
            ("mpirun of Open MPI", "PMIx", ["mpirun.openmpi", "--oversubscribe", "-n", str(RANKS), program]),
            ("mpiexec of MPICH", "PMI", ["mpiexec.hydra", "-n", str(RANKS), program])):
        if shutil.which(command[0]):
            check(name, command, as_root)
            check_missing(name, command, as_root, f"{manager}: not all of the {RANKS} processes joined within 1000 ms")
        else:
            print(f"{name}: skipped, {command[0]} is not installed")
    under_slurm(program)


if __name__ == "__main__":
    main()
