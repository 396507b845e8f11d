"""Where the processors' time goes while Espalier repeats a collective: samples of perf, of all processors, by whose code ran."""
import collections
import pathlib
import re
import subprocess
import tempfile

# By kind of place: collective, bytes of the whole message, repetitions.
PROFILED = {"hosts": (("broadcast", 8, 4000), ("allgather", 8, 4000), ("allgather", 64 << 10, 1000)),
            "machine": (("broadcast", 8, 1_000_000), ("allgather", 1 << 20, 10000))}
PARTS = ("Espalier", "libfabric", "C library", "kernel", "idle", "other")
SAMPLES_PER_S = 1999
IDLE = re.compile(r"idle|halt|mwait")


def part_of(program, library, function):
    """One of PARTS."""
    if program == "swapper" and IDLE.search(function):
        return "idle"
    if library.startswith(("[kernel", "[guest.kernel", "[unknown]")) or library.endswith(".ko"):
        return "kernel"
    name = pathlib.PurePath(library).name
    for prefix, part in (("espalier-bench", "Espalier"), ("libfabric", "libfabric"), ("libc.", "C library"), ("[vdso]", "C library")):
        if name.startswith(prefix):
            return part
    return "other"


def shares(report):
    """The percentage of each part in what `perf report --sort comm,dso,sym` printed."""
    found = collections.Counter()
    for line in report.splitlines():
        match = re.match(r"\s*([0-9.]+)%\s*;\s*(.*?)\s*;\s*(.*?)\s*;\s*(?:\[.\] )?(.*?)\s*$", line)
        if match:
            found[part_of(*match.groups()[1:])] += float(match[1])
    return {part: round(found[part], 1) for part in PARTS}


def profile(command):
    """Runs the command; the shares of its time. CalledProcessError: it failed, or perf."""
    with tempfile.NamedTemporaryFile(prefix="espalier-perf-") as file:
        subprocess.run(["perf", "record", "-a", "-e", "cpu-clock", "-F", str(SAMPLES_PER_S), "-o", file.name, "--", *command],
                       check=True, capture_output=True, text=True)
        report = subprocess.run(["perf", "report", "-i", file.name, "--stdio", "--sort", "comm,dso,sym", "-t", ";"],
                                check=True, capture_output=True, text=True)
    return shares(report.stdout)
