#!/usr/bin/env python3
"""`espalier launch --max-restarts`: ranks are killed at random moments, and processes that are started again take their places.

restarts.py [--kills N] [--seed S] ESPALIER MEMBER

Default: 6 kills of a random seed. Exit status 1: a rank is missing at the end, the launcher's status is not 0, or something hung.
"""
import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "run"))
from grow import Process  # noqa: E402
from processes import HANG_S, wait_for  # noqa: E402

RANKS = 4
DEADLINE_MS = 1000  # a killed rank is found after 5/4 of it


def processes(job):
    """The numbers of the processes that have joined, by the rank of the launcher; the last of each."""
    found = re.findall(r"\[(\d+)\] process (\d+)", "\n".join(job.lines))
    return {int(rank): int(process) for rank, process in found}


def kill_ranks(job, kills, dice):
    for kill in range(kills):
        before = processes(job)
        # Sometimes two at once, sometimes in the middle of rejoin() or accept().
        victim = dice.choice(sorted(before))
        os.kill(before[victim], signal.SIGKILL)
        if dice.random() < 0.4:
            time.sleep(dice.uniform(0, 2 * DEADLINE_MS / 1000))
            continue
        if not wait_for(lambda: all(processes(job).get(rank) != before[victim] for rank in (victim,))):
            raise RuntimeError(f"after kill {kill}: {job.lines[-20:]}")


def run(args, provider, dice, folder):
    stop = folder / f"stop-{provider}"
    job = Process([args.espalier, "launch", "-n", RANKS, "--max-restarts", 3 * args.kills, args.member, "restarts", stop, RANKS],
                  subprocess.STDOUT, GROW_PROVIDER=provider, GROW_DEADLINE_MS=str(DEADLINE_MS), TMPDIR=str(folder))
    try:
        if not wait_for(lambda: len(processes(job)) == RANKS):
            raise RuntimeError(f"the job does not start: {job.lines}")
        kill_ranks(job, args.kills, dice)
    finally:
        stop.touch()
        lines, status = job.finish(time.monotonic() + HANG_S)
    final = sorted(re.findall(r"final (\d) (\d)", "\n".join(lines)))
    restarts = sum("it is started again" in line for line in lines)
    if status != 0 or final != [(str(rank), str(RANKS)) for rank in range(RANKS)] or restarts == 0:
        return [f"{provider}: status {status}, {restarts} restarts, final {final}:", *lines[-30:]]
    print(f"{provider}: {args.kills} kills, {restarts} restarts, all ranks at the end")
    return []


def refusals(args, folder):
    """What does not go together, and failures that have no restart left."""
    bad = []
    for words, expected in ((["--kill-on-failure"], "--kill-on-failure"), (["--join", folder / "job"], "--join")):
        done = subprocess.run([args.espalier, "launch", "-n", "1", "--max-restarts", "1", *words, "true"], capture_output=True, text=True, check=False)
        if done.returncode != 2 or expected not in done.stderr or len(done.stderr.splitlines()) != 1:
            bad.append(f"{words}: status {done.returncode}: {done.stderr}")
    # Two hosts by a remote shell; the process that is started again may alone read its ticket.
    once = "[ -n \"$ESPALIER_JOIN\" ] && exec stat -Lc %a $ESPALIER_JOIN; [ $ESPALIER_RANK = 1 ] && kill -9 $$; sleep 3"
    done = subprocess.run([args.espalier, "launch", "-n", "2", "--hosts", "a,b", "--rsh", "sh -c 'shift; exec sh -c \"$*\"' rsh", "--max-restarts", "2",
                           "sh", "-c", once], capture_output=True, text=True, check=False)
    line = "rank 1 on host b ended with signal 9; it is started again, 1 of 2"
    if (done.returncode, done.stdout) != (0, "[1] 600\n") or line not in done.stderr:
        bad.append(f"on hosts: {done}")
    fails = "[ -n \"$ESPALIER_JOIN\" ] && echo again && exit 4; [ $ESPALIER_RANK = 1 ] && exit 3; sleep 3"
    done = subprocess.run([args.espalier, "launch", "-n", "2", "--max-restarts", "2", "sh", "-c", fails], capture_output=True, text=True, check=False)
    if done.returncode != 4 or done.stdout != "[1] again\n[1] again\n" or "started again, 2 of 2" not in done.stderr:
        bad.append(f"a program that always fails: {done}")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("espalier", type=os.path.abspath)
    parser.add_argument("member", type=os.path.abspath)
    args = parser.parse_args()
    print(f"--seed {args.seed} repeats it", flush=True)
    dice = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        bad = refusals(args, pathlib.Path(folder))
        for provider in ("mem", "tcp"):
            bad += run(args, provider, dice, pathlib.Path(folder))
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
