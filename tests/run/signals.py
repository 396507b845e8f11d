#!/usr/bin/env python3
"""Signals at random moments of the first second of `espalier launch`, `launch --hosts` and `espalier run`.

signals.py [--trials 1000] [--seed 1] [--jobs 4]    $ESPALIER and $ESPALIER_NODE, or those of build/
Each trial starts a job that would not end by itself and sends one signal. The launcher must end, with the status of that signal, and
leave no process and no temporary file. Prints a row per command and signal; exit status 1 if a trial failed.
"""
import argparse
import concurrent.futures
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

from espalier import COMMAND, run_words, what
from processes import descendants, wait_for

WINDOW_S = 1.0
SIGNALS = ("TERM", "INT", "HUP", "QUIT", "USR1")
MARK = "ESPALIER_TRIAL"
# A remote shell onto this machine; the environment of the daemon is that of the launcher.
RSH = "sh -c 'shift; exec sh -c \"$1\"' rsh"


def commands():
    """By name: the command, and whether its ranks give it the signal's status."""
    job = ["sleep", "300"]
    run = [COMMAND, *run_words(*what("complete:4", "allreduce", "recursive-doubling"), "--bytes", 8, "--back-to-back", 1000000000), "--provider"]
    return {
        "launch": ([COMMAND, "launch", "-n", "8", *job], True),
        "launch --hosts": ([COMMAND, "launch", "-n", "8", "--hosts", "a,b,c", "--rsh", RSH, *job], True),
        "run --provider tcp": ([*run, "tcp"], False),
        "run --provider mem": ([*run, "mem"], False),
    }


def prepare_child():
    """Default actions, as at a terminal; no core file for QUIT."""
    for name in SIGNALS:
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def trial(command, ranks_decide, name, after_s, mark):
    """What was wrong, or an empty text; and the seconds from the signal to the launcher's end."""
    number = getattr(signal, f"SIG{name}")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=folder,
                               preexec_fn=prepare_child, env=os.environ | dict([mark.split("=")]) | {"TMPDIR": folder})
        time.sleep(after_s)
        began = time.monotonic()
        wrong = "it ended before the signal" if job.poll() is not None else ""
        job.send_signal(number)
        if not wait_for(lambda: job.poll() is not None):
            wrong = f"lost: {descendants(mark)}"
            job.kill()
            job.wait()
        took = time.monotonic() - began
        expected = (-number, 128 + number) if ranks_decide else (-number, 1)
        output.seek(0)
        said = output.read().decode()[-300:]
        if not wrong and (job.returncode not in expected or (job.returncode == 1 and "broken off" not in said)):
            wrong = f"status {job.returncode}; expected one of {expected}: {said}"
        if not wrong and not wait_for(lambda: not descendants(mark)):
            wrong = f"left behind: {descendants(mark)}"
        if not wrong and (left := os.listdir(folder)):
            wrong = f"left behind: {left}"
    return wrong, took


def campaign(trials, seed, jobs):
    """Prints the table. Returns the failures."""
    draw = random.Random(seed)
    cases = [(name, number) for name in commands() for number in SIGNALS]
    plan = [(*cases[i % len(cases)], draw.random() * WINDOW_S) for i in range(trials)]
    def go(i):
        name, number, after_s = plan[i]
        return trial(*commands()[name], number, after_s, f"{MARK}={os.getpid()}-{i}")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(go, range(trials)))
    failures = [f"{plan[i][0]}, {plan[i][1]} after {plan[i][2]:.3f} s: {wrong}" for i, (wrong, _) in enumerate(results) if wrong]
    print(f"{'command':20} {'signal':6} {'trials':>6} {'failed':>6} {'longest end':>12}")
    for name, number in cases:
        mine = [result for place, result in zip(plan, results) if place[:2] == (name, number)]
        if mine:
            print(f"{name:20} {number:6} {len(mine):6} {sum(bool(wrong) for wrong, _ in mine):6} {max(took for _, took in mine):10.2f} s")
    print(f"{trials} signals, seed {seed}: {len(failures)} failed")
    return failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    words = parser.parse_args()
    failed = campaign(words.trials, words.seed, words.jobs)
    print("\n".join(failed[:20]), file=sys.stderr)
    sys.exit(1 if failed else 0)
