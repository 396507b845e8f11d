#!/usr/bin/env python3
"""One of eight processes, rank 0 included, ends by SIGKILL at a random moment of allreduces. All survivors must get the same cause, rejoin,
and finish an allreduce among seven.

survivors_test.py ESPALIER SURVIVOR [--trials N] [--seed S] [--within MS] [--launch WORDS] [--ranks-per-host R]

Default: 4 trials of a random seed; 100 with ESPALIER_WHOLE=1. --within: the cause must be there so long after the kill. Twice the deadline,
4000, holds where nothing else keeps the cores busy; without the option only a hang is a failure. WORDS start the eight processes instead of
`espalier launch -n 8`, e.g. over hosts. --ranks-per-host: over mem+tcp, with R successive ranks on each of several emulated hosts.
"""
import argparse
import collections
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

from launchers import environment
from processes import HANG_S

RANKS = 8
MAX_MOMENT_S = 0.5  # between the first allreduce and the kill


def kill_one(lines, dice):
    """Kills a rank once all are ready. Returns the rank, ms from then until the kill, and the time of the kill in ms; or a line that tells
    what was wrong before."""
    processes = {}
    while len(processes) < RANKS:
        line = next(lines, "members did not get ready")
        ready = re.fullmatch(r"ready (\d+) (\d+)", line)
        if not ready:
            return f"before the kill: {line}"
        processes[int(ready[1])] = int(ready[2])
    victim, moment_s = dice.randrange(RANKS), dice.random() * MAX_MOMENT_S
    time.sleep(moment_s)
    killed_ms = 1000 * time.monotonic()
    os.kill(processes[victim], signal.SIGKILL)
    return victim, 1000 * moment_s, killed_ms


def judge(lines, victim, killed_ms, within_ms):
    """Reads what the survivors say. Returns what was wrong, a cause, and ms from the kill to the last survivor's error."""
    causes, slowest_ms, done = collections.Counter(), 0, set()
    for line in lines:
        failed, end = re.fullmatch(r"failed (\d+) (\d+) (\d+) (\d+) (\d+) (.*)", line), re.fullmatch(rf"done (\d+) {RANKS - 1}", line)
        if failed:
            status, detector, peer = map(int, failed.groups()[2:5])
            slowest_ms = max(slowest_ms, int(failed[2]) - killed_ms)
            causes[status, detector, peer, failed[6]] += 1
        elif end:
            done.add(int(end[1]))
        else:
            return line, "", slowest_ms
    names = {cause[:3] for cause in causes}
    right = causes.total() == len(done) == RANKS - 1 and len(names) == 1 and all(status != 0 and peer == victim for status, _, peer in names)
    text = "; ".join(f"{count} times {cause[3]}" for cause, count in causes.items())
    if not right or slowest_ms > within_ms:
        return f"{causes.total()} survivors have failed, {len(done)} have finished: {text}", "", slowest_ms
    return "", next(iter(causes))[3], slowest_ms


def trial(args, seed):
    """Prints a line. Returns whether the trial was right, the victim, and the ms until the last error."""
    words = shlex.split(args.launch) if args.launch else [args.espalier, "launch", "-n", str(RANKS)]
    words += [args.survivor, *([str(args.ranks_per_host)] if args.ranks_per_host else [])]
    provider = {name: os.environ[name] for name in ("FI_PROVIDER",) if name in os.environ}
    with subprocess.Popen(words, env=environment(**provider), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as job:
        watchdog = threading.Timer(HANG_S, job.kill)  # its ranks end with it
        watchdog.start()
        lines = (re.sub(r"^\[\d+\] ", "", line.rstrip("\n")) for line in job.stdout)
        killed = kill_one(lines, random.Random(seed))
        if isinstance(killed, str):
            wrong, victim, moment_ms, cause, slowest_ms = killed, None, 0, "", 0
            job.kill()
        else:
            victim, moment_ms, killed_ms = killed
            wrong, cause, slowest_ms = judge(lines, victim, killed_ms, args.within)
        if not watchdog.is_alive():
            wrong = "a survivor hangs; " + wrong
        watchdog.cancel()
    print(f"seed {seed}: rank {victim} killed after {moment_ms:.0f} ms: {'BAD: ' + wrong if wrong else cause} ({slowest_ms:.0f} ms)", flush=True)
    return not wrong, victim, slowest_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("espalier")
    parser.add_argument("survivor")
    parser.add_argument("--trials", type=int, default=100 if os.environ.get("ESPALIER_WHOLE") == "1" else 4)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--within", type=int, default=1000 * HANG_S, metavar="MS")
    parser.add_argument("--launch", metavar="WORDS")
    parser.add_argument("--ranks-per-host", type=int)
    args = parser.parse_args()
    print(f"{args.trials} trials, seed {args.seed}")
    right, victims, times = zip(*(trial(args, args.seed + number) for number in range(args.trials)))
    print(f"{args.trials} trials, {right.count(False)} bad; the slowest error came {max(times):.0f} ms after the kill (limit {args.within} ms); "
          f"kills by rank: {' '.join(str(victims.count(rank)) for rank in range(RANKS))}")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
