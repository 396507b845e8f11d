#!/usr/bin/python3
"""Processes that fork, load the library again, and join again, under each way to start them.

processes_test.py ESPALIER LIBRARY AGAIN FORKING [BRIDGE...]
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import launchers

ESPALIER, LIBRARY, AGAIN, FORKING, *BRIDGES = sys.argv[1:]
TIMES = 100 if os.environ.get("ESPALIER_WHOLE") else 20
# Loads and unloads libraries, in the order given.
RELOAD = """
import _ctypes, ctypes, sys
for mode in (ctypes.RTLD_GLOBAL, 0, 0):
    for path in sys.argv[1:]:
        library = ctypes.CDLL(path, mode=mode)
        if hasattr(library, "espalier_join"):
            world = ctypes.c_void_p()
            assert library.espalier_join(None, ctypes.byref(world)) == 0
            library.espalier_leave(world)
        _ctypes.dlclose(library._handle)
print("loaded again")
"""


class Processes(unittest.TestCase):
    maxDiff = None

    def run_command(self, *command, expected, **more):
        result = subprocess.run(command, text=True, capture_output=True, env=launchers.environment(**more))
        self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        lines = [re.sub(r"^\[\d+\] ", "", line) for line in result.stdout.splitlines()]
        self.assertEqual(sorted(lines), sorted(expected))

    def test_forks(self):
        """Children that exit, run programs or just end do not disturb the job of their parent."""
        expected = [f"rank {rank}: children did no harm" for rank in range(3)]
        for provider in ("", "mem", "tcp"):
            with self.subTest(provider=provider):
                self.run_command(ESPALIER, "launch", "-n", "3", FORKING, expected=expected,
                                 **({"FI_PROVIDER": provider} if provider else {}))

    def test_loads_again(self):
        self.run_command(AGAIN, LIBRARY, "load", "20", expected=["joined 20 times"])
        self.run_command(ESPALIER, "launch", "-n", "2", AGAIN, LIBRARY, "load", "20", expected=["joined 20 times"] * 2)
        self.run_command(sys.executable, "-c", RELOAD, LIBRARY, expected=["loaded again"])

    def test_bridges_load_again(self):
        self.assertTrue(BRIDGES, "no bridge was built")
        for bridge in BRIDGES:
            with self.subTest(bridge=bridge):
                self.run_command(sys.executable, "-c", RELOAD, bridge, expected=["loaded again"])

    def test_joins_again_under_launch(self):
        self.run_command(ESPALIER, "launch", "-n", "3", AGAIN, LIBRARY, "keep", str(TIMES),
                         expected=[f"joined {TIMES} times"] * 3)

    def test_joins_again_by_hand(self):
        """The same port for each job, as torchrun and scripts do it."""
        self.assertEqual(launchers.run_by_hand([AGAIN, LIBRARY, "keep", str(TIMES)], 3), [(0, f"joined {TIMES} times\n", "")] * 3)

    def test_joins_again_by_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            processes = [subprocess.Popen([AGAIN, LIBRARY, "keep", str(TIMES), folder, "job", str(rank), "3"], text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=launchers.environment()) for rank in range(3)]
            for process in processes:
                self.assertEqual((*process.communicate(), process.returncode), (f"joined {TIMES} times\n", "", 0))
            self.assertEqual(os.listdir(folder), [])

    def test_not_dumpable(self):
        """No other process may map the memory of these, except root's with the capability to trace."""
        program = ("import ctypes, os, sys\n"
                   "assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n"
                   "library = ctypes.CDLL(sys.argv[1])\n"
                   "library.espalier_error.restype = ctypes.c_char_p\n"
                   "world = ctypes.c_void_p()\n"
                   "status = library.espalier_join(None, ctypes.byref(world))\n"
                   "print(library.espalier_error().decode() if status else 'joined')\n"
                   "if not status:\n"
                   "    assert library.espalier_barrier(world) == 0\n"
                   "    library.espalier_leave(world)\n")
        command = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"] if os.geteuid() == 0 else []
        result = subprocess.run([*command, ESPALIER, "launch", "-n", "2", sys.executable, "-c", program, LIBRARY], text=True,
                                capture_output=True, env=launchers.environment(ESPALIER_VERBOSE="1"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("joined"), 2, result.stdout)
        self.assertEqual(result.stderr.count("messages within this host go over tcp: this process is not dumpable"), 2, result.stderr)

    def test_file_size_limit(self):
        def limited(blocks, *command):
            return ["bash", "-c", f"ulimit -f {blocks}; \"$@\"", "bash", *command]

        result = subprocess.run(limited("1000", ESPALIER, "launch", "-n", "2", AGAIN, LIBRARY, "keep", "5"), text=True,
                                capture_output=True, env=launchers.environment())
        self.assertEqual(result.stdout.count("joined 5 times"), 2, result.stderr)
        # The job secret does not fit either.
        result = subprocess.run(limited("0", ESPALIER, "launch", "-n", "2", AGAIN, LIBRARY, "keep", "5"), text=True,
                                capture_output=True, env=launchers.environment())
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(result.stderr.strip(), "espalier: this host: no memory for the secret: File too large; "
                         "a file-size limit of 0 bytes (ulimit -f)")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.esp")
            result = subprocess.run(limited("0", ESPALIER, "compile", "--topology", "complete:4", "--collective", "broadcast",
                                            "--algorithm", "two-tree", "-o", path), text=True, capture_output=True)
            self.assertEqual((result.returncode, result.stderr),
                             (2, f"espalier: cannot write '{path}': File too large; a file-size limit of 0 bytes (ulimit -f)\n"))
            self.assertEqual(os.listdir(folder), [])

    def test_joins_again_under_process_managers(self):
        for mpirun in ("mpirun.openmpi", "mpiexec.mpich"):
            self.assertIsNotNone(shutil.which(mpirun), mpirun)
            with self.subTest(mpirun=mpirun):
                more = ["--oversubscribe"] if mpirun == "mpirun.openmpi" else []
                self.run_command(mpirun, *more, "-n", "3", AGAIN, LIBRARY, "keep", str(TIMES),
                                 expected=[f"joined {TIMES} times"] * 3, **launchers.AS_ROOT)

    def test_joins_again_under_slurm(self):
        with contextlib.ExitStack() as ends:
            slurm, reason = launchers.start_slurm(ends)
            if not slurm:
                self.skipTest(f"srun: {reason}")
            for kind in slurm.kinds():
                with self.subTest(kind=kind):
                    self.run_command("srun", "-Q", "-O", f"--mpi={kind}", "-n", "3", AGAIN, LIBRARY, "keep", str(TIMES),
                                     expected=[f"joined {TIMES} times"] * 3, SLURM_CONF=slurm.conf)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
