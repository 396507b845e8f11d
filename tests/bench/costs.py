#!/usr/bin/python3
"""What a message costs: docs/results/costs.md.

costs.py --write BUILD PAGE    measures everything and writes the page; takes some minutes
costs.py --count BUILD PAGE    counts instructions, system calls and copied bytes anew, and keeps the page's times
costs.py --check BUILD PAGE    counts the same, and compares with the page

Instructions are counted by valgrind's callgrind and system calls by strace, both between two points of the program `costs`, whose ranks take
turns in one thread: start-up is not counted, and looks at the network hardly depend on time. Copied bytes are those of memcpy and memmove
with a length that the compiler does not know. The comparison is skipped (exit status 77) without valgrind or strace, on another processor
architecture and with another libfabric.
"""
import collections
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from pages import size_text

SKIPPED = 77
MODEL = pathlib.Path(__file__).resolve().parent / "costs_model.txtpb"
PROVIDERS = ("tcp", "mem")
KIB, MIB = 1 << 10, 1 << 20
# Collective, ranks, bytes, calls that are counted.
CASES = (("broadcast", 2, 8, 64), ("broadcast", 2, 16 * KIB, 64), ("broadcast", 2, MIB, 8), ("allreduce", 2, MIB, 8),
         ("broadcast", 4, 8, 64), ("broadcast", 4, MIB, 8))
SAMPLE = (("broadcast", 2, 8, 64), ("broadcast", 2, MIB, 8))
TOLERANCE = 1.10  # between two counts of instructions or calls
SLACK = 0.5       # calls, and bytes copied per byte: a look more or less
ATTEMPTS = 4      # at most, of which the least figure counts: a rank whose peer has no processor looks more often
UNSHAPED = (("broadcast", 2), ("broadcast", 4), ("allgather", 2), ("allgather", 4))
UNSHAPED_BYTES, UNSHAPED_TURNS = 64 * MIB, 11
RATES = (10, 25, 100)  # Gbit/s
ENVIRONMENT = {**os.environ, "LD_BIND_NOW": "1", "IPATH_NO_BACKTRACE": "1"}
OF_ENDPOINT, OF_MACHINE, OF_LIBFABRIC, OF_BENCH, OF_CODES = "endpoint", "machine", "libfabric", "bench", "codes"


def fail(line):
    sys.exit(f"costs.py: {line}")


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**ENVIRONMENT, **more})
    if done.returncode != 0:
        fail(f"exit status {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def model_of(provider):
    """Memory has a model of its own."""
    return [] if provider == "mem" else [str(MODEL)]


def name_of(bench, library, function):
    """Whose code a function is; None: a helper's, such as the C library's, which counts for its caller."""
    if "libfabric" in library:
        return OF_LIBFABRIC
    found = re.search(r"espalier::(\w+)", function) if library == str(bench) else None  # perhaps behind "non-virtual thunk to"
    if found is None:
        return None
    return {"costs": OF_BENCH, "ofi": OF_ENDPOINT, "mem": OF_ENDPOINT}.get(found[1], OF_MACHINE)


def read_profile(bench, text):
    """Instructions by owner. callgrind counts calls outside the toggled function, too: their numbers are of no use."""
    names = {"ob": {}, "fn": {}}

    def full(kind, word):
        number, _, name = word.partition(" ")
        if name:
            names[kind][number] = name
        return names[kind][number]

    spent = collections.Counter()
    library = function = called_library = called = None
    is_call = False
    for line in text.splitlines():
        key, equals, word = line.partition("=")
        if equals and key in ("ob", "cob"):
            library, called_library = (full("ob", word),) * 2 if key == "ob" else (library, full("ob", word))
        elif equals and key == "fn":
            function, called_library = full("fn", word), library
        elif equals and key == "cfn":
            called = full("fn", word)
        elif equals and key == "calls":
            is_call = True
        elif re.match(r"[+*\-0-9]", line):
            cost = int(line.split()[1])
            owner = name_of(bench, library, function)
            if is_call:
                into = name_of(bench, called_library, called)
                if owner is not None and into is None:
                    spent[owner] += cost
                is_call, called_library = False, library
            else:
                spent[OF_CODES if "siphash" in function else owner] += cost
    return spent


def instructions(bench, provider, case, folder):
    collective, ranks, size, count = case
    out = folder / "profile"
    run(["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=espalier::costs::measured*",
         f"--callgrind-out-file={out}", bench, "alone", provider, ranks, collective, size, count, *model_of(provider)])
    spent = read_profile(bench, out.read_text())
    return {owner: spent[owner] / (count + 1) for owner in (OF_ENDPOINT, OF_MACHINE, OF_LIBFABRIC, OF_CODES)}  # one call is to be first


def system_calls(bench, provider, case, folder):
    """Calls by (name, whose)."""
    collective, ranks, size, count = case
    traced = subprocess.Popen([bench, "traced", provider, str(ranks), collective, str(size), str(count), *model_of(provider)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    pid = traced.stdout.readline().strip()
    out = folder / "calls"
    tracer = subprocess.Popen(["strace", "-k", "-p", pid, "-o", out], stderr=subprocess.PIPE, text=True)
    attached = tracer.stderr.readline()
    traced.stdin.write("\n")
    traced.stdin.close()
    traced.stdout.read()
    if traced.wait() != 0 or tracer.wait() != 0 or "attached" not in attached:
        fail(f"strace could not trace {bench}: {attached}{tracer.stderr.read()}")
    found, name, inside = collections.Counter(), None, False
    for line in out.read_text(errors="replace").splitlines():
        called = re.match(r"(\w+)\(", line)
        if called:
            name = called[1]
            inside = not inside if name == "getppid" else inside
        elif line.startswith(" >") and name is not None:
            library = line[3:].split("(")[0]
            if "/libc.so" in library or "/ld-linux" in library:
                continue
            if inside and name != "getppid":
                found[name, "libfabric" if "libfabric" in library else "Espalier"] += 1 / count
            name = None
    return dict(found)


def copies(bench, counters, provider, case):
    """Bytes copied by our code and by libfabric, per byte that arrives."""
    collective, ranks, size, count = case
    found = json.loads(run([bench, "alone", provider, ranks, collective, size, count, *model_of(provider)], LD_PRELOAD=str(counters)))
    delivered = count * size * (ranks - 1) * (2 if collective == "allreduce" else 1)
    return found["copied"] / delivered, found["copied_libfabric"] / delivered


def case_name(case):
    return f"{size_text(case[2])} {case[0]}, p = {case[1]}"


def counted(build, cases=CASES):
    """The deterministic figures, by (provider, case)."""
    bench, counters = build / "tests/bench/costs", build / "tests/bench/libcosts-counters.so"
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for provider in PROVIDERS:
            for case in cases:
                row = instructions(bench, provider, case, folder)
                if row[OF_MACHINE] == 0 or row[OF_ENDPOINT] == 0:
                    fail(f"callgrind found none of {bench}'s functions")
                row["calls"] = system_calls(bench, provider, case, folder)
                row["copied"], row["copied_libfabric"] = copies(bench, counters, provider, case)
                rows[provider, case] = row
                print(provider, case_name(case), row, file=sys.stderr, flush=True)
    return rows


def noted(bench):
    """Instructions that each call and rank pays besides the collective: for the record that `espalier status` reads, and for a cancel."""
    def per_turn(what):
        count = 1000
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "profile")
            run(["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=espalier::costs::measured*", f"--callgrind-out-file={out}",
                 bench, "notes", what, count])
            return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)[1]) / count
    loop = per_turn("none")
    return {"a call's note in the record": per_turn("record") - loop, "a look for a cancel": per_turn("cancel") - loop}


def noted_table(found):
    return "\n".join(["| over | each rank | instructions |", "| --- | --- | ---: |", *(f"| `any` | {what} | {number:.0f} |" for what, number in found.items())])


COLUMNS = ("over", "case", "machine and communicator", "endpoint", "its codes", "libfabric", "system calls",
           "of Espalier", "copied by Espalier", "by libfabric")


def counted_table(rows):
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- | --- |" + " ---: |" * (len(COLUMNS) - 2)]
    for (provider, case), row in rows.items():
        own = sum(number for (_, who), number in row["calls"].items() if who == "Espalier")
        lines.append(f"| `{provider}` | {case_name(case)} | {row[OF_MACHINE]:.0f} | {row[OF_ENDPOINT]:.0f} | {row[OF_CODES]:.0f} | "
                     f"{row[OF_LIBFABRIC]:.0f} | {sum(row['calls'].values()):.2f} | {own:.2f} | {row['copied']:.2f} | {row['copied_libfabric']:.2f} |")
    return "\n".join(lines)


def calls_table(rows):
    names = sorted({call for row in rows.values() for call in row["calls"]})
    shown = [(provider, case) for (provider, case), row in rows.items() if row["calls"]]
    lines = ["| over | case | " + " | ".join(f"{name} ({who})" for name, who in names) + " |", "| --- | --- |" + " ---: |" * len(names)]
    lines += [f"| `{provider}` | {case_name(case)} | " +
              " | ".join(f"{rows[provider, case]['calls'].get(name, 0):.2f}" for name in names) + " |" for provider, case in shown]
    return "\n".join(lines)


def launched(build, ranks, words, **more):
    """The lines of rank 0, decoded."""
    text = run([build / "tools/espalier", "launch", "-n", ranks, build / "tests/bench/costs", *words], **more)
    return [json.loads(line.partition(" ")[2]) for line in text.splitlines() if line.startswith("[0] {")]


def waits_table(build):
    """How ranks in processes of their own wait."""
    lines = ["| over | case | us per call | processor us per call and rank | looks of tcp | with nothing | yields | blocks | sleeps | futexes |",
             "| --- | --- |" + " ---: |" * 8]
    counters = build / "tests/bench/libcosts-counters.so"
    for provider in PROVIDERS:
        for collective, ranks, size, count in CASES:
            times = 2000 if size < MIB else 200
            of = launched(build, ranks, ["job", provider, collective, size, times], LD_PRELOAD=str(counters))[0]
            per = {name: value / times for name, value in of.items() if isinstance(value, int)}
            looks = per["polls_libfabric"]
            lines.append(f"| `{provider}` | {case_name((collective, ranks, size, count))} | {of['used']['wall'] / times * 1e6:.1f} | "
                         f"{sum(of['used']['processor']) / times / ranks * 1e6:.1f} | " +
                         (f"{looks:.1f} | {per['empty_polls']:.1f}" if looks else "– | –") +
                         f" | {per['yields']:.1f} | {per['polls']:.2f} | {per['sleeps']:.2f} | {per['futexes']:.2f} |")
    return "\n".join(lines)


def unshaped(build):
    """By (collective, ranks): medians of wall and processor time of ours and of the sockets, and of the ratios of each turn."""
    rows = {}
    for collective, ranks in UNSHAPED:
        turns = launched(build, ranks, ["socket", collective, UNSHAPED_BYTES, UNSHAPED_TURNS])
        median = {(who, what): statistics.median(of(turn[who]) for turn in turns) for who in ("espalier", "socket")
                  for what, of in (("wall", lambda used: used["wall"]), ("processor", lambda used: sum(used["processor"])))}
        ratios = [statistics.median(turn["espalier"]["wall"] / turn["socket"]["wall"] for turn in turns),
                  statistics.median(sum(turn["espalier"]["processor"]) / sum(turn["socket"]["processor"]) for turn in turns)]
        delivered = UNSHAPED_BYTES * (ranks - 1)  # an allgather's parts are shares of it
        rows[collective, ranks] = median, ratios, delivered, turns
    return rows


def unshaped_table(rows):
    lines = ["| collective | p | wall, ms | socket's | ratio | processor, ns per byte | socket's | ratio |", "| --- |" + " ---: |" * 7]
    for (collective, ranks), (median, ratios, delivered, _) in rows.items():
        wall = [f"{median[who, 'wall'] * 1e3:.1f}" for who in ("espalier", "socket")]
        busy = [f"{median[who, 'processor'] / delivered * 1e9:.3f}" for who in ("espalier", "socket")]
        lines.append(f"| {collective} | {ranks} | {wall[0]} | {wall[1]} | {ratios[0]:.2f} | {busy[0]} | {busy[1]} | {ratios[1]:.2f} |")
    return "\n".join(lines)


def limits_table(rows):
    """From the broadcast of two ranks: one sends and one receives."""
    turns = rows["broadcast", 2][3]
    lines = ["| direction | bytes per second and core | " + " | ".join(f"cores for {rate} Gbit/s" for rate in RATES) + " |",
             "| --- |" + " ---: |" * (1 + len(RATES))]
    for rank, name in enumerate(("sending", "receiving")):
        for who in ("espalier", "socket"):
            speed = UNSHAPED_BYTES / statistics.median(turn[who]["processor"][rank] for turn in turns)
            lines.append(f"| {name}, {'Espalier' if who == 'espalier' else 'a socket'} | {speed / 1e9:.2f}e9 | " +
                         " | ".join(f"{rate * 1e9 / 8 / speed:.2f}" for rate in RATES) + " |")
    return "\n".join(lines)


def where():
    version = json.loads(run([sys.argv[2] + "/tools/espalier", "doctor", "--format", "json"]))["libfabric"]
    return version, platform.machine()


PAGE = """# What a message costs

Written by `tests/bench/costs.py --write build docs/results/costs.md`: libfabric {libfabric} on {machine}. A test counts the first three
tables again and compares them: {tolerance:.0f} % more or less, and half a call, are taken for equal.

## Counted

The ranks of a job are in one process and take turns in one thread. Each calls a planned collective of the communicator library (`Plan`),
with memory of its own, after {warm} that are not counted. The clocks stand still meanwhile. The
schedules over `tcp` are chosen for 10 us and 1 GB/s. All figures are per call of the collective, of all ranks together.

- Instructions in the program, by valgrind's callgrind. Those of the C library and of libsodium count for their caller; those of the kernel are
  not counted. A copy by `rep movsb` counts one instruction per byte, although it takes less time. The endpoint's contain its codes: every job
  has a secret, so each word of flow control and each payload of at most eager_bytes() is authenticated by SipHash, at both ends
  ([security.md](../security.md)). The machine combines the operands of an allreduce, so its instructions grow with the bytes.
- System calls by strace, and by whom. An empty look over `tcp` is one epoll_wait.
- Bytes that memcpy and memmove copy in the processes, per byte that arrives in a rank's result. Headers are bytes, too. Over `tcp` the kernel
  copies each byte twice more. libfabric receives the first 9,000 bytes of what has arrived into a buffer of its own and copies them from there.

{counted}

The system calls by name:

{calls}

What a call does for [espalier status](../watching.md) and for `cancel()`. Both are part of the instructions above:

{noted}

## Waiting

Each rank is a process of its own (`espalier launch`), on {cores} processors. The counts are per call and of all ranks together; times depend on the
machine. A broadcast of 8 B to one rank is one message. Looks of `tcp` are epoll_wait without a time limit; blocks are ppoll, yields are
sched_yield. Futexes are calls of `mem`, which sleeps and wakes by them.

{waits}

## Unshaped

{size} over `tcp` on the loopback interface: a broadcast to the other ranks, and an allgather of parts of {size} / p. Beside it raw sockets do the
same: a broadcast passes along a chain in pieces of 256 KiB, an allgather around a ring. Both take turns in the same processes, {turns} times. Ratios
are medians of each turn's ratio. Processor time is of all ranks, user and system, per byte that arrives.

{unshaped}

## What limits 10, 25 and 100 Gbit/s

From the broadcast of two ranks above, computed: the bytes that one core sends or receives, and the cores that a rate takes. The kernel's
loopback copies as a network card's driver does, but has neither its interrupts nor its offloads.

{limits}
"""


def write(build, page):
    libfabric, machine = where()
    rows = counted(build)
    raw = unshaped(build)
    page.write_text(PAGE.format(libfabric=libfabric, machine=machine, tolerance=(TOLERANCE - 1) * 100, warm=4, counted=counted_table(rows),
                                calls=calls_table(rows), noted=noted_table(noted(build / "tests/bench/costs")), cores=os.cpu_count(), waits=waits_table(build), size=size_text(UNSHAPED_BYTES),
                                turns=UNSHAPED_TURNS, unshaped=unshaped_table(raw), limits=limits_table(raw)), encoding="utf-8")


def count_anew(build, page):
    text = page.read_text(encoding="utf-8")
    rows = counted(build)
    before, _, rest = text.partition("| over | case |")
    between = PAGE.partition("{counted}")[2].partition("## Waiting")[0].format(calls=calls_table(rows), noted=noted_table(noted(build / "tests/bench/costs")))
    page.write_text(f"{before}{counted_table(rows)}{between}## Waiting{rest.partition('## Waiting')[2]}", encoding="utf-8")


def table_rows(text):
    """The rows of the first three tables by (table, endpoint, case)."""
    part = text.partition("## Counted")[2].partition("## Waiting")[0]
    found, heads = {}, []
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| over"):
            heads.append(cells)
        elif line.startswith("| `"):
            found.update({(len(heads), cells[0], cells[1], head): float(cell) for head, cell in zip(heads[-1][2:], cells[2:])})
    return found


def differences(old, now):
    """A line for each figure that is another one."""
    wrong = []
    for key in sorted(old.keys() | now.keys()):
        a, b = old.get(key, 0), now.get(key, 0)
        if abs(a - b) > SLACK and max(a, b) > TOLERANCE * min(a, b):
            wrong.append(f"{key[1]} {key[2]}, {key[3]}: {a} on the page, {b} here")
        if "of Espalier" in key[3] and b != 0:
            wrong.append(f"{key[1]} {key[2]}: {b} system calls of Espalier; expected none")
    return wrong


def check(build, page):
    for tool in ("valgrind", "strace"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed")
            sys.exit(SKIPPED)
    text = page.read_text(encoding="utf-8")
    of_page = re.search(r": libfabric (\S+) on (\S+)\. ", text, re.MULTILINE).groups()
    if of_page != where():
        print(f"skipped: the page is of libfabric {' on '.join(of_page)}, and this is libfabric {' on '.join(where())}")
        sys.exit(SKIPPED)
    cases = CASES if os.environ.get("ESPALIER_WHOLE") else [case for case in CASES if case in SAMPLE]
    print(f"{len(cases)} of {len(CASES)} cases over each provider; ESPALIER_WHOLE=1 compares all")
    names = {case_name(case) for case in cases}
    now, notes = {}, noted(build / "tests/bench/costs")
    names |= notes.keys()
    old = {key: value for key, value in table_rows(text).items() if key[2] in names}
    for _ in range(ATTEMPTS):
        rows = counted(build, cases)
        tables = (counted_table(rows), calls_table(rows), noted_table(notes))
        for key, value in table_rows("\n".join(["## Counted", *tables, "## Waiting"])).items():
            now[key] = min(value, now.get(key, value))
        wrong = differences(old, now)
        if not wrong:
            break
    spoilt = {key: value * 1.5 + 1 for key, value in now.items()}
    if len(differences(spoilt, now)) < len(now) or not differences({}, now):
        fail("figures that are half as much again were taken for equal")
    for line in wrong:
        print(line)
    if wrong:
        fail(f"{page} is old: tests/bench/costs.py --count build docs/results/costs.md counts anew")
    print(f"{len(now)} figures as on the page")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"] and len(sys.argv) == 4:
        write(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--count"] and len(sys.argv) == 4:
        count_anew(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--check"] and len(sys.argv) == 4:
        check(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
