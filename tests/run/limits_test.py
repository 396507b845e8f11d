#!/usr/bin/env python3
"""Small limits of a program that joins by hand: each rank that they stop says so in one line, or everything works.

limits_test.py JOINED
"""
import os
import re
import resource
import subprocess
import sys
import unittest

from launchers import environment, free_port

JOINED = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
RANKS = 4


def join(*prefix, deadline_s=300, limits=(), ranks=RANKS, **variables):
    """The outputs (status, stdout, stderr) of the ranks, each with these (resource, soft limit) pairs. A test that works needs no deadline."""
    def limit():
        for kind, most in limits:
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))

    def start(rank):
        job = environment(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **variables)
        return subprocess.Popen([*prefix, JOINED, str(1000 * deadline_s)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, preexec_fn=limit, env=job)
    port = str(free_port())
    processes = [start(rank) for rank in range(ranks)]
    return [(process.wait(), *outputs) for process, outputs in [(process, process.communicate()) for process in processes]]


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
            outputs = join(deadline_s=1, limits=[(resource.RLIMIT_NOFILE, most)], FI_PROVIDER="shm")
            self.check_says(outputs[0], rf"rank 0 of 4 needs \d+ more open files; the limit of {most} leaves \d+ \(ulimit -n\)")
            for output in outputs[1:]:
                self.check_says(output, "no server of the job at .*; expected rank 0 or the launcher there")

    def test_enough_descriptors(self):
        self.check_works(join(limits=[(resource.RLIMIT_NOFILE, 64)]))

    def test_little_shared_memory(self):
        """mem takes none of /dev/shm; libfabric's shm says how much it has and needs."""
        tiny = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"', "sh"]
        refused = subprocess.run([*tiny, "true"], check=False, capture_output=True, text=True)
        if refused.returncode != 0:
            self.skipTest(f"no mount namespaces: {refused.stderr.strip()}")
        self.check_works(join(*tiny))
        for output in join(*tiny, FI_PROVIDER="shm"):
            self.check_says(output, 'provider "shm": /dev/shm has 1048576 bytes free; '
                                    r"expected \d+, which are 16 MiB per core, or provider mem or tcp")

    def test_no_folders(self):
        """Neither a folder for temporary files nor one for the cache is needed; nor may they be written."""
        for folder in ("/nonexistent", "/proc/sys"):
            self.check_works(join(HOME=folder, TMPDIR=folder, XDG_CACHE_HOME=folder))
        self.check_works(join(HOME="", TMPDIR=""))


if __name__ == "__main__":
    if not JOINED:
        sys.exit(re.sub(r"\n.*", "", __doc__))
    unittest.main()
