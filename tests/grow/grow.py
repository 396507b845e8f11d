#!/usr/bin/env python3
"""Processes join running jobs, and in some jobs a process is killed in the same moment. Either all have the larger communicator, or all have
the old one and one cause; the survivors then go on to the larger one. After that, one job loses a rank and gets another one again and again.

grow.py [--cases N] [--rounds N] [--seed S] [--page FILE] [--sample] [--compare PAGE] [--verbose] ESPALIER MEMBER

Default: 200 cases, every fourth of them with a kill, and 1,000 rounds, of a random seed. --page writes the page; --sample is a few of each;
--compare: the page must have the form of this run, and its own run found nothing. Exit status 1: something was wrong.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path += [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "run")]
import pages  # noqa: E402
from launchers import environment, free_port  # noqa: E402
from processes import HANG_S, wait_for  # noqa: E402

SOAK_DEADLINE_MS = 2000  # a killed rank is found after 5/4 of it
METHODS = {"launch": "`espalier launch`", "hand": "by hand", "folder": "by a shared folder"}
PROVIDERS = ["tcp", "mem"]


class Process:
    """A process or a launcher. A thread reads its lines."""

    def __init__(self, words, log=None, **variables):
        self.popen = subprocess.Popen([str(word) for word in words], env=environment(**variables), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=log, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        with self.popen.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip("\n"))

    def await_line(self, word):
        if not wait_for(lambda: not self.reader.is_alive() or any(word in line for line in self.lines)):
            raise RuntimeError(f"hangs before '{word}': {self.lines}")
        if not any(word in line for line in self.lines):
            raise RuntimeError(f"ended without '{word}': {self.lines}")

    def await_round(self, least):
        """The number of the round that it is in, at least `least`."""
        last = -1

        def is_there():
            nonlocal last
            last = max((int(line.split()[1]) for line in self.lines if line.startswith("round")), default=-1)
            return last >= least or not self.reader.is_alive()
        if not wait_for(is_there) or last < least:
            raise RuntimeError(f"hangs or ended before round {least}: {self.lines[-3:]}")
        return last

    def finish(self, until):
        """Its lines, and its status; a hang has status None."""
        try:
            status = self.popen.wait(timeout=max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            status = None
        self.reader.join()
        return self.lines, status


class Case:
    """A job, its newcomers, and what they said."""

    def __init__(self, args, number, folder, dice):
        self.args, self.folder, self.number = args, folder, number
        self.method = list(METHODS)[number % 3]
        self.provider = dice.choice(PROVIDERS)
        self.size = dice.randrange(2, 8) if number % 3 else dice.randrange(2, 7)
        self.newcomers = dice.randrange(1, 9 - self.size) if self.size < 8 else 0
        self.newcomers = min(self.newcomers, 3)
        kills = number % 4 == 3
        # Rank 0 has the server, unless the launcher has it.
        self.killed = dice.choice(["member", "member", "newcomer"]) if kills else "none"
        first = 0 if self.method == "launch" else 1
        self.victim = dice.randrange(first, self.size) if self.killed == "member" else dice.randrange(self.newcomers)
        self.delay_us = int(10 ** dice.uniform(1, 5))

    def text(self):
        kill = "no kill" if self.killed == "none" else f"{self.killed} {self.victim} killed after {self.delay_us} us"
        return f"case {self.number}: {self.method}, {self.provider}, {self.size} + {self.newcomers}, {kill}"

    def words(self, victim):
        return [self.args.member, "once", self.newcomers, self.killed, victim, self.delay_us]

    def start(self, log):
        job = self.folder / "job"
        variables = {"GROW_PROVIDER": self.provider, "TMPDIR": str(self.folder / "tmp")}
        member = self.words(self.victim if self.killed == "member" else "-")
        starts = {"launch": lambda: [Process([self.args.espalier, "launch", "-n", self.size, "--job-file", job, *member], log, **variables)],
                  "hand": lambda: self.start_by_hand(member, job, log, variables),
                  "folder": lambda: [Process([*member, f"{self.folder},{self.number},{rank},{self.size}"], log, ESPALIER_JOB_FILE=str(job),
                                             **variables) for rank in range(self.size)]}
        members = starts[self.method]()
        members[0].await_line("ready")
        newcomers = []
        for number in range(self.newcomers):
            words = self.words(0 if self.killed == "newcomer" and self.victim == number else "-")
            if self.method == "launch":
                newcomers.append(Process([self.args.espalier, "launch", "-n", 1, "--join", job, *words], log, **variables))
            else:
                newcomers.append(Process(words, log, ESPALIER_JOIN=str(job), **variables))
        return members, newcomers

    def start_by_hand(self, member, job, log, variables):
        port, secret = str(free_port()), self.folder / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        return [Process(member, log, RANK=str(rank), WORLD_SIZE=str(self.size), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                        ESPALIER_SECRET_FILE=str(secret), ESPALIER_JOB_FILE=str(job), **variables) for rank in range(self.size)]

    def run(self, log):
        """What was wrong, or nothing; and whether all had the larger communicator at once."""
        until = time.monotonic() + HANG_S
        members, newcomers = self.start(log)
        old, new = ([each.finish(until) for each in group] for group in (members, newcomers))
        said = self.said_by_members(old)
        joined = {f"new {number}": [re.sub(r"^\[new 0\] ", "", line) for line in lines] for number, (lines, _) in enumerate(new)}
        wrong = self.judge(said, joined)
        statuses = collections.Counter(status for _, status in old + new)
        expected = {0} if self.killed == "none" else {0, 137, -9}
        if None in statuses:
            wrong = f"a hang; {wrong}"
        elif not set(statuses) <= expected or statuses[137] + statuses[-9] > 1:
            wrong = f"statuses {dict(statuses)}; {wrong}"
        left = sorted(path.name for path in self.folder.rglob("*") if path.name not in ("tmp", "secret"))
        if left:
            wrong = f"files left: {left}; {wrong}"
        is_grown = any(line.startswith("grown") for lines in said.values() for line in lines)
        return f"{wrong}: {said} {joined}" if wrong else "", is_grown

    def said_by_members(self, outputs):
        if self.method != "launch":
            return {rank: lines for rank, (lines, _) in enumerate(outputs)}
        said = {rank: [] for rank in range(self.size)}
        for line in outputs[0][0]:
            if prefix := re.match(r"\[(\d+)\] (.*)", line):
                said[int(prefix[1])].append(prefix[2])
        return said

    def judge(self, said, joined):
        survivors = {name: lines for name, lines in {**said, **joined}.items()
                     if name != (self.victim if self.killed == "member" else f"new {self.victim}") or self.killed == "none"}
        final_size = self.size + self.newcomers - (self.killed != "none")
        if errors := [line for lines in survivors.values() for line in lines if line.startswith("error")]:
            return f"errors {errors}"
        first = {next((line for line in lines if line.startswith(("grown", "old"))), "nothing") for name, lines in survivors.items() if name in said}
        if len(first) != 1 or first == {"nothing"}:
            return f"members differ: {first}"
        causes = {name: [line for line in lines if line.startswith("cause")] for name, lines in survivors.items()}
        has_grown = first == {f"grown {self.size + self.newcomers}"}
        with_cause = {name for name in survivors if name in said or has_grown}
        if self.killed == "none" and not has_grown:
            return f"not larger: {first}"
        expects_cause = self.killed == "member" or self.killed == "newcomer" and has_grown
        seen = {tuple(causes[name]) for name in with_cause}
        if len(seen) != 1 or len(next(iter(seen))) != (1 if expects_cause else 0):
            return f"causes differ: {seen}"
        if expects_cause:
            peer = int(next(iter(seen))[0].split()[3])
            if peer != self.victim if self.killed == "member" else peer < self.size:
                return f"the cause names rank {peer}"
        finals = sorted(tuple(map(int, line.split()[1:])) for lines in survivors.values() for line in lines if line.startswith("final"))
        if finals != [(rank, final_size) for rank in range(final_size)]:
            return f"at the end: {finals}, expected {final_size} ranks"
        return ""


def run_case(args, number, log):
    with tempfile.TemporaryDirectory() as name:
        (pathlib.Path(name) / "tmp").mkdir()
        case = Case(args, number, pathlib.Path(name), random.Random(args.seed + number))
        try:
            wrong, is_grown = case.run(log)
        except RuntimeError as error:
            wrong, is_grown = str(error), False
    if wrong or args.verbose:
        print(case.text(), "BAD " + wrong if wrong else "larger" if is_grown else "old", flush=True)
    return case, wrong, is_grown


def state_of(process, folder):
    """Memory of its own and shared memory in KiB, descriptors, threads and mappings of a process, and files of the run."""
    proc = pathlib.Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines() if ":" in line)
    kib = {name: int(status[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem")}
    return {"memory": kib["RssAnon"] + kib["RssFile"], "shared": kib["RssShmem"], "descriptors": len(list((proc / "fd").iterdir())), "threads": int(status["Threads"]),
            "mappings": len((proc / "maps").read_text().splitlines()), "files": len(list(folder.rglob("*")))}


def soak(args, rounds, provider, dice, log):
    """What was wrong, or nothing; the seconds; the samples of ranks 0 and 1, which live through all rounds; and the failures without a kill."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tmp").mkdir()
        (folder / "run").mkdir(mode=0o700)
        stop, job, port, secret = folder / "stop", folder / "job", str(free_port()), folder / "secret"
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        variables = {"GROW_PROVIDER": provider, "GROW_DEADLINE_MS": str(SOAK_DEADLINE_MS), "TMPDIR": str(folder / "tmp"),
                     "XDG_CACHE_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")}
        ranks = [Process([args.member, "rounds", stop], log, RANK=str(rank), WORLD_SIZE="4", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                         ESPALIER_SECRET_FILE=str(secret), ESPALIER_JOB_FILE=str(job), **variables) for rank in range(4)]
        others, samples, begin, last = ranks[2:], [], time.monotonic(), 0
        try:
            ranks[0].await_line("round 0")
            for number in range(rounds):
                victim = others.pop(dice.randrange(len(others)))
                victim.popen.kill()
                victim.finish(time.monotonic() + HANG_S)
                others.append(Process([args.member, "rounds", stop], log, ESPALIER_JOIN=str(job), **variables))
                last = ranks[0].await_round(last + 1)
                samples.append([state_of(each.popen.pid, folder) for each in ranks[:2]])
                if args.verbose and (number % 50 == 0 or rounds < 50):
                    print(f"{time.monotonic() - begin:.1f} s: round {number}: {samples[-1]}", flush=True)
        except RuntimeError as error:
            for each in ranks + others:
                each.popen.kill()
                each.popen.wait()
            return str(error), time.monotonic() - begin, samples, 0
        seconds = time.monotonic() - begin
        stop.touch()
        ends = [each.finish(time.monotonic() + HANG_S) for each in ranks[:2] + others]
        wrong = "; ".join(f"{lines[-1:]} {status}" for lines, status in ends if status != 0 or not lines[-1].startswith("final"))
        unexpected = last - rounds
        if unexpected > 1 + rounds // 100:
            wrong += f"; {unexpected} failures without a kill"
        return wrong, seconds, samples, unexpected


def quarters(samples, rank, name):
    """The means over the quarters of the rounds; of shared memory the least: how much of it is mapped depends on who connects just then."""
    size = max(1, len(samples) // 4)
    parts = [[each[rank][name] for each in samples[begin:begin + size]] for begin in range(0, 4 * size, size)]
    return [min(part, default=0) if name == "shared" else sum(part) / max(1, len(part)) for part in parts]


# What memory may grow from the second quarter to the last, however many rounds: the heap's fragments; shared memory.
MEMORY_KIB, SHARED_KIB = 512, 64
JUDGED_ROUNDS = 100  # memory and mappings; fewer samples differ by what is open at the moment


def grows(samples, provider):
    """What did not stay constant."""
    found, has_many = [], len(samples) >= JUDGED_ROUNDS
    most = dict.fromkeys(("descriptors", "threads", "files"), 0.5 if has_many else 4)
    if has_many:
        most.update(mappings=8, memory=MEMORY_KIB, shared=SHARED_KIB)
    for rank in range(2):
        for name in most:
            _, second, _, last = quarters(samples, rank, name)
            if last - second > most[name]:
                found.append(f"{name} of rank {rank} over {provider}: {second:.1f} to {last:.1f}")
    return found


SHOWN = {"memory": "resident memory of its own, KiB", "shared": "least resident shared memory, KiB", "descriptors": "descriptors",
         "threads": "threads", "mappings": "mappings"}


def page(command, counts, soaks, findings):
    lines = ["# Growing jobs", "", f"Written by `{command}`.", ""]
    lines += [(pathlib.Path(__file__).parent / "page.md").read_text().strip(), ""]
    lines += ["| cases | all | with a kill | larger at the first accept() | old communicator, one cause | wrong |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    lines += [f"| {METHODS[method]} | {c['all']} | {c['kills']} | {c['grown']} | {c['old']} | {c['wrong']} |" for method, c in counts.items()]
    lines += ["", "| means over the rounds of each quarter | first quarter | second | third | last |", "| --- | ---: | ---: | ---: | ---: |"]
    for provider, (_, seconds, samples, unexpected) in soaks.items():
        lines.append(f"| **over {provider}: {len(samples)} rounds in {seconds:.0f} s** | | | | |")
        for rank, whose in ((0, "rank 0, with the server"), (1, "rank 1")):
            for name, what in SHOWN.items():
                lines.append(f"| {whose}: {what} | " + " | ".join(f"{mean:.1f}" for mean in quarters(samples, rank, name)) + " |")
        lines.append(f"| failures without a kill | {unexpected} | | | |")
        lines.append("| files of the run, the cache included | " + " | ".join(f"{mean:.1f}" for mean in quarters(samples, 0, "files")) + " |")
    return "\n".join([*lines, "", "| verdict | |", "| --- | ---: |", f"| findings | {len(findings)} |", ""])


def form(text):
    """The lines without their numbers."""
    return pages.form(re.sub(r"`tests/grow.*`", "", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("espalier", "member"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--page")
    parser.add_argument("--compare")
    for name in ("--sample", "--verbose"):
        parser.add_argument(name, action="store_true")
    args = parser.parse_args()
    cases = args.cases if args.cases is not None else 9 if args.sample else 200
    rounds = args.rounds if args.rounds is not None else 8 if args.sample else 1000
    print(f"{cases} cases, {rounds} rounds, seed {args.seed}", flush=True)
    log = None if args.verbose else subprocess.DEVNULL
    counts, findings = {method: collections.Counter() for method in METHODS}, []
    # Everything waits most of the time. Rounds do not share memory with cases.
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as cases_pool, concurrent.futures.ThreadPoolExecutor() as rounds_pool:
        soaking = {provider: rounds_pool.submit(soak, args, rounds // 2, provider, random.Random(args.seed), log) for provider in PROVIDERS}
        for case, wrong, is_grown in cases_pool.map(lambda number: run_case(args, number, log), range(cases)):
            counts[case.method].update(all=1, kills=case.killed != "none", grown=is_grown, old=not is_grown, wrong=bool(wrong))
            findings += [f"{case.text()}: {wrong}"] if wrong else []
        soaks = {provider: future.result() for provider, future in soaking.items()}
    for provider, (wrong, _, samples, _) in soaks.items():
        findings += [f"rounds over {provider}: {wrong}"] if wrong else grows(samples, provider)
    command = f"tests/grow/grow.py --cases {cases} --rounds {rounds} --seed {args.seed} --page docs/results/grow.md build/tools/espalier " \
        "build/tests/grow/grow-member"
    text = page(command, counts, soaks, findings)
    print(text)
    for finding in findings:
        print("BAD:", finding)
    if args.page:
        pathlib.Path(args.page).write_text(text)
    if args.compare:
        kept = pathlib.Path(args.compare).read_text()
        if form(kept) != form(text):
            sys.exit(f"grow.py: {args.compare} is old; expected the form of this run")
        if "| findings | 0 |" not in kept.splitlines():
            sys.exit(f"grow.py: {args.compare} has findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
