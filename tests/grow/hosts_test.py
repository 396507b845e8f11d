#!/usr/bin/env python3
"""Newcomers on other hosts join a job of one host through its job file alone; a job without one is reached by no other host. The hosts are network
namespaces with 20 interfaces each, a docker bridge first. Root only.

hosts_test.py ESPALIER MEMBER
"""
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path += [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("interfaces", "run")]
import hosts  # noqa: E402
from launchers import environment  # noqa: E402
from processes import HANG_S, wait_for  # noqa: E402

WORDS = ["once", "2", "none", "-", "0"]  # of grow-member: two newcomers, no kill


def start(lab, name, words, **variables):
    return subprocess.Popen(lab.on(name, words), env=environment(**variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def grows(lab, ranks, job, file, espalier, member):
    """What is wrong with a job that takes two newcomers on other hosts."""
    newcomers = []
    if wait_for(file.exists):
        newcomers = [start(lab, "hostb", [espalier, "launch", "-n", "1", "--join", file, member, *WORDS]),
                     start(lab, "hostc", [member, *WORDS], ESPALIER_JOIN=str(file))]
    texts, until = [], time.monotonic() + HANG_S
    for process in [job, *newcomers]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.1, until - time.monotonic()))
        process.kill()
        texts.append(process.communicate()[0])
    text = "\n".join(texts)
    found = sorted(re.findall(r"final (\d) (\d)", text))
    return [] if found == [(str(rank), str(ranks + 2)) for rank in range(ranks + 2)] else [f"{job.args[-9:]}: {text}"]


def listeners(lab):
    """The addresses at which processes of the first host listen, without those of the loopback interface."""
    done = subprocess.run(lab.on("hosta", ["ss", "-Hltn"]), capture_output=True, text=True, check=True)
    local = [line.split()[3].rpartition(":")[0] for line in done.stdout.splitlines()]
    return [each for each in local if not re.match(r"127\.|\[::1\]|\[::ffff:127", each)]


def is_reached(lab, espalier, member, folder, *more):
    """Whether other hosts reach a server of a job of one host that runs."""
    out = folder / "out"
    with open(out, "w", encoding="utf-8") as file:
        job = subprocess.Popen(lab.on("hosta", [espalier, "launch", "-n", "2", *more, member, *WORDS]), env=environment(GROW_PROVIDER="mem"),
                               stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    try:
        if not wait_for(lambda: out.read_text(encoding="utf-8").count("ready") == 2):
            sys.exit(f"the job does not run: {out.read_text(encoding='utf-8')}")
        return bool(listeners(lab))
    finally:
        job.terminate()
        job.wait()


def main():
    espalier, member = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    if reason := hosts.refusal():
        print(f"skipped: {reason}")
        sys.exit(77)
    hosts.alone()
    bad = []
    with hosts.Hosts("bridge") as lab:
        folder = pathlib.Path(lab.state)
        ways = {"launch": (2, [espalier, "launch", "-n", "2", "--job-file", folder / "launch", member, *WORDS], {}),
                "variable": (2, [espalier, "launch", "-n", "2", member, *WORDS], {"ESPALIER_JOB_FILE": str(folder / "variable")}),
                "alone": (1, [member, *WORDS], {"ESPALIER_JOB_FILE": str(folder / "alone")})}
        if shutil.which("mpiexec.hydra"):
            ways["mpiexec"] = (2, ["mpiexec.hydra", "-n", "2", member, *WORDS], {"ESPALIER_JOB_FILE": str(folder / "mpiexec")})
        for name, (ranks, words, variables) in ways.items():
            bad += grows(lab, ranks, start(lab, "hosta", words, **variables), folder / name, espalier, member)
        if is_reached(lab, espalier, member, folder):
            bad.append("a job without a job file listens at addresses of other hosts")
        if not is_reached(lab, espalier, member, folder, "--job-file", folder / "again"):
            bad.append("a job with a job file listens at no address of other hosts")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
