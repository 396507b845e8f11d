#!/usr/bin/env python3
"""Random cases in which one rank, or one cable, holds a job up: does `espalier status` name it first?

judge.py [--cases N] [--records N] [--jobs N] [--page FILE] ESPALIER HELD

--cases: jobs that run while they are asked, every 0.3 s: the first answer with a suspect counts. --records: jobs that were killed with
SIGKILL, or failed, of which only the records are left. --jobs: cases at once. --page writes docs/results/status.md. ESPALIER_SEED draws
other cases. The exit status is 1 if an answer was wrong.
A cable is cut by rules of the kernel's routing in a network namespace of its own, which needs root; otherwise these cases are left out, and
the last line says so.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from pages import markdown
from processes import HANG_S

# What the fault is, and the word of `espalier status --json` for it.
KINDS = {"never started": "a rank never starts", "stopped": "a rank is stopped (SIGSTOP)", "computing": "a rank computes and calls no more",
         "diverged": "a rank calls another collective", "cut": "a cable is cut", "working": "a rank stays in an operator of the program",
         "ended": "a rank is killed (SIGKILL)"}
# Of records alone: all ranks are killed while they work. No rank held the job up, and none is the cause of an earlier failure.
ALL_ENDED = "all ended"
OWN_FAULTS = {"computing": "compute", "diverged": "other", "working": "operator"}
PAUSE_S = 0.3
UNDECIDED_S = 5  # how long an answer may name both sides of a divergence, because a rank has not come to the call
AFTER_S = 5  # from the fault to the end of a job of which the records are read
SHORT_D = 2


class Case:
    """One job with one fault."""

    def __init__(self, number, kind, only_records, words):
        draw = random.Random(f"{words.seed} {number} {kind} {only_records}")
        self.kind, self.only_records, self.words = kind, only_records, words
        self.ranks = draw.randint(3 if kind == "diverged" else 2, 8)
        self.provider = "tcp" if kind == "cut" else draw.choice(["tcp", "mem"])
        self.calls = draw.randint(1, 60)
        self.seed = draw.getrandbits(32)
        self.victims = sorted(draw.sample(range(self.ranks), 2 if kind == "cut" else 1))
        self.order = draw.sample(range(self.ranks), self.ranks)
        self.deadline = SHORT_D if only_records and draw.random() < 0.5 and kind in ("stopped", "cut", "ended") else 60
        self.end = draw.choice([None, "return", "exit"]) if self.deadline == SHORT_D else None
        self.delay = draw.random()
        self.name = f"{kind}, {self.ranks} ranks over {self.provider}, rank {self.victims}, D = {self.deadline} s, end {self.end}, seed {self.seed}"
        self.pids, self.has_fault, self.output = {}, False, ""

    def command(self):
        held = f"exec {self.words.held} {self.seed} {self.calls} {OWN_FAULTS.get(self.kind, 'none')} {self.victims[0]}"
        if self.kind == "never started":
            held = f"if [ $ESPALIER_RANK = {self.victims[0]} ]; then exec sleep 600; fi; {held}"
        launch = [self.words.espalier, "launch", "-n", str(self.ranks), "sh", "-c", held]
        if self.kind == "cut":
            # The rules come before that of local addresses.
            script = 'ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0 && exec "$@"'
            launch = ["unshare", "-n", "sh", "-c", script, "sh", *launch]
        return launch

    def environment(self, folder):
        run = folder / "run"
        run.mkdir(mode=0o700)
        more = {"XDG_RUNTIME_DIR": str(run), "HELD_PROVIDER": self.provider, "HELD_DEADLINE": str(self.deadline), "ESPALIER_PATIENCE": "0"}
        if self.kind == "cut":
            more["HELD_ADDRESSES"] = "1"
        if self.end:
            more["HELD_END"] = self.end
        if self.only_records:
            more["ESPALIER_RECORD"] = str(folder / "records")
        return {**os.environ, **more}

    def read_output(self, path):
        """Takes note of what the ranks have said."""
        self.output = path.read_text(errors="replace")
        for line in self.output.splitlines():
            words = line.partition("] ")[2].split()
            if len(words) == 3 and words[0] == "joined":
                self.pids[int(words[1])] = int(words[2])
            if words[:1] == ["fault"]:
                self.has_fault = True

    def wait_until_joined(self, path, folder):
        until = time.monotonic() + HANG_S
        while time.monotonic() < until:
            self.read_output(path)
            waiting = list((folder / "run/espalier").glob("espalier-*")) if (folder / "run/espalier").is_dir() else []
            if len(self.pids) == self.ranks or (self.kind == "never started" and len(waiting) == self.ranks - 1):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{self.name}: the ranks did not join\n{self.output}")

    def make_fault(self, job, path):
        """Makes the fault that comes from outside, or waits for one of the program's own."""
        time.sleep(self.delay)
        if self.kind == ALL_ENDED:
            for rank in self.order:
                os.kill(self.pids[rank], signal.SIGKILL)
        elif self.kind in ("stopped", "ended"):
            os.kill(self.pids[self.victims[0]], signal.SIGSTOP if self.kind == "stopped" else signal.SIGKILL)
        elif self.kind == "cut":
            a, b = (f"127.0.1.{rank + 1}" for rank in self.victims)
            for source, target in ((a, b), (b, a)):
                subprocess.run(["nsenter", "-t", str(self.pids[0]), "-n", "ip", "rule", "add", "pref", "10", "from", source, "to", target,
                                "blackhole"], check=True)
        else:
            until = time.monotonic() + HANG_S
            while self.kind != "never started" and not self.has_fault and time.monotonic() < until and job.poll() is None:
                time.sleep(0.02)
                self.read_output(path)

    def ask(self, environment, *words):
        done = subprocess.run([self.words.espalier, "status", "--json", *words], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr
        jobs = json.loads(done.stdout)["jobs"]
        return (jobs[0], "") if len(jobs) == 1 else (None, f"{len(jobs)} jobs")

    def judge(self, job):
        """What is wrong with the first suspect; nothing: it is the culprit."""
        if self.kind == ALL_ENDED:
            others = [suspect["text"] for suspect in job["suspects"] if suspect["kind"] != "ended"]
            return " ".join([*others, job["cause"]])
        if not job["suspects"]:
            return "no suspect"
        first = job["suspects"][0]
        if (first["ranks"], first["kind"]) == (self.victims, self.kind):
            return ""
        if self.is_undecided(job) and self.is_tied(job, first["ranks"]):
            return ""
        return f"{first['kind']} {first['ranks']}: {first['text']}"

    @staticmethod
    def is_tied(job, named):
        """Whether no third rank began the call of these two: the mismatch ended the communicator on all others before."""
        parts = {rank["rank"]: next((part for part in rank["communicators"] if part["number"] == 0), {}) for rank in job["ranks"]}
        call = min(parts[each].get("calls_begun", 0) for each in named)
        return len(named) == 2 and all("failure" in part and part["calls_begun"] < call for rank, part in parts.items() if rank not in named)

    def is_undecided(self, job):
        """Whether as many ranks are in the one call as in the other: the next that comes decides."""
        first = job["suspects"][0]
        return first["kind"] == "diverged" and set(self.victims) < set(first["ranks"])

    def run(self):
        """Returns (what was wrong, seconds from the fault to the answer)."""
        with tempfile.TemporaryDirectory(prefix="espalier-judge-") as name:
            folder = pathlib.Path(name)
            environment, path = self.environment(folder), folder / "output"
            with open(path, "wb") as output:
                job = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
            try:
                self.wait_until_joined(path, folder)
                self.make_fault(job, path)
                began = time.monotonic()
                if not self.only_records:
                    return self.ask_until_answered(environment, path, began)
                until = time.monotonic() + (0 if self.kind == ALL_ENDED else AFTER_S)
                while time.monotonic() < until and job.poll() is None:
                    time.sleep(0.1)
                self.read_output(path)
            except TimeoutError as error:
                return str(error), 0
            finally:
                job.kill()
                job.wait()
                wait_until_ended(self.pids.values())
            answer, refusal = self.ask(environment, "--records", str(folder / "records"))
            return (self.judge(answer) if answer else refusal), 0

    def ask_until_answered(self, environment, path, began):
        while True:
            answer, refusal = self.ask(environment)
            waited = time.monotonic() - began
            if answer and answer["suspects"] and not (self.is_undecided(answer) and waited < UNDECIDED_S):
                self.read_output(path)
                return self.judge(answer), waited
            if waited > HANG_S:
                return f"no suspect within {HANG_S} s {refusal}", waited
            time.sleep(PAUSE_S)


def wait_until_ended(pids):
    """The daemon of the host ends the ranks once the launcher is gone."""
    until = time.monotonic() + HANG_S
    while any(pathlib.Path(f"/proc/{pid}/stat").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.02)


def can_cut():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0


PAGE = """# Who holds the job up

Written by `tests/status/judge.py --cases {cases} --records {records} --page docs/results/status.md build/tools/espalier build/tests/status/held`
on {cores} processors. Each case is a job of 2 to 8 ranks (`espalier launch`) over tcp or mem, which calls random collectives until one fault
holds it up. An answer is right if the first suspect of `espalier status` has the fault's kind, and its rank or both ends of the cable.

While the job runs, the judge asks every {pause} s. The first answer with a suspect counts; the judge asks again for {undecided} s while it names both sides
of a divergence, because as many ranks are in either call. Times end at that answer; a wait below 1 s is no suspicion. Records alone: the job
ran with ESPALIER_RECORD and was killed {after} s after the fault. Half of the stopped and killed ranks and cut cables had a deadline of {short} s: the job
failed before, and a third of the others then left in order, a third at once. A mismatch ends a job at once: if only two ranks came to the
call, nothing tells which of them is wrong, and both are right. If all ranks are killed at work, the answer has no
suspect, or the ranks that ended first, and no cause.

{table}
"""


def page_of(results, words):
    rows = []
    for kind, title in [*KINDS.items(), (ALL_ENDED, "all ranks are killed (SIGKILL)")]:
        live = [(wrong, waited) for case, wrong, waited in results if case.kind == kind and not case.only_records]
        left = [wrong for case, wrong, _ in results if case.kind == kind and case.only_records]
        times = [waited for wrong, waited in live if not wrong]
        rows.append([title, f"{sum(not wrong for wrong, _ in live)} of {len(live)}" if kind in KINDS else "-", f"{statistics.median(times):.1f}" if times else "-",
                     f"{max(times):.1f}" if times else "-", f"{sum(not wrong for wrong in left)} of {len(left)}"])
    def total(only):
        of = [wrong for case, wrong, _ in results if case.only_records == only]
        return f"{sum(not wrong for wrong in of)} of {len(of)}"
    rows.append(["all", total(False), "", "", total(True)])
    columns = ["fault", "right while it runs", "s, median", "s, longest", "right by the records alone"]
    table = markdown(columns, rows, columns[1:])
    return PAGE.format(cases=words.cases, records=words.records, cores=os.cpu_count(), pause=PAUSE_S, undecided=UNDECIDED_S, after=AFTER_S, short=SHORT_D,
                       table=table.rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--page")
    parser.add_argument("espalier", type=os.path.abspath)
    parser.add_argument("held", type=os.path.abspath)
    words = parser.parse_args()
    words.seed = int(os.environ.get("ESPALIER_SEED", random.SystemRandom().getrandbits(32)))
    print(f"ESPALIER_SEED={words.seed} repeats these cases", flush=True)
    kinds = [kind for kind in KINDS if kind != "cut" or can_cut()]
    random.Random(words.seed).shuffle(kinds)
    cases = [Case(number, of[number % len(of)], only, words)
             for only, count, of in ((False, words.cases, kinds), (True, words.records, [*kinds, ALL_ENDED])) for number in range(count)]
    results = []
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        for case, (wrong, waited) in zip(cases, pool.map(Case.run, cases)):
            results.append((case, wrong, waited))
            if wrong:
                print(f"WRONG {case.name}{' (records)' if case.only_records else ''}: {wrong}\n{case.output}", flush=True)
    counts = collections.Counter((case.only_records, not wrong) for case, wrong, _ in results)
    if words.page:
        pathlib.Path(words.page).write_text(page_of(results, words), encoding="utf-8")
    left_out = "" if "cut" in kinds else "; skipped: cut cables, which need root and network namespaces"
    print(f"{counts[False, True]} of {words.cases} right while the job ran, {counts[True, True]} of {words.records} by the records{left_out}")
    sys.exit(1 if counts[False, False] + counts[True, False] else 0)


if __name__ == "__main__":
    main()
