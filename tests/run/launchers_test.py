#!/usr/bin/env python3
"""One program under every launcher: by hand, mpirun of Open MPI, mpiexec of MPICH, srun (PMIx, PMI-2). A rank that never starts is named: by
`espalier status`, by the line of those that wait, by their error, and by their records.

launchers_test.py JOINED ESPALIER
A launcher that is not installed is skipped with its reason.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
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


DEADLINE_MS = 5000
MISSING = 3


def suspects(espalier, env, *words):
    """(kind, ranks) of the suspects of the one job that `espalier status` shows."""
    done = subprocess.run([espalier, "status", "--json", *words], env=env, capture_output=True, text=True)
    jobs = json.loads(done.stdout)["jobs"] if done.returncode == 0 else []
    return [(suspect["kind"], suspect["ranks"]) for job in jobs for suspect in job["suspects"]] if len(jobs) == 1 else []


@contextlib.contextmanager
def with_records(env):
    """The environment of a job whose records are apart, and their folder after its end."""
    with tempfile.TemporaryDirectory(prefix="espalier-launchers-") as name:
        run = pathlib.Path(name) / "run"
        run.mkdir(mode=0o700)
        yield {**env, "XDG_RUNTIME_DIR": str(run), "ESPALIER_RECORD": name + "/records", "ESPALIER_PATIENCE": "1"}, name + "/records"


def check_missing(name, espalier, command, env, line):
    """One rank of four never joins: the others end at their deadline, and the launcher ends that rank."""
    script = f'[ "${{PMIX_RANK-$PMI_RANK}}" = {MISSING} ] && exec sleep 1000; exec {command[-1]} {DEADLINE_MS}'
    expected = [("never started", [MISSING])]
    with with_records(env) as (more, records), tempfile.TemporaryFile("w+") as output:
        job = subprocess.Popen([*command[:-1], "sh", "-c", script], env=more, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        live = []
        while job.poll() is None:
            if live != expected:
                live = suspects(espalier, more)
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(0.2)
        output.seek(0)
        text = output.read()
        left = suspects(espalier, more, "--records", records)
    waiting = f"waits until all of the {RANKS} ranks have joined: rank {MISSING} never started\n"
    line = f"{line}: not all of the {RANKS} processes joined within {DEADLINE_MS} ms: rank {MISSING} never started"
    if job.returncode == 0 or line not in text or waiting not in text or live != expected or left != expected:
        sys.exit(f"{name}, rank {MISSING} does not join: status {job.returncode}, expected '{line}' and '{waiting}'; espalier status: {live}, "
                 f"from the records: {left}; expected {expected}\n{text}")


def by_hand(program, secret):
    outputs = run_by_hand([program], RANKS, **secret)
    if any(status for status, _, _ in outputs) or f"{RANKS} processes joined" not in outputs[0][1]:
        sys.exit(f"by hand: {outputs}")
    print(f"by hand{' with a secret' if secret else ''}: {RANKS} processes joined")


def at_once(function, calls):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(function, *call) for call in calls]:
            done.result()


def by_hand_without_one(program, espalier):
    """The records of a join() that failed name the rank that did not come."""
    with with_records(environment()) as (more, records):
        apart = {name: more[name] for name in ("XDG_RUNTIME_DIR", "ESPALIER_RECORD")}
        outputs = run_by_hand([program, "1500"], RANKS - 1, total=RANKS, **apart)
        left = suspects(espalier, more, "--records", records)
    if left != [("never started", [RANKS - 1])]:
        sys.exit(f"by hand, without rank {RANKS - 1}: the records say {left}\n{outputs}")


def refusals(program):
    """Bad input: one line, status 2, nothing left behind."""
    cases = [
        ({"RANK": "1"}, "the environment has no WORLD_SIZE"),
        ({"RANK": "4", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}, "RANK='4'; expected a whole number"),
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


def under_slurm(program, espalier):
    with contextlib.ExitStack() as ends:
        slurm, reason = start_slurm(ends)
        if not slurm:
            print(f"srun: skipped, {reason}")
            return
        missing = []
        for kind in slurm.kinds():
            check(f"srun --mpi={kind}", ["srun", "-O", f"--mpi={kind}", "-n", str(RANKS), program], slurm.env)
            missing.append((f"srun --mpi={kind}", espalier, ["srun", "-O", "-K", f"--mpi={kind}", "-n", str(RANKS), program], slurm.env,
                            {"pmix": "PMIx", "pmi2": "PMI"}[kind]))
        at_once(check_missing, missing)


def main():
    program, espalier = map(os.path.abspath, sys.argv[1:])
    by_hand(program, {})
    by_hand_without_one(program, espalier)
    with tempfile.TemporaryDirectory() as folder:
        secret = os.path.join(folder, "secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(32))
        by_hand(program, {"ESPALIER_SECRET_FILE": secret})
    refusals(program)
    as_root, missing = environment(**AS_ROOT), []
    for name, manager, command in (
            ("mpirun of Open MPI", "PMIx", ["mpirun.openmpi", "--oversubscribe", "-n", str(RANKS), program]),
            ("mpiexec of MPICH", "PMI", ["mpiexec.hydra", "-n", str(RANKS), program])):
        if shutil.which(command[0]):
            check(name, command, as_root)
            missing.append((name, espalier, command, as_root, manager))
        else:
            print(f"{name}: skipped, {command[0]} is not installed")
    at_once(check_missing, missing)
    under_slurm(program, espalier)


if __name__ == "__main__":
    main()
