"""The hosts of lab.sh and the command on them, for the programs that measure there. They run in the repository's root."""
import contextlib
import json
import pathlib
import subprocess
import sys

LAB = "tests/bench/lab.sh"
LAUNCH = ("--provider", "tcp", "--launch-prefix", "ip netns exec esplab%r", "--address", "10.79.0.%n")  # options of the command


def espalier(*words):
    """The command's output; a failure ends the program."""
    done = subprocess.run(["build/tools/espalier", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: exit status {done.returncode}: espalier {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def measured_run(what, *words):
    """One `espalier run`, from its JSON; a wrong result ends the program."""
    run = json.loads(espalier("run", *words, "--format", "json"))["runs"][0]
    if not run["right"]:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {what} gave a wrong result")
    return run


@contextlib.contextmanager
def hosts(count, mbit):
    subprocess.run([LAB, "up", str(count), str(mbit)], check=True)
    try:
        yield
    finally:
        subprocess.run([LAB, "down"], check=True)
