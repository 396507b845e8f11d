#!/usr/bin/env python3
"""Files that are no files: a device, a pipe that no process writes to, a folder, a socket, none, one beyond its kind's limit.

openings_test.py SOURCE ESPALIER ESPALIER_BENCH
Every way to give a command an input file: one line that names the path, status 2, nothing left behind. The kinds and their limits
are those of base/read_file.cc, and docs/formats.md has the same table.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from launchers import environment

# Opened in this way only in these files: all check that it is a regular file, of this user, or a device; or it is in /proc.
OPENS = re.compile(r"std::ifstream|\bfopen\(|(?<![\w.>])(?:::)?open\((?!\))|\bopenat\(")
LIMIT = re.compile(r'^    \{"(an? [\w ]+)", std::size_t\{(\d+)\} << (10|20)\},$', re.MULTILINE)
LARGE = (512 << 20) + 1  # above all limits; no byte is written
READERS = {
    "base/read_file.cc": "the function itself",
    "base/network/interfaces.cc": "/proc",
    "base/network/links.cc": "/proc",
    "base/process/inherited.cc": "/dev/null",
    "bootstrap/join.cc": "the file of rank 0, regular and of mode 0600",
    "bootstrap/newcomers.cc": "the job file, regular and of mode 0600",
    "bootstrap/secret.cc": "the job secret, regular and of mode 0600",
    "communicator/cache/cache_file.cc": "the cache, regular and of mode 0600; the program itself",
    "communicator/measure_network.cc": "/proc",
    "communicator/record/folder.cc": "/proc",
    "communicator/record/view.cc": "a record, regular, of the right size and with O_NONBLOCK",
    "communicator/record/writer.cc": "a record, new and of mode 0600",
    "firmware/boot/file_bits.cc": "regular, opened to write",
    "firmware/boot/file_flash.cc": "regular, opened to write",
    "firmware/gateway/child.cc": "/dev/null, and an output",
    "hal/mem/host/segment.cc": "/proc",
    "hal/fabric/ofi/connection_gate.cc": "/dev/null",
    "hal/fabric/mixed/mixed_endpoint.cc": "/proc",
    "hal/serial/host/link_key.cc": "regular and of mode 0600",
    "hal/serial/host/streams.cc": "a device of a serial line, O_NONBLOCK",
    "tools/common/host.cc": "/proc",
    "tools/common/output.cc": "outputs",
    "tools/doctor/host.cc": "/proc and /sys",
    "tools/image/image.cc": "outputs",
    "tools/cluster/keeper.cc": "/proc",
    "tools/launch/launcher_link.cc": "/dev/null",
    "tools/status/ask_hosts.cc": "/dev/null",
}


def commands(folder):
    """Name of the kind, and a command that reads the file whose path replaces FILE."""
    ring = ["--topology", "ring:4", "--collective", "allreduce", "--bytes", "64"]
    out = os.path.join(folder, "out")
    schedule = os.path.join(folder, "s.esp")
    for name in ("verify", "show", "simulate", "run"):
        yield "a schedule file", [name, "FILE"]
    yield "a schedule file", ["draw", "FILE", "-o", out]
    yield "a schedule file", ["export", "msccl", "FILE", "-o", out]
    yield "a topology file", ["topology", "file:FILE"]
    yield "an embedding file", ["verify", "--topology", "mesh:2x2", "--collective", "broadcast", "--embedding", "FILE"]
    yield "a model file", ["explain", *ring, "--model", "FILE"]
    yield "an MSCCL file", ["import", "msccl", "FILE", "-o", out]
    yield "a trace", ["draw", schedule, "-o", out, "--trace", "FILE"]
    yield "an input", ["run", "--topology", "ring:2", "--collective", "broadcast", "--input", "FILE"]
    yield "a list of counts", ["run", "--topology", "ring:2", "--collective", "allgather", "--counts", "@FILE"]
    yield "a host list", ["launch", "-n", "2", "--hostfile", "FILE", "true"]
    yield "an image", ["image", "show", "FILE"]
    yield "a key", ["image", "check", "FILE", "--public-key", "FILE"]
    yield "a board file", ["image", "build", schedule, "--board", "FILE", "--release", "1", "-o", out]
    yield "a schedule file", ["espalier-bench", "--schedule", "FILE"]  # JoinOptions::schedules


def limits(root):
    with open(os.path.join(root, "base", "read_file.cc"), encoding="utf-8") as file:
        rows = {name: (int(count), "MiB" if shift == "20" else "KiB") for name, count, shift in LIMIT.findall(file.read())}
    if len(rows) < 10:
        sys.exit(f"{len(rows)} limits in base/read_file.cc; expected its table")
    with open(os.path.join(root, "docs", "formats.md"), encoding="utf-8") as file:
        page = file.read()
    for name, (count, unit) in rows.items():
        if f"| {name} | {count} {unit} |" not in page:
            sys.exit(f"docs/formats.md: expected '| {name} | {count} {unit} |'")
    return rows


def check_readers(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each not in ("tests", "testing", "examples", "boards", ".git")
                      and not (folder == root and each.startswith("build"))]
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith(".cc") or name.endswith("_test.cc"):
                continue
            with open(os.path.join(root, path), encoding="utf-8") as file:
                lines = [line for line in file if OPENS.search(line) and not re.search(r"//.*open\(|Result<|^[\w:]+ \w+::open", line)]
            calls = [line for line in lines if "O_" in line or "fstream" in line or "fopen" in line]
            if calls and path not in READERS:
                sys.exit(f"{path}: {calls[0].strip()}\nexpected read_file() of base/read_file.h")


def make_paths(folder):
    """By what is wrong: a path."""
    end, pipe, large = (os.path.join(folder, name) for name in ("socket", "pipe", "large"))
    server = socket.socket(socket.AF_UNIX)
    server.bind(end)
    os.mkfifo(pipe)
    with open(large, "wb") as file:
        os.truncate(file.fileno(), LARGE)
    return {"/dev/zero": "it is a device; expected a file or a pipe", pipe: "it is a pipe that no process writes to", folder: "Is a directory",
            end: "No such device or address", os.path.join(folder, "none"): "No such file or directory",
            "/proc/version": "it is a file of /proc; expected a file that is stored, or a pipe",
            large: "it has more than {} {}, the limit of {}"}, server


def call(programs, folder, command, path):
    words = [word.replace("FILE", path) for word in command]
    words = [programs[words[0]], *words[1:]] if words[0] in programs else [programs["espalier"], *words]
    return subprocess.run(words, env=environment(), capture_output=True, text=True, cwd=folder)


def check(programs, folder, rows, kind, command, path, reason):
    done = call(programs, folder, command, path)
    line = f"cannot read '{path}': {reason.format(*rows[kind], kind)}"
    if kind == "a board file" and path == folder:  # its board.textproto is read
        line = f"cannot read '{folder}/board.textproto': No such file or directory"
    if done.returncode != 2 or done.stderr.count("\n") != 1 or line not in done.stderr:
        return f"{' '.join(done.args)}: status {done.returncode}, expected 2 and one line with '{line}':\n{done.stderr}"
    return ""


def check_empty(programs, folder, kind, command):
    """No file of zero bytes is taken as nothing, except an input, which is a message of zero bytes."""
    done = call(programs, folder, command, os.path.join(folder, "empty.textproto"))
    expected = (0, 0) if kind == "an input" else (2, 1)
    if (done.returncode, done.stderr.count("\n")) == expected and not os.path.exists(os.path.join(folder, "out")):
        return ""
    return f"{' '.join(done.args)}: status {done.returncode}, expected {expected[0]} and {expected[1]} line(s):\n{done.stderr}"


def outputs(schedule):
    """Commands that write a file, whose path replaces FILE."""
    ring = ["--topology", "ring:4", "--collective", "broadcast", "--bytes", "64"]
    yield ["compile", *ring, "-o", "FILE"]
    yield ["draw", schedule, "-o", "FILE"]
    yield ["draw", schedule, "--svg", "FILE"]
    yield ["topology", "ring:4", "--svg", "FILE"]
    yield ["simulate", schedule, "--bytes", "64", "--trace", "FILE"]
    yield ["run", *ring, "--trace", "FILE"]
    yield ["export", "msccl", schedule, "-o", "FILE"]
    yield ["export", "mscclpp", schedule, "-o", "FILE"]
    yield ["export", "goal", schedule, "--bytes", "64", "-o", "FILE"]
    yield ["export", "ompi", "--topology", "complete:4", "-o", "FILE"]


def check_pipe(programs, folder, command):
    """A pipe that no process reads is refused; one with a reader gets all."""
    done = call(programs, folder, command, os.path.join(folder, "pipe"))
    line = f"espalier: cannot write '{folder}/pipe': it is a pipe that no process reads\n"
    if (done.returncode, done.stderr) == (2, line):
        return ""
    return f"{' '.join(done.args)}: status {done.returncode}, expected 2 and '{line}':\n{done.stderr}"


def check_read_pipe(espalier, folder, schedule):
    path = os.path.join(folder, "read")
    os.mkfifo(path)
    with subprocess.Popen([espalier, "draw", schedule, "--svg", path], env=environment(), stdout=subprocess.DEVNULL) as process:
        with open(path, encoding="utf-8") as pipe:
            text = pipe.read()
    os.remove(path)
    return "" if process.returncode == 0 and text.endswith("</svg>\n") else f"a pipe with a reader got {len(text)} characters"


def check_prefix(programs, folder, schedule):
    """The files of a Chakra trace appear beside nothing else."""
    for path in (folder, folder + "/", "/dev/null", os.path.join(folder, "pipe")):
        done = call(programs, folder, ["export", "chakra", schedule, "--bytes", "64", "-o", "FILE"], path)
        if done.returncode != 2 or done.stderr.count("\n") != 1 or f"-o '{path}' is a " not in done.stderr:
            return f"export chakra -o {path}: status {done.returncode}: {done.stderr}"
    return ""


def main():
    root, espalier, bench = (os.path.abspath(each) for each in sys.argv[1:4])
    check_readers(root)
    rows = limits(root)
    with tempfile.TemporaryDirectory() as folder:
        paths, server = make_paths(folder)
        subprocess.run([espalier, "compile", "--topology", "ring:4", "--collective", "broadcast", "--bytes", "64",
                        "-o", os.path.join(folder, "s.esp")],
                       check=True, capture_output=True)
        open(os.path.join(folder, "empty.textproto"), "wb").close()
        before = sorted(os.listdir(folder))
        cases = [(kind, command, path, reason) for kind, command in commands(folder) for path, reason in paths.items()]
        programs = {"espalier": espalier, "espalier-bench": bench}
        # Those with a pipe wait 10 s each for a writer.
        with ThreadPoolExecutor(32) as pool:
            wrong = [each for each in pool.map(lambda case: check(programs, folder, rows, *case), cases) if each]
            empty = [(kind, command) for kind, command in commands(folder) if kind != "a board file"]
            wrong += [each for each in pool.map(lambda case: check_empty(programs, folder, *case), empty) if each]
            written = list(outputs(os.path.join(folder, "s.esp")))
            wrong += [each for each in pool.map(lambda command: check_pipe(programs, folder, command), written) if each]
        schedule = os.path.join(folder, "s.esp")
        wrong += [each for each in (check_read_pipe(espalier, folder, schedule), check_prefix(programs, folder, schedule)) if each]
        server.close()
        if wrong:
            sys.exit("\n".join(wrong))
        if sorted(os.listdir(folder)) != before:
            sys.exit(f"left behind: {sorted(os.listdir(folder))}, before {before}")
    print(f"{len(cases)} openings refused, {len(empty)} empty files, {len(written)} pipes to write")


main()
