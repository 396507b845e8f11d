#!/usr/bin/env python3
"""Links that are down for a moment and come back, while a job runs: no rank is declared dead, and no result is wrong.

outage_test.py ESPALIER STEADY
Hosts are network namespaces, which need root; otherwise the test is skipped with its reason.
"""
import os
import re
import subprocess
import sys
import time
import unittest

from launchers import OnHosts
from processes import HANG_S

ESPALIER, STEADY = (os.path.abspath(path) for path in sys.argv[1:3])
OUTAGES_S = (0.1, 0.3)
TIMES = 3


class Outage(OnHosts):
    def survives(self, namespace, link):
        """Takes a link down and up again, several times, while a job of 4 processes uses it."""
        def switch(state):
            subprocess.run(["ip", "-n", namespace, "link", "set", link, state], check=True)
        job = self.start(ESPALIER, 4, STEADY)
        self.assertEqual(job.stdout.readline(), "[0] ready\n")
        for seconds in OUTAGES_S * TIMES:
            switch("down")
            time.sleep(seconds)
            switch("up")
            time.sleep(1.5)  # TCP sends again, and the job goes on
        output, error = job.communicate(timeout=HANG_S)
        self.assertEqual(job.returncode, 0, error)
        rounds = re.fullmatch(r"\[0\] (\d+) rounds right\n", output)
        self.assertTrue(rounds, output + error)
        print(f"{link} of {namespace} was down {len(OUTAGES_S) * TIMES} times, for {OUTAGES_S} s in turn; {output.strip()}")

    def test_the_port_of_the_switch(self):
        self.survives("esplab-switch", "port1")

    def test_the_interface_of_the_host(self):
        self.survives("esplab1", "eth0")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
