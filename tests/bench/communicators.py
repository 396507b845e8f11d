#!/usr/bin/python3
"""What 1, 40 and 1,000 communicators cost each process: the second part of docs/results/footprint.md.

communicators.py --write BUILD PAGE [MAX]  measures all rows, which takes some minutes, and replaces the part; with MAX those of at most so
                                           many communicators
communicators.py --check BUILD PAGE        measures some rows anew and compares their memory, threads and descriptors with the page

Times are not compared.
"""
import ctypes
import json
import os
import pathlib
import re
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import sample  # noqa: E402

MAX_FILES = 1024
RANKS, PROVIDERS, COUNTS = (2, 8), ("mem", "tcp"), (1, 40, 1000)
ROWS = [(ranks, provider, count) for ranks in RANKS for provider in PROVIDERS for count in COUNTS]
# One in turn is compared. Of a single communicator, memory is what the process needs once.
SAMPLE = [row for row in ROWS if row[2] == 40 or row[0] == 2 and row[2] == 1]
KIB = 1 << 10
RATIO, SLACK_KIB = 1.1, 8  # between two measurements of the memory of each of several communicators
ONCE_KIB = 2048             # of one communicator
ATTEMPTS = 3
SLACK_FILES = 3             # a connection that another rank has begun, or a file that is open for a moment
HEADING = "# 1, 40 and 1,000 communicators\n"
PART = HEADING + """
Each of {ranks} processes on one machine makes that many communicators of all of them (`split()`), keeps all, and then runs an allreduce of 8 bytes in
each. The figures are those of the process that needs most. Memory is resident, beyond what the process had after its first allreduce, per communicator:
anonymous and shared pages, without those of files, which are the programs and libraries. Of a single one it is also memory that later ones do not
need again. Threads and descriptors are those of all
together. The times are per communicator: to make it, for its first allreduce, and to free it, with a barrier at the end. {cores} cores, on which
{load} processes wanted to run when the measurement began; `ulimit -n {files}`; {libraries}.

| ranks | provider | communicators | KiB, made | KiB, used | threads | descriptors, made | used | make us | first allreduce us | free us |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

{limits}A test measures some rows again and compares memory, threads and descriptors. `tests/bench/communicators.py --write build docs/results/footprint.md`
printed this part.
"""
COLUMNS = 11


def library_versions():
    version = ctypes.CDLL("libfabric.so.1").fi_version()
    return f"libfabric {version >> 16}.{version & 0xffff}, glibc {os.confstr('CS_GNU_LIBC_VERSION').split()[1]}"


def limit_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES))


def measure(build, row):
    """What each rank printed, by rank."""
    ranks, provider, count = row
    words = [build / "tools/espalier", "launch", "-n", ranks, build / "tests/bench/communicators", provider, count]
    # `meson test` sets MALLOC_PERTURB_, with which malloc() writes all that it gives: then it is resident.
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"} | {"IPATH_NO_BACKTRACE": "1"}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, preexec_fn=limit_files, env=environment)
    found = [json.loads(line) for line in re.findall(r"^\[\d+\] (\{.*\})$", done.stdout, re.M)]
    if len(found) != ranks:
        sys.exit(f"communicators.py: exit status {done.returncode}: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return found


def cells(row, ranks):
    """The cells of a row of the page, or the error of the first rank that has one."""
    for error in (rank["error"] for rank in ranks if rank["error"]):
        return [*map(str, row), error]

    def most(of, what=None):
        return max(rank[of][what] if what else rank[of] for rank in ranks)

    count = row[2]
    return [*map(str, row), *(f"{most(when, 'bytes') / count / KIB:.0f}" for when in ("made", "used")), str(most("used", "threads")),
            *(str(most(when, "files")) for when in ("made", "used")),
            *(f"{most(when):.0f}" for when in ("make_us", "first_us", "free_us"))]


def line(of):
    if len(of) == COLUMNS:
        return "| " + " | ".join(of) + " |"
    return f"| {of[0]} | {of[1]} | {of[2]} |" + " – |" * (COLUMNS - 3)


def rows_of(text):
    """The rows of the page, by their first three cells."""
    found = {}
    for each in re.findall(r"^\| [28] \|.*$", text[text.index(HEADING):], re.M):
        of = [cell.strip() for cell in each.strip("|").split("|")]
        found[int(of[0]), of[1], int(of[2])] = of
    return found


def write(build, page, most):
    text = page.read_text(encoding="utf-8")
    before = text.split(HEADING)[0].rstrip("\n") + "\n"
    kept = rows_of(text) if HEADING in text else {}
    lines, errors = [], []
    load = os.getloadavg()[0]
    for row in ROWS:
        if row[2] > most and row in kept:
            lines.append(line(kept[row]))
            continue
        of = cells(row, measure(build, row))
        lines.append(line(of))
        print(lines[-1], flush=True)
        if len(of) != COLUMNS:
            errors.append(f"{row[2]} communicators of {row[0]} ranks over {row[1]} end with the error `{of[-1]}`.")
    limits = "".join(f"{each}\n" for each in errors) + ("\n" if errors else "")
    part = PART.format(ranks="2 and of 8", cores=os.cpu_count(), load=f"{load:.0f}", files=MAX_FILES,
                       libraries=library_versions(), rows="\n".join(lines), limits=limits)
    page.write_text(before + "\n" + part, encoding="utf-8")


def differs(row, old, now, has_same_libraries):
    """What differs between two rows of the page; empty: nothing that counts. Another libfabric or malloc() may need other memory, once."""
    if len(now) != COLUMNS:
        return now[-1]
    was, found = ([int(cell) for cell in of[5:8]] for of in (old, now))
    if was[0] != found[0] or any(abs(a - b) > SLACK_FILES for a, b in zip(was[1:], found[1:])):
        return f"threads and descriptors {was} on the page, {found} here"
    count = row[2]
    slack = SLACK_KIB if has_same_libraries else SLACK_KIB + ONCE_KIB / count
    for name, was, found in zip(("made", "used"), map(int, old[3:5]), map(int, now[3:5])):
        is_near = abs(was - found) <= ONCE_KIB if count == 1 else was / RATIO - slack <= found <= was * RATIO + slack
        if not is_near:
            return f"{was} KiB {name} on the page, {found} KiB here"
    return ""


def check(build, page):
    text = page.read_text(encoding="utf-8")
    old = rows_of(text)
    has_same_libraries = f"; {library_versions()}.\n" in text
    if list(old) != ROWS:
        sys.exit(f"{page}: expected the rows {ROWS}")
    for number, row in enumerate(SAMPLE):
        if not sample.sampled(number, len(SAMPLE) // 2):
            continue
        # What is resident also depends on when the system gave a page; a fault is there each time.
        for _ in range(ATTEMPTS):
            now = cells(row, measure(build, row))
            print(line(now))
            difference = differs(row, old[row], now, has_same_libraries)
            if not difference:
                break
        else:
            sys.exit(f"{page} is old: {row}: {difference}; tests/bench/communicators.py --write build {page} writes it anew")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"] and len(sys.argv) in (4, 5):
        write(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) == 5 else max(COUNTS))
    elif sys.argv[1:2] == ["--check"] and len(sys.argv) == 4:
        check(*(pathlib.Path(word).resolve() for word in sys.argv[2:]))
    else:
        sys.exit(__doc__)
