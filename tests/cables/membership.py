#!/usr/bin/env python3
"""Whether jobs join over the cables of lab.py alone, agree, and survive kills and cuts.

membership.py --table MEMBER [SHAPE..]          the time to join, and of a fence, per shape; prints a table
membership.py --check MEMBER                    a sample, and everything that is to be named

MEMBER is cables-member (member.cc), which does what its input says.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import lab as cables
from hosts import alone
from lab_case import LabCase, secret_file
from processes import HANG_S

PORT = 29752
MEMBER = None


class Job:
    """The processes of a job, host by host, until the `with` block ends."""

    def __init__(self, lab, secret, per_host=1, hosts=None, size=None, more=None):
        self.lab, self.secret, self.more = lab, secret, more or {}
        self.hosts = [host for host in (hosts if hosts is not None else range(len(lab.names))) for _ in range(per_host)]
        self.size = size or len(self.hosts)
        self.processes = {}

    def __enter__(self):
        for rank, host in enumerate(self.hosts):
            self.start(rank, host)
        return self

    def start(self, rank, host, **more):
        environment = {**os.environ, "ESPALIER_CABLES": "1", "RANK": str(rank), "WORLD_SIZE": str(self.size), "ESPALIER_SECRET_FILE": str(self.secret), **self.more, **more}
        self.processes[rank] = subprocess.Popen(self.lab.on(host, [MEMBER]), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            with process:
                pass

    def say(self, word, ranks=None):
        for rank in ranks if ranks is not None else self.processes:
            self.processes[rank].stdin.write(word + "\n")
            self.processes[rank].stdin.flush()

    def answers(self, ranks=None):
        """[(word, milliseconds, answer)] of the ranks."""
        found = []
        for rank in ranks if ranks is not None else self.processes:
            word, taken, *answer = self.processes[rank].stdout.readline().split(maxsplit=2) or ("", "nan")
            found.append((word, float(taken), answer[0].strip() if answer else ""))
        return found

    def do(self, word, ranks=None):
        ranks = list(ranks if ranks is not None else self.processes)
        self.say(word, ranks)
        return self.answers(ranks)

    def kill(self, rank):
        self.processes[rank].kill()
        self.processes[rank].wait()

    def end(self, ranks=None):
        """What the ranks said on stderr; their inputs end."""
        return [self.processes[rank].communicate(timeout=HANG_S)[1] for rank in (ranks if ranks is not None else self.processes)]


def graph_text(lab, hosts):
    """The graph as a member prints it. hosts: the host of each rank."""
    names = sorted(set(hosts))
    text = "".join(f" {lab.names[host]}:" + "".join(f"{rank}," for rank, of in enumerate(hosts) if of == host) for host in names)
    rows = sorted((a, lab_index, f" {lab.names[a]}.{a_name}-{lab.names[b]}.{b_name}")
                  for lab_index, (a, a_name, b, b_name) in enumerate(lab.cables) if a in names and b in names)
    return text, {row[2] for row in rows}


def whole(lab, secret, per_host, word_count=4):
    """Joins, and fences. Returns what is wrong, or (ms of the last rank's join, ms of each fence)."""
    with Job(lab, secret, per_host) as job:
        time.sleep(0.2)  # the programs have started
        joined = job.do("join")
        hosts, edges = graph_text(lab, job.hosts)
        for rank, (_, _, answer) in enumerate(joined):
            words = answer.split()
            if not answer.startswith(f"rank {rank}{hosts} ") or {" " + word for word in words if "-" in word} != edges:
                return f"rank {rank}: {answer}"
            if words[2:] != joined[0][2].split()[2:]:
                return f"rank {rank} has another graph than rank 0"
        times = []
        for _ in range(word_count):
            fences = job.do("fence")
            if any(answer != "done" for _, _, answer in fences):
                return str(fences)
            times.append(max(taken for _, taken, _ in fences))
        ended = job.do("leave")
        return (max(taken for _, taken, _ in joined), times, max(taken for _, taken, _ in ended))


def table(shapes, times):
    print("| shape | ranks per host | join, ms: median | worst | fence, ms: median |\n| --- | ---: | ---: | ---: | ---: |")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        secret = secret_file(folder)
        for shape in shapes:
            with cables.Lab(shape) as lab:
                for per_host in (1, 2):
                    found = [whole(lab, secret, per_host) for _ in range(times)]
                    wrong = [each for each in found if isinstance(each, str)]
                    good &= not wrong
                    if wrong:
                        print(f"| {shape} | {per_host} | {wrong[0]} | - | - |", flush=True)
                        continue
                    joins = [each[0] for each in found]
                    fences = [each for one in found for each in one[1][1:]]
                    print(f"| {shape} | {per_host} | {statistics.median(joins):.0f} | {max(joins):.0f} | {statistics.median(fences):.1f} |", flush=True)
    return 0 if good else 1


class Membership(LabCase):
    def job(self, *words, **more):
        job = Job(*words, **more)
        job.__enter__()
        self.addCleanup(job.__exit__)
        return job

    def all_done(self, answers):
        self.assertEqual({answer for _, _, answer in answers}, {"done"})

    def test_a_job_joins_over_its_cables_alone(self):
        for shape, per_host in (("line4", 2), ("mesh3x3", 1)):
            with self.subTest(shape=shape):
                self.assertIsInstance(found := whole(self.lab(shape), self.secret, per_host), tuple, found)

    def test_a_job_on_one_host_needs_no_cable(self):
        lab = self.lab("pair")
        job = self.job(lab, self.secret, 3, hosts=[0])
        self.assertEqual({answer.split(maxsplit=2)[2] for _, _, answer in job.do("join")}, {"box0:0,1,2,"})
        self.all_done(job.do("fence"))

    def test_kills_and_a_cut(self):
        """A ring with two ranks per host: a cut throws nobody out; then the agent of a host is killed, and its other process takes over."""
        lab = self.lab("ring4")
        job = self.job(lab, self.secret, 2)
        job.do("join")
        lab.set_silent(lab.cables[0], True)
        self.all_done(job.do("fence"))
        first = job.do("rejoin")
        self.assertEqual({answer.split(" graph")[0] for _, _, answer in first}, {"generation 1 ranks 0 1 2 3 4 5 6 7"})
        self.assertNotIn("box0.to1-box1.to0", first[0][2])
        self.assertIn("box0.to3-box3.to0", first[0][2])
        agent = max((2, 3), key=lambda rank: len(os.listdir(f"/proc/{job.processes[rank].pid}/fd")))
        job.kill(agent)
        others = [rank for rank in range(8) if rank != agent]
        for _, _, answer in job.do("fence", others):
            self.assertRegex(answer, f"^failed: rank {agent} has ended$|^failed: a process of the job calls rejoin")
        answers = {answer.split(" graph")[0] for _, _, answer in job.do("rejoin", others)}
        self.assertEqual(len(answers), 1)
        self.assertRegex(answers.pop(), rf"^generation \d+ ranks {' '.join(map(str, others))}$")
        self.all_done(job.do("fence", others))
        self.all_done(job.do("leave", others))

    def test_parts_know_which_they_are(self):
        """The middle cable of a line is cut during a fence: each half goes on by itself, under its own list."""
        lab = self.lab("line4")
        job = self.job(lab, self.secret)
        job.do("join")
        job.say("fence", [0, 1])
        lab.set_silent(lab.cables[1], True)
        self.assertEqual({answer for _, _, answer in job.answers([0, 1])}, {"failed: ranks 0, 1 are cut from ranks 2, 3"})
        answers = [answer.split(" graph")[0] for _, _, answer in job.do("rejoin")]
        self.assertEqual([answer.split("ranks ")[1] for answer in answers], ["0 1", "0 1", "2 3", "2 3"])
        self.all_done(job.do("fence"))
        said = "".join(job.end())
        self.assertIn("espalier: ranks 0, 1 are cut from ranks 2, 3\n", said)
        self.assertIn("espalier: ranks 2, 3 are cut from ranks 0, 1\n", said)

    def test_a_missing_rank_and_a_cable_of_one_side_are_named(self):
        lab = self.lab("ring4")
        lab.set_silent(lab.cables[0], True, only_from=1)
        job = self.job(lab, self.secret, hosts=[0, 1, 2], size=4)
        job.say("join")
        # Nothing reaches box0 before box3 has started: the others are two parts, and each names what it sees.
        self.assertRegex(job.processes[0].stderr.readline(), r"^espalier: waiting for ranks 1, 2, 3 of 4: cables reach box0 \(rank 0\); no host answers at box0 to1 \(fe80::")
        self.assertRegex(job.processes[1].stderr.readline(), r"^espalier: waiting for ranks 0, 3 of 4: cables reach box1 \(rank 1\), box2 \(rank 2\); box1 to0 \(fe80::[0-9a-f:]+\) receives from box0 to1, "
                         r"which does not receive from it; no host answers at box2 to3 \(")
        job.start(3, 3)
        job.say("join", [3])
        for _, _, answer in job.answers():
            self.assertRegex(answer, "^rank")

    def test_wrong_jobs_are_refused_on_all(self):
        """Of three ranks, one is there twice and one is missing; then one believes in four."""
        lab = self.lab("line4")
        job = self.job(lab, self.secret, hosts=[0, 1], size=3)
        job.processes[7] = job.processes.pop(1)
        job.start(1, 0)
        for _, _, answer in job.do("join"):
            self.assertRegex(answer, r"^failed: rank 1 is there twice, on (this host|host box\d) and on (this host|host box\d); expected another RANK for each process$")
        job = self.job(lab, self.secret, hosts=[0], size=3)
        job.start(1, 1, WORLD_SIZE="4")
        for _, _, answer in job.do("join"):
            self.assertRegex(answer, r"^failed: rank \d on (this host|host box\d) is of a job of [34], but rank \d of one of [34]; expected the same WORLD_SIZE everywhere$")

    def test_a_stranger_is_not_believed(self):
        """A host of a star floods its cable with packets of an earlier run, changed ones and garbage while the others join and go on."""
        lab, recorded = self.lab("star5"), self.folder / "recorded"
        others = [0, 1, 2, 4]
        with subprocess.Popen(lab.on(3, [sys.executable, HERE / "stranger.py", "record", "to0", PORT, 3, recorded]), stdout=subprocess.PIPE) as stranger:
            self.assertEqual(stranger.stdout.readline(), b"ready\n")
            with Job(lab, self.secret, hosts=others) as job:
                job.do("join")
                job.do("fence")
        self.assertGreater(len(recorded.read_text().split()), 3)
        with subprocess.Popen(lab.on(3, [sys.executable, HERE / "stranger.py", "flood", "to0", PORT, 4, recorded]), stdout=subprocess.PIPE, text=True) as flood:
            self.assertEqual(flood.stdout.readline(), "ready\n")
            job = self.job(lab, self.secret, hosts=others)
            self.assertEqual({answer.split()[2] for _, _, answer in job.do("join")}, {"box0:0,"})
            for _ in range(3):
                self.all_done(job.do("fence"))
            self.assertGreater(int(flood.communicate(timeout=HANG_S)[0]), 100)

    def test_contradictions_are_one_line(self):
        lab = self.lab("pair")
        for more, wanted in (({"ESPALIER_CABLES": "yes"}, "ESPALIER_CABLES='yes'; expected 1, or no such variable"),
                             ({"ESPALIER_ADDRESS": "a:1"}, "ESPALIER_CABLES contradicts ESPALIER_ADDRESS; expected one of them, because a job over its cables has no server"),
                             ({"ESPALIER_JOB_FILE": "f"}, "ESPALIER_CABLES contradicts ESPALIER_JOB_FILE; expected one of them, because a job over its cables has no server"),
                             ({"ESPALIER_SECRET_FILE": "/none"}, "cannot read the secret '/none': No such file or directory")):
            job = self.job(lab, self.secret, hosts=[0], more=more)
            self.assertEqual([answer for _, _, answer in job.do("join")], ["failed: " + wanted])


def main():
    global MEMBER
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("member")
    parser.add_argument("shapes", nargs="*", default=[], help="of --table; otherwise triangle, line4 and mesh3x3")
    arguments = parser.parse_args()
    MEMBER = os.path.abspath(arguments.member)
    if reason := cables.refusal():
        print(f"skipped: {reason}")
        return 77
    alone()
    if arguments.table:
        return table(arguments.shapes or ["triangle", "line4", "mesh3x3"], arguments.times)
    if not arguments.check:
        parser.error("expected --table or --check")
    return 0 if unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
