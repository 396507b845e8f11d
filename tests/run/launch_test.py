#!/usr/bin/env python3
"""espalier launch: on this host, and over hosts that are network namespaces.

launch_test.py ESPALIER JOINED SURVIVOR
Hosts as network namespaces need root; otherwise that part is skipped with its reason.
"""
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

from launchers import LAB, OnHosts, environment
from processes import HANG_S, living, read, wait_for

ESPALIER, JOINED, SURVIVOR = (os.path.abspath(path) for path in sys.argv[1:4])


def launch(*words, text="", prefix=()):
    return subprocess.run([*prefix, ESPALIER, "launch", *words], input=text, env=environment(), capture_output=True, text=True,
                          timeout=HANG_S, check=False)


def processes_with(word):
    """The processes whose command line has this word."""
    return living(lambda pid: word in read(pid, "cmdline"))


class ThisHost(unittest.TestCase):
    def test_processes_join(self):
        done = launch("-n", "4", JOINED)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0] 4 processes joined\n", ""))

    def test_ipv6(self):
        for address in ("::1", "[::1]"):
            done = launch("-n", "2", "--address", address, JOINED)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[0] 2 processes joined\n", ""))

    def test_lines_have_their_rank(self):
        done = launch("-n", "3", "sh", "-c", "echo a; printf b; echo c >&2")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(sorted(done.stdout.split("\n")), sorted(["", *(f"[{r}] {x}" for r in range(3) for x in "ab")]))
        self.assertEqual(sorted(done.stderr.split("\n")), sorted(["", *(f"[{r}] c" for r in range(3))]))

    def test_rank_0_reads_the_input(self):
        text = "".join(f"line {i}\n" for i in range(50_000))
        done = launch("-n", "2", "cat", text=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "".join(f"[0] {line}\n" for line in text.splitlines()))

    def test_words_of_the_program_are_its_own(self):
        for words in (["echo", "-n", "--", "x"], ["--", "echo", "-n", "--", "x"]):
            self.assertEqual(launch("-n", "1", *words).stdout, "[0] -- x\n", words)

    def test_exit_status(self):
        for program, status, line in (("exit $((7 * ESPALIER_RANK))", 7, "rank 1 ended with status 7"),
                                      ("[ $ESPALIER_RANK = 0 ] || kill -9 $$", 137, "rank 1 ended with signal 9")):
            done = launch("-n", "2", "sh", "-c", program)
            self.assertEqual(done.returncode, status)
            self.assertIn(line, done.stderr)

    def test_the_job_file_is_there_while_the_job_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job")
            done = launch("-n", "1", "--job-file", path, "true", prefix=("env", f"ESPALIER_JOB_FILE={path}"))
            self.assertEqual(done.returncode, 2)
            self.assertIn("--job-file contradicts ESPALIER_JOB_FILE", done.stderr)
            done = launch("-n", "1", "--job-file", path, "sh", "-c", f"stat -c %a {path}; env | grep -c ESPALIER_JOIN")
            self.assertEqual((done.stdout, os.listdir(folder)), ("[0] 600\n[0] 0\n", []), done.stderr)
            mine = os.path.join(folder, "mine")
            with open(mine, "w", encoding="utf-8") as file:
                file.write("precious")
            done = launch("-n", "1", "--job-file", mine, "true")
            self.assertEqual((done.returncode, os.listdir(folder), os.path.getsize(mine)), (2, ["mine"], 8), done.stderr)
            self.assertIn("is there and is no job file; expected", done.stderr)
            # A later job has its own file there: the end of the earlier one leaves it.
            other = "127.0.0.1:1/" + "00" * 32
            done = launch("-n", "1", "--job-file", path, "sh", "-c", f"chmod 600 {path}; echo {other} > {path}")
            self.assertEqual((done.returncode, sorted(os.listdir(folder))), (0, ["job", "mine"]), done.stderr)
            with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write("127.0.0.1:1/" + "00" * 32 + "\n")
            done = launch("-n", "2", "--join", path, "sh", "-c", "cat $ESPALIER_JOIN; echo $ESPALIER_RANK$ESPALIER_SIZE$ESPALIER_SECRET_FILE.")
            lines = [f"[new {i}] {x}" for i in range(2) for x in ("127.0.0.1:1/" + "00" * 32, ".")]
            self.assertEqual(sorted(done.stdout.splitlines()), sorted(lines), done.stderr)

    def test_kill_on_failure_ends_the_others(self):
        done = launch("-n", "3", "--kill-on-failure", "sh", "-c", "[ $ESPALIER_RANK = 2 ] && exit 3; exec sleep 1000")
        self.assertEqual(done.returncode, 3)

    def test_signals_reach_the_processes(self):
        program = "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        job = subprocess.Popen([ESPALIER, "launch", "-n", "2", "sh", "-c", program], stdout=subprocess.PIPE, text=True,
                               env=environment())
        lines = [job.stdout.readline() for _ in range(2)]
        job.send_signal(signal.SIGTERM)
        lines += job.communicate(timeout=HANG_S)[0].splitlines(keepends=True)
        self.assertEqual(sorted(lines), ["[0] ready\n", "[0] told\n", "[1] ready\n", "[1] told\n"])

    def test_the_secret_is_on_no_command_line_and_in_no_environment(self):
        program = "stat -Lc %a $ESPALIER_SECRET_FILE; od -An -v -tx1 $ESPALIER_SECRET_FILE | tr -d ' \\n'; echo; env; cat /proc/*/cmdline"
        lines = launch("-n", "1", "sh", "-c", program).stdout.split("\n")
        mode, secret, others = lines[0], lines[1].removeprefix("[0] "), "\n".join(lines[2:])
        self.assertEqual((mode, len(secret)), ("[0] 600", 64))
        self.assertNotIn(secret, others)

    def test_other_launchers_variables_do_not_contradict(self):
        done = subprocess.run([ESPALIER, "launch", "-n", "2", JOINED], capture_output=True, text=True, timeout=HANG_S,
                              check=False, env={**environment(), "RANK": "7", "WORLD_SIZE": "9", "MASTER_ADDR": "x", "MASTER_PORT": "1"})
        self.assertEqual((done.returncode, done.stdout), (0, "[0] 2 processes joined\n"), done.stderr)

    def test_refusals(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("a slots=2\nb slits=1\n")
            file.flush()
            for words, line in (
                (["-n", "2"], "no program; expected"),
                (["-n", "0", "true"], "-n"),
                (["-n", "2", "--frob", "true"], "unknown option '--frob'"),
                (["-n", "2", "no-such-program"], "no program 'no-such-program'; expected an executable file"),
                (["-n", "4", "--hosts", "a:2,a", "true"], "the hosts have 3 slots; expected at least 4, one per rank: 'HOST:N'"),
                (["-n", "2", "--hosts", "a", "--hostfile", file.name, "true"], "--hosts"),
                (["-n", "2", "--hostfile", file.name, "true"], f"{file.name}, line 2: 'slits=1' is not understood; expected slots=N"),
                (["-n", "2", "--hosts", "a", "--rsh", "sh -c 'echo no route >&2; exit 255' rsh", "true"],
                 "host a cannot be reached: no route"),
                (["-n", "2", "--rsh", "ssh", "true"], "--rsh reaches other hosts; expected --hosts or --hostfile"),
                (["-n", "2", "--address", "192.0.2.1", "true"], "cannot listen at 192.0.2.1:0"),
                (["-n", "2", "--address", "fe80::1", "true"], "--address 'fe80::1' has no interface; expected ADDRESS%INTERFACE"),
                (["-n", "2", "--address", "no such name", "true"], "--address: host 'no such name' is unknown"),
                (["-n", "2", "--interface", "eth77", "true"], "--interface 'eth77': 'eth77'"),
                (["-n", "2", "--interface", "lo,,", "true"], "--interface 'lo,,': ''"),
                *((["-n", "2", "--address", text, "true"], f"espalier: --address '{text}'; expected a name or an address, without a port\n")
                  for text in ("127.0.0.1:4000", "[::1", "[::1]:4000", "[127.0.0.1]", "::1]", "host:1", "::1:40000:1:2:3:4:5:6")),
                (["-n", "2", "--port-range", "5", "true"], "--port-range '5'; expected FIRST-LAST"),
                (["-n", "2", "--port-range", "9-1", "true"], "--port-range '9-1'; expected"),
                (["-n", "2", "--job-file", "/no/job", "true"], "cannot write '/no/job': No such file or directory"),
                (["-n", "2", "--join", "/no/job", "true"], "--join: cannot read the job file '/no/job': No such file or directory"),
                (["-n", "2", "--join", file.name, "true"], f"--join: the job file '{file.name}' is malformed; expected the file that a job wrote\n"),
                (["-n", "2", "--join", file.name, "--job-file", "job", "true"], "--job-file"),
                (["-n", "2", "--join", file.name, "--address", "a", "true"], "--address"),
            ):
                done = launch(*words)
                self.assertEqual(done.returncode, 2, (words, done.stderr))
                self.assertIn(line, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_a_wait_says_for_whom(self):
        """Nothing but the reason once the deadline has passed; before, a line within the time that ESPALIER_PATIENCE names."""
        words = ("launch", "-n", "2", "--hosts", "a,b", "--connect-deadline", "3", "--rsh", "sh -c 'exec sleep 100' rsh", "true")
        for seconds, lines in (("1", ["espalier: waiting for host a, host b: no answer yet through the remote shell"] * 2), ("0", [])):
            done = subprocess.run([ESPALIER, *words], env=environment(ESPALIER_PATIENCE=seconds), capture_output=True, text=True, timeout=HANG_S)
            self.assertEqual(done.returncode, 2)
            *waits, reason = done.stderr.splitlines()
            self.assertIn(waits, (lines, lines[1:]))  # on a busy machine the second one may be late
            self.assertEqual(reason, "espalier: host a cannot be reached: no answer within 3 s")
        done = subprocess.run([ESPALIER, *words], env=environment(ESPALIER_PATIENCE="soon"), capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_a_hostile_daemon_is_lost(self):
        version = subprocess.run([ESPALIER, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        daemon = pathlib.Path(__file__).with_name("hostile_daemon.py")
        for how, name, status in (("again", "hello", 1), ("other", "end", 1), ("status", "end", 1), ("word", "\\x1b[2Jhowdy", 1),
                                  ("early", "end", 2)):
            done = launch("-n", "1", "--hosts", "a", "--rsh", shlex.join([sys.executable, str(daemon), version, how]), "true")
            self.assertEqual(done.returncode, status, (how, done.stderr))
            self.assertIn(f"its daemon sent a message '{name}' that is malformed or does not belong here", done.stderr, how)
            self.assertEqual(done.stderr.splitlines()[1:], ["espalier: the job failed"] if status == 1 else [], done.stderr)

    def test_a_daemon_refuses_a_malformed_job(self):
        def message(*fields):
            body = b"".join(len(field).to_bytes(4, "little") + field for field in fields)
            return len(body).to_bytes(4, "little") + body
        for variables in (b"-1", b"9", b"18446744073709551615", b"x"):
            job = message(b"job", b"1", b"0 ", bytes(32), b"/", b"", variables, b"true")
            done = subprocess.run([ESPALIER, "launch-daemon"], input=job, capture_output=True, timeout=HANG_S, check=False)
            self.assertEqual(done.returncode, 0, (variables, done.stderr))
            self.assertIn(message(b"refused", b"a malformed message"), done.stdout, variables)


class Hosts(OnHosts):
    HOSTS = 4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = cls.words[1].split(",")

    def over_hosts(self, *words):
        return launch(*words[:2], *self.words, *words[2:], prefix=self.on_host_0)

    def test_processes_join(self):
        done = self.over_hosts("-n", "8", JOINED)
        self.assertEqual((done.returncode, done.stdout), (0, "[0] 8 processes joined\n"), done.stderr)

    def test_ranks_are_in_blocks(self):
        done = self.over_hosts("-n", "8", "hostname")
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[{rank}] {self.names[rank // 2]}" for rank in range(8)])

    def test_interfaces_and_ports(self):
        program = "echo $ESPALIER_ADDRESS $ESPALIER_INTERFACE $ESPALIER_PORTS"
        words = ("--interface", "10.79.0.0/24,!docker0", "--port-range", "21000-21900")
        for line in self.over_hosts("-n", "4", *words, "sh", "-c", program).stdout.splitlines():
            self.assertRegex(line, r"^\[\d\] 10\.79\.0\.1:21\d\d\d(,127\.0\.0\.1:\d+,\[::1\]:\d+)? 10\.79\.0\.0/24,!docker0 21000-21900$")
        done = self.over_hosts("-n", "4", *words, JOINED)
        self.assertEqual((done.returncode, done.stdout), (0, "[0] 4 processes joined\n"), done.stderr)
        done = self.over_hosts("-n", "4", "--interface", "10.79.0.1/32", "true")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"host esplab[123]: ")  # the first one that answers
        self.assertIn("interfaces '10.79.0.1/32': '10.79.0.1/32' names no interface", done.stderr)
        self.assertNotIn("ESPALIER_INTERFACE", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_hostfile_with_slots(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# hosts\nesplab2 slots=3\nesplab1 slots=9\n")
            file.flush()
            done = launch("-n", "5", "--hostfile", file.name, "--rsh", f"{LAB} rsh", "hostname", prefix=self.on_host_0)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["[0] esplab2", "[1] esplab2", "[2] esplab2", "[3] esplab1", "[4] esplab1"], done.stderr)

    def test_a_failure_names_the_host(self):
        done = self.over_hosts("-n", "4", "sh", "-c", "[ $ESPALIER_RANK = 2 ] && exit 9; exit 0")
        self.assertEqual(done.returncode, 9)
        self.assertIn("rank 2 on host esplab2 ended with status 9", done.stderr)

    def test_survivors_rejoin(self):
        words = " ".join(shlex.quote(word) for word in (*self.on_host_0, ESPALIER, "launch", "-n", "8", *self.words))
        trials = [sys.executable, pathlib.Path(__file__).with_name("survivors_test.py"), ESPALIER, SURVIVOR, "--trials", "2"]
        done = subprocess.run([*trials, "--launch", words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_process_outlives_the_launcher(self):
        mark = f"espalier-launch-test-{os.getpid()}"
        job = subprocess.Popen([*self.on_host_0, ESPALIER, "launch", "-n", "8", *self.words,
                                "sh", "-c", f": {mark}; echo ready; sleep 1000"], stdout=subprocess.PIPE, text=True, env=environment())
        for _ in range(8):
            self.assertIn("ready", job.stdout.readline())
        self.assertGreaterEqual(len(processes_with(mark)), 8)
        job.kill()
        job.communicate(timeout=HANG_S)
        self.assertTrue(wait_for(lambda: not processes_with(mark)), processes_with(mark))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
