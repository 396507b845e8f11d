#!/usr/bin/env python3
"""Standard streams of `espalier launch`: closed ones, parts of lines, readers that do not read, and small limits."""
import itertools
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from espalier import COMMAND, NODE, call
from processes import HANG_S


def launch(*words, **more):
    return subprocess.run([COMMAND, "launch", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=HANG_S, **more)


def shell(text):
    return call("-c", text.replace("$LAUNCH", f"{COMMAND} launch"), program="bash")


def read_until(file, text):
    """The bytes up to and with the text; what was there if it does not come."""
    found = b""
    while not found.endswith(text) and (more := os.read(file, 1)):
        found += more
    return found


class Streams(unittest.TestCase):
    def test_any_of_them_closed(self):
        """In the launcher and in the ranks, in all subsets: the job runs, and no stream's bytes get into another file."""
        for subset in itertools.chain.from_iterable(itertools.combinations("012", size) for size in range(4)):
            closed = " ".join(f"{stream}{'<' if stream == '0' else '>'}&-" for stream in subset)
            with tempfile.TemporaryDirectory() as folder:
                program = f"echo out; echo err >&2; echo $ESPALIER_RANK > {folder}/$ESPALIER_RANK; exit 0"
                done = shell(f"$LAUNCH -n 3 sh -c '{program}' {closed}")
                self.assertEqual(done.returncode, 0, (closed, done.stderr))
                self.assertEqual(sorted(done.stdout.splitlines()), [] if "1" in subset else [f"[{r}] out" for r in range(3)], closed)
                self.assertEqual(sorted(done.stderr.splitlines()), [] if "2" in subset else [f"[{r}] err" for r in range(3)], closed)
                self.assertEqual(sorted(os.listdir(folder)), ["0", "1", "2"])
            done = shell(f"$LAUNCH -n 3 sh -c '{'exec ' + closed if closed else ':'}; sleep 0.1; exit 0'")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), closed)

    def test_a_question_is_printed_before_the_answer(self):
        job = subprocess.Popen([COMMAND, "launch", "-n", "1", "sh", "-c", 'printf "value? "; read x; echo got $x'],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(read_until(job.stdout.fileno(), b"? "), b"[0] value? ")
        out, _ = job.communicate(b"42\n", timeout=HANG_S)
        self.assertEqual((out, job.returncode), (b"got 42\n", 0))

    def test_a_progress_bar_moves(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            program = f'exec 3< {fifo}; for i in 1 2; do printf "\\r%d0%%" $i; read x <&3; done; echo'
            job = subprocess.Popen([COMMAND, "launch", "-n", "1", "sh", "-c", program], stdout=subprocess.PIPE)
            with open(fifo, "w", encoding="utf-8") as steps:
                for percent in (b"[0] \r[0] 10%", b"\r[0] 20%"):  # each step waits for the one before to be printed
                    self.assertEqual(read_until(job.stdout.fileno(), b"%"), percent)
                    steps.write("\n")
                    steps.flush()
            self.assertEqual(job.communicate(timeout=HANG_S)[0], b"\n")

    def test_a_part_of_a_line_ends_before_another_rank(self):
        program = "if [ $ESPALIER_RANK = 0 ]; then printf part; sleep 1; echo ' end'; else sleep 0.6; echo whole; fi"
        done = launch("-n", "2", "sh", "-c", program)
        self.assertIn(done.stdout, ("[0] part\n[1] whole\n[0]  end\n", "[1] whole\n[0] part end\n", "[0] part end\n[1] whole\n"))

    def test_a_line_without_an_end(self):
        done = launch("-n", "1", "sh", "-c", "printf last; printf error >&2")
        self.assertEqual((done.stdout, done.stderr), ("[0] last\n", "[0] error\n"))

    def test_a_reader_that_is_gone(self):
        done = shell("$LAUNCH -n 2 yes | head -1; echo ${PIPESTATUS[0]}")
        self.assertEqual(done.stdout.splitlines()[1], str(128 + signal.SIGPIPE))
        done = shell("$LAUNCH -n 2 sh -c 'trap \"\" PIPE; while echo x; do :; done 2>/dev/null; exit 7' | head -1; echo ${PIPESTATUS[0]}")
        self.assertEqual(done.stdout.splitlines()[1], "7")

    def test_a_full_disk_is_no_success(self):
        done = shell("$LAUNCH -n 2 echo x > /dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("espalier: cannot write to stdout: No space left on device\n", done.stderr)

    def test_a_reader_that_does_not_read_hides_no_end(self):
        """One rank fills the pipe of stdout; the other fails, and --kill-on-failure ends the job."""
        pipe, end = os.pipe()
        program = "[ $ESPALIER_RANK = 0 ] && exec yes; sleep 1; exit 5"
        job = subprocess.Popen([COMMAND, "launch", "-n", "2", "--kill-on-failure", "sh", "-c", program], stdout=end,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        os.close(end)
        self.assertEqual(job.stderr.readline(), b"espalier: rank 1 ended with status 5\n")
        self.assertEqual(job.stderr.readline(), b"espalier: rank 0 ended with signal 9\n")
        while os.read(pipe, 1 << 16):
            pass
        os.close(pipe)
        self.assertEqual(job.wait(HANG_S), 5)
        job.stderr.close()

    def test_output_is_whole_and_in_order(self):
        done = launch("-n", "2", "seq", "200000")
        for rank in range(2):
            lines = [line for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
            self.assertEqual(lines, [f"[{rank}] {i}" for i in range(1, 200001)])

    def test_a_process_that_a_rank_left_behind_writes_for_ever(self):
        done = launch("-n", "1", "sh", "-c", "yes & sleep 0.2; exit 3")
        self.assertEqual(done.returncode, 3)

    def test_the_terminal_of_a_background_job_is_left_alone(self):
        """An interactive shell's background job that read the terminal would be stopped."""
        script = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(["bash", "-mc", sys.argv[1]], lambda f: os.read(f, 1024))))'
        program = f"{COMMAND} launch -n 1 sh -c 'sleep 1.5; echo done' & wait"
        job = subprocess.Popen(["python3", "-c", script, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        job.stdin.write("typed\n")
        job.stdin.flush()
        out, _ = job.communicate(timeout=HANG_S)
        self.assertIn("[0] done", out)


class Limits(unittest.TestCase):
    def test_few_descriptors(self):
        def limited(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        done = launch("-n", "40", "true", preexec_fn=limited(64, 64))
        self.assertEqual((done.returncode, done.stderr),
                         (2, "espalier: this host: 40 ranks need 136 open files; the limit is 64 (ulimit -n)\n"))
        done = launch("-n", "40", "sh", "-c", "ulimit -n", preexec_fn=limited(64, 1024))  # the ranks keep their limit
        self.assertEqual((done.returncode, set(line.split("] ")[1] for line in done.stdout.splitlines())), (0, {"64"}))

    def test_run_with_few_descriptors_says_so_at_once(self):
        words = [COMMAND, "run", "--node-binary", NODE, "--topology", "complete:4", "--bytes", "8", "--provider", "tcp"]
        began = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_S,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
        self.assertLess(time.monotonic() - began, 60)  # a connection is given up after 88 s
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"open files; the limit is 16 \(ulimit -n\)")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_without_proc(self):
        if subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no mount namespaces; expected root")
        for words in (["launch", "-n", "2", "true"], ["run", "--topology", "complete:2"], ["measure"], ["doctor"]):
            done = call("--mount", "sh", "-c", f'mount -t tmpfs none /proc && exec {COMMAND} "$@"', "sh", *words, program="unshare")
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            self.assertEqual(done.stderr, "espalier: cannot read /proc/self/exe: No such file or directory; expected /proc to be mounted "
                             "('mount -t proc proc /proc')\n")
        self.assertTrue(pathlib.Path("/proc/self/exe").exists())


class Hosts(unittest.TestCase):
    RSH = "sh -c 'echo \"$@\" >> $LOG; while [ $# -gt 1 ]; do shift; done; exec sh -c \"$1\"' rsh"

    def test_words_reach_the_remote_shell(self):
        with tempfile.TemporaryDirectory() as folder:
            log, hosts = os.path.join(folder, "log"), os.path.join(folder, "hosts")
            pathlib.Path(hosts).write_text("a:2\nme@b slots = 1 port=2222\r\na\n", encoding="utf-8")
            done = launch("-n", "4", "--verbose", "--hostfile", hosts, "--rsh", self.RSH, "true", env={**os.environ, "LOG": log})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"host a: ranks 0 to 2; [^\n]*\nespalier: host me@b: ranks 3 to 3")
            calls = sorted(line.split("exec")[0].strip() for line in pathlib.Path(log).read_text(encoding="utf-8").splitlines())
            self.assertEqual(calls, ["-p 2222 me@b", "a"])

    def test_few_descriptors_of_the_launcher(self):
        """Each host has enough for its ranks; the launcher serves all hosts and ranks."""
        words = ["-n", "40", "--hosts", ",".join(f"h{host}:2" for host in range(20)), "--rsh", self.RSH, "true"]
        for hard, expected in ((100, (2, "espalier: the connections of 40 ranks need 116 open files; the limit is 100 (ulimit -n)\n")), (1024, (0, ""))):
            done = launch(*words, env={**os.environ, "LOG": "/dev/null"}, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard)))
            self.assertEqual((done.returncode, done.stderr), expected)

    def test_this_host_needs_no_remote_shell(self):
        path = {**os.environ, "PATH": "/nonexistent"}  # there is no ssh
        for name in ("localhost", "127.0.0.1", "::1", os.uname().nodename):
            done = launch("-n", "2", "--hosts", name, "--verbose", "/bin/true", env=path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rf"^espalier: host {name}: ranks 0 to 1; rendezvous at 127.0.0.1:\d+\n$")
        done = launch("-n", "2", "--hosts", "localhost", "--rsh", "sh -c 'echo not here >&2; exit 1' rsh", "true")
        self.assertEqual((done.returncode, done.stderr), (2, "espalier: host localhost cannot be reached: not here\n"))


if __name__ == "__main__":
    unittest.main()
