#!/usr/bin/python3
"""Runs one libFuzzer target until SECONDS have passed since its last new edge of the program, or --at-most seconds in all.

campaign.py TARGET SECONDS --build BUILD --largest BYTES [--at-most SECONDS]

Starts from BUILD/kept-TARGET, adds to BUILD/corpus-TARGET, and keeps failing inputs in BUILD/found/TARGET. Writes the final
statistics to BUILD/results/TARGET.json, for page.py. Exit status: 0 no input failed; 1 one did, and ended the campaign.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

# Stated in docs/verifier.md: one allocation, the whole process, one input's time.
LIMITS = ["-malloc_limit_mb=64", "-rss_limit_mb=1024", "-timeout=20"]
# libFuzzer's entropic schedule updates the frequency of each feature for each input. Of the target `schedule`, with 58,000 features, it
# took nine tenths of the time: 3000 executions took 38 s of processor time, without it 3.8 s.
SCHEDULE = ["-entropic=0"]
PROCESS_S = 900  # then a new process goes on: the memory of a long one grows up to the limit
STATUS = re.compile(r"#\d+\s.* cov: (\d+) ft: (\d+) ")
# A library of libfabric would handle signals before libFuzzer and the sanitizers do.
ENVIRONMENT = {**os.environ, "IPATH_NO_BACKTRACE": "1"}
INTERRUPTED = 72  # libFuzzer's exit status after SIGINT
GRACE_S = 120  # from SIGINT until SIGKILL


class Campaign:
    def __init__(self, options):
        self.options, self.build = options, pathlib.Path(options.build)
        self.edges = self.features = self.executions = 0
        self.begin = time.monotonic()
        self.last_edge = self.begin
        self.is_started = False  # a process has read the corpus

    def take(self, line):
        """Reads a line of libFuzzer's output."""
        found = STATUS.match(line)
        if not found:
            return
        edges, self.features = int(found[1]), max(self.features, int(found[2]))
        if "INITED" in line:
            self.is_started = True
        if edges > self.edges:
            self.edges, self.last_edge = edges, time.monotonic()

    def rest(self):
        """Returns the seconds until the campaign ends, if it finds nothing."""
        now = time.monotonic()
        rests = [self.last_edge + self.options.seconds - now]
        if self.options.at_most:
            rests.append(self.begin + self.options.at_most - now)
        return min(rests)

    def process(self):
        """Runs one process; returns its exit status, 0 if it was ended from here."""
        name, build = self.options.target, self.build
        words = [build / "tests/fuzz" / f"fuzz-{name}", *LIMITS, *SCHEDULE, f"-max_len={self.options.largest}",
                 f"-max_total_time={PROCESS_S}", "-print_final_stats=1", f"-artifact_prefix={build}/found/{name}/"]
        dictionary = build / f"{name}.dict"
        if dictionary.is_file() and dictionary.stat().st_size:
            words.append(f"-dict={dictionary}")
        words += [build / f"corpus-{name}", build / f"kept-{name}"]
        with open(build / f"{name}.log", "w") as log:
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                                       bufsize=1, env=ENVIRONMENT)
            is_over = threading.Event()

            def watch():
                while not is_over.wait(min(max(self.rest(), 0.1), 10)):
                    if self.is_started and self.rest() <= 0:
                        process.send_signal(signal.SIGINT)
                        if not is_over.wait(GRACE_S):
                            process.kill()

            watcher = threading.Thread(target=watch)
            watcher.start()
            for line in process.stderr:
                log.write(line)
                self.take(line)
                done = re.match(r"stat::number_of_executed_units: *(\d+)", line)
                self.executions += int(done[1]) if done else 0
            status = process.wait()
            is_over.set()
            watcher.join()
        return 0 if status == INTERRUPTED else status

    def run(self):
        status = 0
        while status == 0 and self.rest() > 0:
            status = self.process()
        now = time.monotonic()
        results = {"target": self.options.target, "executions": self.executions, "seconds": round(now - self.begin),
                   "edges": self.edges, "features": self.features, "last_edge_s": round(self.last_edge - self.begin),
                   "quiet_s": round(now - self.last_edge)}
        (self.build / "results").mkdir(exist_ok=True)
        (self.build / "results" / f"{self.options.target}.json").write_text(json.dumps(results) + "\n")
        print(f"{self.options.target}: {self.executions} executions in {results['seconds']} s, {self.edges} edges, "
              f"the last one after {results['last_edge_s']} s", file=sys.stderr)
        return 1 if status else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("seconds", type=int)
    parser.add_argument("--build", required=True)
    parser.add_argument("--largest", type=int, required=True)
    parser.add_argument("--at-most", type=int, default=0)
    return Campaign(parser.parse_args()).run()


if __name__ == "__main__":
    sys.exit(main())
