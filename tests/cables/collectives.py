#!/usr/bin/env python3
"""Whether every collective is right over the cables of lab.py alone, link-local only.

collectives.py --whole RANK [SHAPE..]    each shape with one and two ranks per host, at 8 B, 64 KiB and 8 MiB; prints a line per job
collectives.py --check RANK              a sample

RANK is cables-rank (rank.cc).
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import lab as cables
from hosts import alone
from processes import HANG_S

WHOLE = ("pair", "triangle", "ring4", "line4", "star5", "four-less-one", "mesh3x3")


def run_job(lab, program, per_host, words, secret):
    """Runs a job with per_host ranks on each host. Returns the lines and the statuses of its ranks."""
    hosts = [host for host in range(len(lab.names)) for _ in range(per_host)]
    processes = []
    for rank, host in enumerate(hosts):
        environment = {**os.environ, "ESPALIER_CABLES": "1", "RANK": str(rank), "WORLD_SIZE": str(len(hosts)), "ESPALIER_SECRET_FILE": str(secret)}
        processes.append(subprocess.Popen(lab.on(host, [program, *words]), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    try:
        return [process.communicate(timeout=HANG_S)[0].strip() for process in processes], [process.returncode for process in processes]
    finally:
        for process in processes:
            process.kill()


def check(shape, per_host, program, words, folder):
    secret = pathlib.Path(folder, "secret")
    secret.touch(mode=0o600)
    secret.write_bytes(os.urandom(32))
    with cables.Lab(shape) as lab:
        begin = time.monotonic()
        lines, statuses = run_job(lab, program, per_host, words, secret)
        taken = time.monotonic() - begin
    wrong = [line for line, status in zip(lines, statuses) if status != 0 or "right" not in line]
    print(f"{shape}, {per_host} per host: {len(lines) - len(wrong)} of {len(lines)} ranks right, {taken:.1f} s", flush=True)
    for line in wrong:
        print(f"  {line}", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("rank")
    parser.add_argument("shape", nargs="*", choices=[*cables.SHAPES, []])
    arguments = parser.parse_args()
    if reason := cables.refusal():
        print(f"no hosts can be made here: {reason}")
        return 77
    alone()
    program = pathlib.Path(arguments.rank).resolve()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.check:
            jobs = [("ring4", 1, ("1", "20", "8", "65536")), ("line4", 2, ("2", "20", "8"))]
        else:
            jobs = [(shape, per_host, ("1", "60", "8", "65536", str(8 << 20))) for shape in arguments.shape or WHOLE for per_host in (1, 2) if per_host * cables.size_of(shape) <= 16]
        return 0 if all([check(shape, per_host, program, words, folder) for shape, per_host, words in jobs]) else 1


if __name__ == "__main__":
    sys.exit(main())
