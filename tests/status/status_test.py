#!/usr/bin/env python3
"""`espalier status`: what it prints of a job that is held up, in each form, from this host and from others; who may read it; what it refuses;
the line of a call that waits.

status_test.py ESPALIER HELD
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "formats")]
import schema
from processes import HANG_S, wait_for

ESPALIER, HELD = (os.path.abspath(path) for path in sys.argv[1:3])
SCHEMA = json.loads((TESTS.parent / "docs/status.schema.json").read_text())
RANKS, VICTIM = 3, 1  # 48 calls of held.cc come before the five of the job


def status(environment, *words):
    done = subprocess.run([ESPALIER, "status", *words], env=environment, capture_output=True, text=True, timeout=HANG_S)
    return done.returncode, done.stdout, done.stderr


class Held(unittest.TestCase):
    """One job, whose rank 1 computes for ever."""

    @classmethod
    def setUpClass(cls):
        ends = contextlib.ExitStack()
        cls.addClassCleanup(ends.close)
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-status-"))
        os.chmod(folder, 0o700)
        cls.environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "HELD_PROVIDER": "mem", "ESPALIER_PATIENCE": "1"}
        cls.folder, cls.output = pathlib.Path(folder), pathlib.Path(folder) / "output"
        with open(cls.output, "wb") as output:
            job = subprocess.Popen([ESPALIER, "launch", "-n", str(RANKS), HELD, "1", "5", "compute", str(VICTIM)], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, env=cls.environment)
        ends.callback(job.wait)
        ends.callback(job.send_signal, signal.SIGTERM)
        if not wait_for(lambda: cls.suspects(cls)):
            raise AssertionError(f"no suspect\n{cls.output.read_text()}")

    def suspects(self):
        code, out, _ = status(self.environment, "--json")
        return code == 0 and json.loads(out)["jobs"][0]["suspects"]

    def test_text_names_the_culprit_first(self):
        code, out, error = status(self.environment)
        self.assertEqual((code, error), (0, ""))
        lines = out.splitlines()
        self.assertRegex(lines[0], r"^job [0-9a-f]{12}: 3 ranks, 3 with a record, on 1 host, over mem$")
        self.assertRegex(lines[1], r"^  suspect: rank 1 is 1 call behind, computing for \d+(\.\d)? s$")
        self.assertRegex(lines[3], r"^  0 .* waiting .* s to (receive from|send to) rank \d  0/54 .* \d of \d$")
        self.assertRegex(lines[4], r"^  1 .* computing .* 0/53 ")
        self.assertIn("bytes of complete calls, by rank", out)

    def test_json_keeps_its_schema(self):
        code, out, _ = status(self.environment, "--json")
        self.assertEqual(code, 0)
        found = json.loads(out)
        self.assertEqual(schema.check(found, SCHEMA), [])
        ranks = found["jobs"][0]["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], list(range(RANKS)))
        self.assertEqual([rank["communicators"][0]["calls_begun"] for rank in ranks], [54, 53, 54])
        self.assertTrue(wait_for(self.links_agree))

    def links_agree(self):
        """Whether what each rank has sent arrived. Bytes are counted once a second."""
        ranks = json.loads(status(self.environment, "--json")[1])["jobs"][0]["ranks"]
        sent = {(rank["rank"], link["rank"]): link["sent"] for rank in ranks for link in rank["links"]}
        got = {(link["rank"], rank["rank"]): link["received"] for rank in ranks for link in rank["links"]}
        return sum(sent.values()) > 0 and sent == got

    def test_prometheus(self):
        code, out, _ = status(self.environment, "--prometheus")
        self.assertEqual(code, 0)
        sample = re.compile(r'espalier_[a-z_]+\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\} -?\d+(\.\d+)?')
        comment = re.compile(r"# (HELP espalier_[a-z_]+ .+|TYPE espalier_[a-z_]+ (gauge|counter))")
        for line in out.splitlines():
            self.assertTrue(sample.fullmatch(line) or comment.fullmatch(line), line)
        self.assertRegex(out, r'espalier_calls_done_total\{job="[0-9a-f]+",rank="0",host="[^"]*",communicator="0"\} 53')
        self.assertRegex(out, r'espalier_suspect\{job="[0-9a-f]+",rank="1",kind="computing"\} 1')

    def test_job_by_the_beginning_of_its_name(self):
        name = json.loads(status(self.environment, "--json")[1])["jobs"][0]["job"]
        self.assertEqual(status(self.environment, "--job", name[:4])[0], 0)
        code, out, error = status(self.environment, "--job", "xyz")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(error, "espalier: no job xyz of this user runs here; other hosts: --host\n")

    def test_other_hosts_through_the_remote_shell(self):
        """Here the other host is this one, with another run-time folder: all ranks are on it."""
        with tempfile.TemporaryDirectory() as empty:
            here = {**self.environment, "XDG_RUNTIME_DIR": empty, "THERE": str(self.folder)}
            self.assertEqual(status(here)[0], 1)
            shell = "sh -c 'XDG_RUNTIME_DIR=$THERE; export XDG_RUNTIME_DIR; [ $1 = there ] || exit 1; shift; eval \"$@\"' sh"
            code, out, error = status(here, "--host", "there", "--rsh", shell)
            self.assertEqual((code, error), (0, ""))
            self.assertIn("suspect: rank 1 is 1 call behind", out)
            code, out, error = status(here, "--host", "there,nowhere", "--rsh", shell)
            self.assertEqual(code, 0)
            self.assertIn("host nowhere: no answer; expected espalier at the same path", error)
            code, out, error = status(here, "--host", "slow", "--rsh", "sleep 100 #", "--deadline", "1")
            self.assertEqual(code, 1)
            self.assertIn("host slow: no answer within 1 s", error)

    def changed(self, old, new):
        """An environment whose only record is rank 0's, with the bytes `new` in place of `old`."""
        path = next(path for path in (self.folder / "espalier").iterdir() if path.name.split(".")[1] == "0")
        raw = path.read_bytes()
        self.assertIn(old, raw)
        at = raw.index(old)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        run = pathlib.Path(folder.name) / "espalier"
        run.mkdir(mode=0o700)
        (run / path.name).write_bytes(raw[:at] + new + raw[at + len(new):])
        return {**self.environment, "XDG_RUNTIME_DIR": folder.name}

    def test_a_host_of_a_record_is_no_option_of_the_remote_shell(self):
        host = os.uname().nodename.encode()
        there = self.changed(host + b"*3\0", host + b"*1 -oProxyCommand=x*1 a;b*1 other*1\0")
        log = pathlib.Path(there["XDG_RUNTIME_DIR"]) / "log"
        code, _, error = status({**there, "LOG": str(log)}, "--rsh", "sh -c 'echo \"$1\" >> $LOG' sh")
        self.assertEqual(code, 0, error)
        self.assertEqual(log.read_text(), "other\n")

    def test_no_text_of_a_record_controls_the_terminal(self):
        name = json.loads(status(self.environment, "--json")[1])["jobs"][0]["job"].encode()
        there = self.changed(name, b"\x1b[2J\n\xffabcdef")
        for form in ([], ["--json"], ["--prometheus"]):
            code, out, error = status(there, "--local", *form)
            self.assertEqual((code, error), (0, ""))
            self.assertNotIn("\x1b", out)
            self.assertNotIn("\nabc", out)
        self.assertRegex(out, r'job="\\\\x1b\[2J\\\\x0a\\\\xffabcdef"')

    def test_other_users_are_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root may become another user")
        script = f"import os; os.setgid(65534); os.setuid(65534); os.execv({ESPALIER!r}, ['espalier', 'status'])"
        os.chmod(self.folder, 0o755)  # not what keeps them out
        self.addCleanup(os.chmod, self.folder, 0o700)
        done = subprocess.run([sys.executable, "-c", script], env=self.environment, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        for path in (self.folder / "espalier").iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def test_a_call_that_waits_says_so_once(self):
        self.assertTrue(wait_for(lambda: "has waited" in self.output.read_text()))
        time.sleep(1)
        lines = [line for line in self.output.read_text().splitlines() if "has waited" in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"^\[0\] espalier: rank 0 of 3 has waited \d s, since \d\d:\d\d:\d\d, in .* \(communicator 0, call 54\) to "
                                   r"(receive from|send to) rank \d in step \d of \d: rank 1 is 1 call behind, computing for .* s$")

    def test_watch_ends_with_the_reader(self):
        watch = subprocess.Popen([ESPALIER, "status", "--watch"], env=self.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2):
            while not watch.stdout.readline().startswith("job "):
                self.assertIsNone(watch.poll())
        watch.kill()
        watch.communicate()


class Agreements(unittest.TestCase):
    """Ranks that wait in accept() or rejoin(), or use two communicators."""

    def check(self, kind, suspects, text, lines, newcomer=""):
        """`newcomer`: what one says that waits."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "HELD_PROVIDER": "mem", "ESPALIER_PATIENCE": "1"}
            output = pathlib.Path(folder) / "output"
            with open(output, "wb") as file:
                job = subprocess.Popen([ESPALIER, "launch", "-n", "3", "--job-file", folder + "/job", HELD, "1", "5", kind, "1"],
                                       stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)
                late = None
            try:
                found = []
                def has_suspect():
                    code, out, _ = status(environment, "--json")
                    found[:] = json.loads(out)["jobs"] if code == 0 else []
                    return found and [(one["kind"], one["ranks"]) for one in found[0]["suspects"]] == suspects
                self.assertTrue(wait_for(has_suspect), f"{found} {output.read_text()}")  # rank 0 may come to the call a second later
                if newcomer:
                    late = subprocess.Popen([HELD, "1", "5", kind, "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, text=True, env={**environment, "ESPALIER_JOIN": folder + "/job"})
                    self.assertRegex(late.stderr.readline(), newcomer)
                    self.assertTrue(has_suspect())
                self.assertEqual(schema.check({"version": 1, "jobs": found}, SCHEMA), [])
                _, out, _ = status(environment)
                for line in text:
                    self.assertRegex(out, line)
                self.assertTrue(wait_for(lambda: "waiting for" in output.read_text() or "has waited" in output.read_text()), output.read_text())
                self.assertRegex(output.read_text(), lines)
                return found[0]["ranks"]
            finally:
                if late:
                    late.kill()
                    late.communicate()
                job.send_signal(signal.SIGTERM)
                job.wait()

    def test_accept(self):
        ranks = self.check("accept", [("computing", [1])], [r"suspect: rank 1 has not called accept\(\): computing for \d+(\.\d)? s\n",
                                                            r"\n  0 .* waiting .* s in accept\(\) for rank 1 "],
                           r"espalier: waiting for rank 1 of 3: rank 1 has not called accept\(\): computing for .* s\n")
        self.assertEqual([rank.get("agreement", {}).get("ranks") for rank in ranks], [[1], None, [1]])

    def test_rejoin(self):
        self.check("rejoin", [("computing", [1])], [r"suspect: rank 1 has not called rejoin\(\): computing for ",
                                                    r"\n  2 .* waiting .* s in rejoin\(\) for rank 1 "],
                   r"espalier: waiting for rank 1 of 3: rank 1 has not called rejoin\(\): computing for .* s\n")

    def test_newcomers(self):
        self.check("newcomers", [("newcomers", [])], [r"suspect: not all of 2 newcomers came: ranks 0, 1 and 2 wait in accept\(\), for ",
                                                      r"\n  1 .* waiting .* s in accept\(\) for 2 newcomers "],
                   r"espalier: waiting for newcomers: all ranks have called accept\(\), and [01] of 2 newcomers came\n",
                   r"^espalier: waiting for the job at .*: all its ranks must call accept\(\), and enough newcomers come\n$")


    def test_communicators_in_another_order(self):
        calls = (r"rank 1 waits in call 1 of communicator 1 \(allreduce of 1 i32, sum\), and has not called call \d+ of communicator 0 "
                 r"\(barrier\), in which ranks 0 and 2 wait\n")
        self.check("order", [("diverged", [1])], [r"suspect: " + calls], r"has waited .*: (in the job, )?" + calls)

    def test_part_names_its_ranks_in_the_job(self):
        self.check("part", [("computing", [1])], [r"suspect: rank 1 is 1 call behind, computing for "],
                   r"espalier: rank 0 of 3 \(rank 2 of the job\) has waited \d s, .* \(communicator 1, call 1\) to (receive from|send to) "
                   r"rank \d \(rank \d of the job\) in step \d of \d: in the job, rank 1 is 1 call behind, computing for .* s\n")


class OtherNamespace(unittest.TestCase):
    def test_ranks_of_another_namespace_live_until_they_end(self):
        """Their numbers are those of no process here, or of another one."""
        if os.geteuid() != 0:
            self.skipTest("only root may make a namespace of processes")
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "HELD_PROVIDER": "mem", "ESPALIER_PATIENCE": "0"}
            job = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", ESPALIER, "launch", "-n", "2", HELD, "1", "1",
                                    "compute", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            try:
                self.assertTrue(wait_for(lambda: "suspect: rank 1 is 1 call behind, computing" in status(environment)[1]))
                self.assertNotIn("ended", status(environment)[1])
            finally:
                job.kill()
                job.wait()
            self.assertTrue(wait_for(lambda: status(environment)[0] == 1))
            self.assertEqual(list((pathlib.Path(folder) / "espalier").iterdir()), [])


class Refusals(unittest.TestCase):
    def refused(self, line, *words, **more):
        done = subprocess.run([ESPALIER, "status", *words], env={**os.environ, **more}, capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(line, done.stderr)

    def test_options_that_would_not_be_used(self):
        self.refused("--local", "--local", "--rsh", "ssh")
        self.refused("--prometheus", "--json", "--prometheus")
        self.refused("--records", "--records", "x", "--watch")
        self.refused("--prometheus shows jobs that run", "--records", "x", "--prometheus")
        self.refused("has a number of slots", "--host", "a:4")
        self.refused("espalier: --host: malformed host name 'a b'; expected letters", "--host", "a b")

    def test_records(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(f"'{folder}' has no record", "--records", folder)
            self.refused("No such file", "--records", folder + "/none")
            path = pathlib.Path(folder) / "espalier-abc.0.1"
            path.write_bytes(b"x" * 60000)
            self.refused(f"'{path}' is not a record", "--records", folder)
            path.write_bytes(b"ESPREC\n\0" + bytes([9, 0, 0, 0]) + bytes(60000))
            self.refused("is a record of version 9; expected 2", "--records", folder)

    def test_variables_of_a_rank(self):
        for variable, value, expected in (("ESPALIER_PATIENCE", "x", "expected a whole number from 0 to 86400"),
                                          ("ESPALIER_RECORD", "/proc/x", "expected a folder that this process can write to")):
            done = subprocess.run([ESPALIER, "launch", "-n", "2", HELD, "1", "1", "none", "0"], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, env={**os.environ, variable: value}, timeout=HANG_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"{variable}='{value}'; {expected}", done.stdout + done.stderr)


class Leaving(unittest.TestCase):
    def test_a_rank_that_waits_for_a_stopped_one_sleeps(self):
        """After a cancel, when no call is in progress."""
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "output"
            with open(output, "wb") as file:
                job = subprocess.Popen([ESPALIER, "launch", "-n", "2", HELD, "1", "1", "leave", "1"], stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=file, env={**os.environ, "XDG_RUNTIME_DIR": folder, "HELD_PROVIDER": "tcp", "HELD_DEADLINE": "3"})
            try:
                self.assertTrue(wait_for(lambda: len(self.stopped(output)) == 2), output.read_text())
                processes = self.stopped(output)
                os.kill(processes["0"], signal.SIGCONT)
                self.assertTrue(wait_for(lambda: "left 0" in output.read_text()), output.read_text())
                os.kill(processes["1"], signal.SIGCONT)
                job.wait(timeout=HANG_S)
            finally:
                job.kill()
                job.wait()
            took, used = map(int, re.search(r"left 0 (\d+) (\d+)", output.read_text()).groups())
            self.assertGreater(took, 1000)
            self.assertLess(used, took / 10)

    @staticmethod
    def stopped(output):
        """The processes of ranks that are stopped, by rank."""
        found = dict(re.findall(r"joined (\d) (\d+)", output.read_text()))
        return {rank: int(process) for rank, process in found.items()
                if pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1][0] == "T"}


class Ended(unittest.TestCase):
    def test_five_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "run"
            run.mkdir(mode=0o700)
            environment = {**os.environ, "XDG_RUNTIME_DIR": str(run), "ESPALIER_RECORD": folder + "/records"}
            with open(folder + "/output", "wb") as output:
                job = subprocess.Popen([ESPALIER, "launch", "-n", "3", HELD, "3", "4", "other", "2"], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=output, env=environment)
            try:
                self.assertTrue(wait_for(lambda: "suspect: in call 53" in status(environment)[1]))
            finally:
                job.kill()
                job.wait()
            self.assertTrue(wait_for(lambda: status(environment)[0] == 1))
            self.assertEqual(list((run / "espalier").iterdir()), [])
            code, out, error = status(environment, "--records", folder + "/records")
            self.assertEqual((code, error), (0, ""))
            lines = out.splitlines()
            self.assertEqual(len(lines), 5, out)
            self.assertRegex(lines[1], "first divergence: in call 53 of communicator 0, rank 2 called .*; ranks 0 and 1 called ")
            self.assertRegex(lines[2], "culprit: in call 53 of communicator 0, rank 2 called ")
            self.assertRegex(lines[4], "records: of all ranks")
            code, out, _ = status(environment, "--records", folder + "/records", "--json")
            self.assertEqual(schema.check(json.loads(out), SCHEMA), [])
            self.assertTrue(json.loads(out)["jobs"][0]["has_ended"])
            for record in pathlib.Path(folder, "records").glob("espalier-*.1.*"):
                record.unlink()
            lines = status(environment, "--records", folder + "/records")[1].splitlines()
            self.assertEqual(lines[4], "  records: rank 1 left none: it left in order, never started, or wrote elsewhere")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
