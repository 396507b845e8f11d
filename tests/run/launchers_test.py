#!/usr/bin/env python3
"""One program under every launcher: by hand, mpirun of Open MPI, mpiexec of MPICH, srun (PMIx, PMI-2).

launchers_test.py JOINED
A launcher that is not installed is skipped with its reason.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

from launchers import AS_ROOT, environment, free_port, run_by_hand, start_slurm

RANKS = 4


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
    outputs = run_by_hand([program], RANKS, **secret)
    if any(status for status, _, _ in outputs) or f"{RANKS} processes joined" not in outputs[0][1]:
        sys.exit(f"by hand: {outputs}")
    print(f"by hand{' with a secret' if secret else ''}: {RANKS} processes joined")


def refusals(program):
    """Bad input: one line, status 2, nothing left behind."""
    cases = [
        ({"RANK": "1"}, "the environment has no WORLD_SIZE"),
        ({"RANK": "4", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}, "RANK='4'; expected a number"),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}, "no server of the job"),
        ({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "ESPALIER_SERVER": "me"},
         "ESPALIER_SERVER='me'; expected launcher, or no such variable"),
        ({"RANK": "0", "WORLD_SIZE": "2", "ESPALIER_ADDRESS": "127.0.0.1:1,[::1]:1"}, "has several addresses; expected one, at which rank 0 listens"),
        ({"FI_PROVIDER": "none such"}, "none such\": libfabric has no such provider"),
    ]
    for variables, line in cases:
        done = subprocess.run([program, "500"], env=environment(**variables), capture_output=True, text=True)
        if done.returncode != 2 or line not in done.stderr or done.stderr.count("\n") != 1:
            sys.exit(f"{variables}: status {done.returncode}, expected 2 and '{line}':\n{done.stderr}")


def under_slurm(program):
    with contextlib.ExitStack() as ends:
        slurm, reason = start_slurm(ends)
        if not slurm:
            print(f"srun: skipped, {reason}")
            return
        for kind in slurm.kinds():
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
    as_root = environment(**AS_ROOT)
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
