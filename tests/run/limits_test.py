#!/usr/bin/env python3
"""Small limits of a program that joins by hand, and of commands: whatever they stop says so in one line, or everything works.

limits_test.py JOINED ESPALIER
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

from launchers import environment, run_by_hand

JOINED, ESPALIER = (os.path.abspath(path) for path in (sys.argv.pop(1), sys.argv.pop(1))) if len(sys.argv) > 2 else ("", "")
RANKS = 4


def join(*prefix, deadline_s=300, limits=(), ranks=RANKS, **variables):
    """The outputs (status, stdout, stderr) of the ranks, each with these (resource, soft limit) pairs. A test that works needs no deadline."""
    def limit():
        for kind, most in limits:
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))

    return run_by_hand([*prefix, JOINED, str(1000 * deadline_s)], ranks, limit, **variables)


class Limits(unittest.TestCase):
    def check_works(self, outputs):
        self.assertEqual([status for status, _, _ in outputs], [0] * RANKS, outputs)
        self.assertEqual(outputs[0][1], f"{RANKS} processes joined\n")
        self.assertEqual([error for _, _, error in outputs], [""] * RANKS)

    def check_says(self, output, expected):
        status, out, error = output
        self.assertEqual((status, out, error.count("\n")), (2, "", 1), output)
        self.assertRegex(error, f"^joined: {expected}\n$")

    def test_few_descriptors(self):
        line = r"rank {} of 4 needs \d+ more open files; the limit of {} leaves \d+ \(ulimit -n\)"
        for most in (8, 16):
            for rank, output in enumerate(join(limits=[(resource.RLIMIT_NOFILE, most)])):
                self.check_says(output, line.format(rank, most))

    def test_the_server_needs_more(self):
        """Over mem a rank needs 8, and rank 0 one per rank more: only that one knows why."""
        for most in (12, 13):
            outputs = join(deadline_s=1, limits=[(resource.RLIMIT_NOFILE, most)], FI_PROVIDER="mem")
            self.check_says(outputs[0], rf"rank 0 of 4 needs \d+ more open files; the limit of {most} leaves \d+ \(ulimit -n\)")
            for output in outputs[1:]:
                self.check_says(output, "no server of the job at .*; expected rank 0 or the launcher there")

    def test_enough_descriptors(self):
        self.check_works(join(limits=[(resource.RLIMIT_NOFILE, 64)]))

    def test_little_shared_memory(self):
        """mem takes none of /dev/shm."""
        tiny = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"', "sh"]
        refused = subprocess.run([*tiny, "true"], check=False, capture_output=True, text=True)
        if refused.returncode != 0:
            self.skipTest(f"no mount namespaces: {refused.stderr.strip()}")
        self.check_works(join(*tiny))

    def test_little_address_space(self):
        """join() says which limit it has. Far below, the C library or libfabric end the process, with words of their own."""
        if join(limits=[(resource.RLIMIT_AS, 16 << 30)], ranks=1)[0][0] != 0:
            self.skipTest("a sanitizer needs more than 16 GiB of addresses")
        limit = r"; an address-space limit of \d+ bytes \(ulimit -v\)"
        outputs = [output for mebibytes in range(18, 40) for output in join(limits=[(resource.RLIMIT_AS, mebibytes << 20)], ranks=1)]
        said = [output for output in outputs if output[0] == 2]
        self.assertTrue(said, outputs)
        for output in said:
            self.check_says(output, r"(join\(\): no memory|join\(\) cannot start a thread: Resource temporarily unavailable|"
                                    "the job's server, which is in this process, has no memory)" + limit)
        self.assertFalse([output for output in outputs if "terminate called" in output[2]])
        outputs = join(deadline_s=15, limits=[(resource.RLIMIT_AS, 512 << 20)], ranks=2, FI_PROVIDER="mem")
        self.assertTrue([output for output in outputs if re.search("cannot map the memory of process.*Cannot allocate memory" + limit, output[2])],
                        outputs)

    def test_no_folders(self):
        """Neither a folder for temporary files nor one for the cache is needed; nor may they be written."""
        with tempfile.TemporaryDirectory() as existing:
            missing = os.path.join(existing, "missing")
            for folder in (missing, "/proc/sys"):
                self.check_works(join(HOME=folder, TMPDIR=folder, XDG_CACHE_HOME=os.path.join(folder, "cache")))
                self.check_works(join(HOME=folder))
            self.assertEqual(os.listdir(existing), [])
        self.check_works(join(HOME="", TMPDIR=""))


def limited(kind, most, *words):
    """The status and stderr of a command of espalier, and what it leaves in a new folder. Soft and hard limit are `most`."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([ESPALIER, *words], env=environment(), cwd=folder, capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(kind, (most, most)))
        return done.returncode, done.stderr, os.listdir(folder)


class Commands(unittest.TestCase):
    def test_file_size(self):
        """Memory that processes share counts as a file."""
        compile_words = ["compile", "--topology", "complete:4", "--collective", "broadcast", "-o", "x.esp"]
        run = ["run", "--topology", "complete:4", "--bytes", "8"]
        for most, words, line in ((0, ["launch", "-n", "2", "true"], "this host: no memory for the secret"), (0, compile_words, "cannot write 'x.esp'"),
                                  (0, run, "no memory for a schedule"), (1024, run, r"no memory for rank \d \(8 bytes\)")):
            status, error, files = limited(resource.RLIMIT_FSIZE, most, *words)
            self.assertEqual((status, files), (2, []), error)
            self.assertRegex(error, rf"^espalier: {line}: File too large; a file-size limit of {most} bytes \(ulimit -f\)\n$")

    def test_nodes_do_not_start(self):
        """Each provider names the limit with which its nodes cannot open an endpoint: nothing has run, so the status is 2."""
        words = ["run", "--topology", "complete:4", "--bytes", "8"]
        for most, provider in ((10, "tcp"), (10, "mem")):
            status, error, files = limited(resource.RLIMIT_NOFILE, most, *words, "--provider", provider)
            self.assertEqual((status, files, error.count("\n")), (2, [], 1), error)
            self.assertRegex(error, rf"^espalier: .*{most}.* \(ulimit -n\)\n$")
        for most in (16 << 10, 64 << 10, 1 << 20):
            status, error, files = limited(resource.RLIMIT_FSIZE, most, *words, "--provider", "mem")
            self.assertEqual((status, files, error.count("\n")), (2, [], 1), error)
            self.assertRegex(error, rf"^espalier: .*a file-size limit of {most} bytes \(ulimit -f\); expected provider tcp\n$")

    def test_address_space(self):
        words = ["compile", "--topology", "complete:4", "--collective", "broadcast", "-o", "x.esp"]
        outputs = [limited(resource.RLIMIT_AS, mebibytes << 20, *words) for mebibytes in range(14, 32)]
        said = [output for output in outputs if output[0] == 2]
        if not said and outputs[-1][0] != 0:
            self.skipTest(f"a sanitizer needs more addresses: {outputs[-1]}")
        for _, error, files in said:
            self.assertEqual(files, [])
            self.assertRegex(error, r"^espalier: (this needs more memory than there is|Resource temporarily unavailable); "
                                    r"an address-space limit of \d+ bytes \(ulimit -v\)\n$")
        # The least memory is not enough to load the libraries, a little more not for the exception that libprotobuf 3.21 throws before main() under
        # the C++ library of GCC 14, which then ends the process.
        in_main = next(index for index, (status, _, _) in enumerate(outputs) if status in (0, 2))
        for status, error, _ in outputs[:in_main]:
            self.assertTrue(status == 127 or (status, error) == (-signal.SIGABRT, "terminate called without an active exception\n"), outputs)
        self.assertEqual({status for status, _, _ in outputs[in_main:]} - {0, 2}, set(), outputs)


if __name__ == "__main__":
    if not JOINED:
        sys.exit(re.sub(r"\n.*", "", __doc__))
    unittest.main()
