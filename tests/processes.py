"""The processes of this machine, as /proc shows them."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

HANG_S = 120  # what has not ended by then never will


def stat(pid):
    """(name, state, parent) of a process; an ended one is in state X."""
    try:
        name, _, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", "X", 0
    state, parent = rest.split()[:2]
    return name, state, int(parent)


def alive(pid):
    """Whether it runs; a zombie, whose parent has not waited for it, does not."""
    return stat(pid)[1] not in "ZX"


def read(pid, name):
    """The text of /proc/PID/NAME; nothing if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def living(holds):
    """{number: name} of the living processes for whose number holds(number) is true."""
    numbers = [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")]
    return {pid: stat(pid)[0] for pid in numbers if holds(pid) and alive(pid)}


def descendants(variable):
    """{number: name} of the living processes that inherited this variable, NAME=VALUE."""
    return living(lambda pid: variable in read(pid, "environ").split("\0"))


def nodes(parent):
    """The numbers of its children that are nodes. It has a keeper too."""
    return list(living(lambda pid: stat(pid)[::2] == ("espalier-node", parent)))


def has_memory(pid):
    """Whether it has mapped the memory of a collective, so that it is about to run."""
    return "memfd:espalier" in read(pid, "maps")


def wait_for(condition, seconds=HANG_S):
    """Returns whether the condition came to hold in time; the machine may be busy with other things."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def output_of(words, **more):
    """Runs a command, without which the test cannot go on. Returns its stdout."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def execute(words, limit_s):
    """Runs a command in a session of its own, whose processes all end with it. Returns (status, stdout, stderr); status None: it was not
    done after limit_s."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        output, error = process.communicate(timeout=limit_s)
        return process.returncode, output, error
    except subprocess.TimeoutExpired:
        return None, "", f"not done after {limit_s} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
