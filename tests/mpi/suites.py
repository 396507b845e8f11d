#!/usr/bin/env python3
"""Runs what public suites of MPI have about collectives, plain and with Espalier's library in front.

suites.py run --build BUILD --sources SUITE=FOLDER... [--ranks 2,3,5,7,8] [--libraries LIBRARY,...] [--only PATTERN] [--limit SECONDS]
              [--out RUNS]
suites.py run ... --again         only what did not pass with the library in RUNS
suites.py page RUNS               prints docs/results/mpi_suites.md
suites.py whole RUNS              prints the page's whole tables: a row for each number of ranks, and for each function
suites.py check RUNS PAGE FOLDER  exit status 1 unless PAGE is what `page RUNS` prints; writes the whole tables to FOLDER/mpi_suites.md

SUITE: mpich, mpi4py, imb, osu or scalapack. Sources are never part of this repository: a suite without a folder is named with where it comes
from, and the page shows the folder's name. LIBRARY: openmpi or mpich, both by default, or of the standard's ABI, as launch.py has them. BUILD is a
build folder with bridge/libespalier-mpi-*.so. Runs add up in RUNS, for each version of a library. A program counts as passed if its status is 0
and its output says so. One that does not pass plain does not run with the library. One that reaches the time limit (900 s) plain counts as not
run.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from launch import LAUNCHERS, VERSIONS, Library
from suites_built import SUITES, Missing

RANKS = (2, 3, 5, 7, 8)
HEAD = """# Public suites of MPI

Written by `tests/mpi/suites.py page tests/mpi/suites_runs.json`. `tests/mpi/suites.sh` built what these suites have about collectives, and
ran each program plain and with Espalier's library in front ([communicator.md](../communicator.md#an-mpi-program-unchanged)). A program counts
as passed if its exit status is 0 and it reports no error. One that fails plain does not run with the library. A run is a program with a
number of ranks; one that reaches the time limit plain does not count. What has no row did not run. Ranks that
wait in the MPI library yield the processor, plain and with Espalier: under Open MPI by its setting `mpi_yield_when_idle`, under MPICH by
`tests/mpi/yield.c`. Some runs under MPICH with up to 5 ranks preceded this file. `calls`: collectives on intracommunicators, on all ranks;
`by MPI` leaves out `MPI_Alltoallw` and neighbour collectives, which are for the MPI library. `share`: the part that Espalier took.
"""


def fail(text):
    sys.exit(f"suites.py: {text}")


def environment(program, library, bridge):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "OMPI", "SLURM", "ESPALIER", "LD_"))}
    env |= {"IPATH_NO_BACKTRACE": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "MTEST_THREADLEVEL_DEFAULT": "single"}
    if library.name == "mpich":
        env.pop("MTEST_THREADLEVEL_DEFAULT")
    return env | program.env | library.env | ({"ESPALIER_MPI_COUNTS": "1"} if bridge else {})


def build_yield(library, folder):
    """Returns the library that every run under `library` preloads, plain and with the bridge; none under Open MPI, which has a setting."""
    if library.name != "mpich":
        return []
    built = pathlib.Path(folder) / "yield.so"
    subprocess.run([f"mpicc.{library.label}", "-O2", "-shared", "-fPIC", "-o", built, pathlib.Path(__file__).with_name("yield.c"), "-ldl"], check=True)
    return [built]


def launch(program, library, ranks, bridge, folder, options):
    """Returns whether the program passed, its last lines, and the calls {function: (by Espalier, by MPI)}."""
    env = environment(program, library, bridge)
    command = [shutil.which(LAUNCHERS[library.name]), "-n", str(ranks)]
    if library.name == "openmpi":
        command += ["--oversubscribe", "--bind-to", "none"]
        for name in [*program.env, *library.env, *(("ESPALIER_MPI_COUNTS",) if bridge else ())]:
            command += ["-x", name]
    if preloads := [*options.preloads, *([bridge] if bridge else [])]:
        paths = ":".join(map(str, preloads))
        command += ["-x", f"LD_PRELOAD={paths}"] if library.name == "openmpi" else ["-genv", "LD_PRELOAD", paths]
    command += [str(word) for word in program.command]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, cwd=program.env.get("FOLDER", folder), env=env, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(options.limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # the launcher ends its ranks
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            status = f"none after {options.limit} s"
        out.seek(0)
        text = out.read()
    counts = {name: (int(ours), int(below)) for name, ours, below in re.findall(r"^MPI_([A-Z]\S*) +(\d+) +(\d+)$", text, re.M)}
    passed = status == 0 and re.search(program.good, text, re.M) is not None and not (program.bad and re.search(program.bad, text, re.M))
    return passed, f"status {status}\n" + text[-1500:], counts


def read_runs(path):
    return json.loads(path.read_text()) if path.exists() else {}


def write_runs(path, runs):
    lines = [f"{json.dumps(key)}:{json.dumps(runs[key], separators=(',', ':'))}" for key in sorted(runs)]
    new = path.with_suffix(".new")
    new.write_text("{" + ",\n".join(lines) + "}\n")
    new.replace(path)


def run_program(program, key, library, ranks, options, runs):
    """Runs one program plain and with the bridge, and keeps the verdicts in runs[key]."""
    bridge = options.build.resolve() / "bridge" / f"libespalier-mpi-{library.kind}.so"
    with tempfile.TemporaryDirectory() as folder:
        kept = runs.get(key, {})
        plain, text = kept.get("plain"), ""
        if not plain:
            plain, text, _ = launch(program, library, ranks, None, folder, options)
        if text.startswith("status none"):
            print(f"{key}: not run, the plain program reached the limit of {options.limit} s", flush=True)
            return
        entry = {"plain": plain}
        if plain:
            passed, text, counts = launch(program, library, ranks, bridge, folder, options)
            entry |= {"bridge": passed, "calls": counts}
            if not passed:
                log = options.logs / re.sub(r"\W+", "_", key)
                log.write_text(text)
                print(f"{key}: passes plain, fails with the library: {log}", flush=True)
    runs[key] = entry


def run_suites(options):
    sources = dict(each.split("=", 1) for each in options.sources)
    for name in sources:
        if name not in SUITES:
            fail(f"suite '{name}'; expected one of {', '.join(SUITES)}")
    for name, (_, origin) in SUITES.items():
        if name not in sources:
            print(f"{name}: not run; it needs --sources {name}=FOLDER with {origin}", file=sys.stderr)
    if not sources:
        fail("no sources; expected --sources SUITE=FOLDER")
    runs = read_runs(options.out)
    options.logs.mkdir(parents=True, exist_ok=True)
    for text in options.libraries.split(","):
        if text.partition("=")[0].removeprefix("abi-") not in LAUNCHERS:
            fail(f"library '{text}'; expected openmpi, mpich, abi-openmpi=FOLDERS or abi-mpich=FOLDERS")
        library = Library(text)
        with tempfile.TemporaryDirectory() as compilers:
            if library.is_abi:
                make_compiler(library, pathlib.Path(compilers))
                os.environ["PATH"] = f"{compilers}:{os.environ['PATH']}"
            for tool in (f"mpicc.{library.label}", LAUNCHERS[library.name]):
                if not shutil.which(tool):
                    fail(f"{tool} is not installed; expected the packages of the section bridge, or --libraries without {library.label}")
            if not (options.build / "bridge" / f"libespalier-mpi-{library.kind}.so").exists():
                fail(f"{options.build}/bridge has no libespalier-mpi-{library.kind}.so; ninja -C {options.build} bridge/libespalier-mpi-{library.kind}.so")
            for name, folder in sources.items():
                run_suite(name, pathlib.Path(folder).resolve(), library, options, runs)


def make_compiler(library, folder):
    """Makes the command mpicc.LABEL, which compiles for the standard's ABI with the header of Open MPI, or else MPICH's."""
    for package, header, flags in (("ompi-c", "standard_abi/mpi.h", "-isystem{}/standard_abi"), ("mpich", "mpi_abi.h", "-DMPI_ABI -isystem{}")):
        found = subprocess.run(["pkg-config", "--variable=includedir", package], capture_output=True, text=True).stdout.strip()
        if found and pathlib.Path(found, header).exists():
            command = folder / f"mpicc.{library.label}"
            command.write_text(f'#!/bin/sh\nexec cc {flags.format(found)} "$@" -L{library.env["LD_LIBRARY_PATH"]} -l:libmpi_abi.so.1\n')
            command.chmod(0o755)
            return
    fail("no MPI library has the header of the standard's ABI, as Open MPI 6 and MPICH 5 have")


def run_suite(name, source, library, options, runs):
    with tempfile.TemporaryDirectory(prefix=f"suites-{name}-") as build:
        options.preloads = build_yield(library, build)
        try:
            programs = SUITES[name][0](source, pathlib.Path(build), library.label)
        except Missing as error:
            fail(f"{name}: {error}; expected {SUITES[name][1]}")
        title = library.title()
        runs[f"{name}|{title}"] = {"programs": len(programs), "folder": source.name}
        for ranks in map(int, options.ranks.split(",")):
            for program in programs:
                key = f"{name}|{title}|{ranks}|{program.name}"
                if not re.search(options.only, program.name) or (options.again and key in runs and runs[key].get("bridge", True)):
                    continue
                run_program(program, key, library, ranks, options, runs)
                write_runs(options.out, runs)
    print(f"{name} under {title}: done", flush=True)


def is_apart(function):
    """Whether the bridge leaves the function to the MPI library by design."""
    return re.search("alltoallw|neighbor", function, re.I) is not None


def is_plan(function):
    return function.endswith("_init")


# The calls of the page, by kind: a name, and which functions are of it.
KINDS = (("blocking", lambda function: not (is_apart(function) or is_plan(function) or function.startswith("I"))),
         ("nonblocking", lambda function: not is_apart(function) and function.startswith("I")),
         ("persistent", lambda function: not is_apart(function) and is_plan(function)),
         ("`MPI_Alltoallw` and neighbour collectives", is_apart))
MOST = 6  # functions that the page names


def family_of(title):
    return next(name for name in VERSIONS.values() if title.startswith(name))


def tables_of(runs):
    """Returns for each (suite, library and version, ranks) its count of programs, of those passed plain, and of those passed with the library and
    their calls; the calls by function and library; and the failing programs, those that pass plain only."""
    rows, calls, failing = {}, {}, []
    for key, entry in sorted(runs.items()):
        if "plain" not in entry:
            continue
        suite, library, ranks, name = key.split("|", 3)
        if entry["plain"] and not entry["bridge"]:
            failing.append(f"* {suite}, {library}, {ranks} ranks: `{name}`")
        row = rows.setdefault((suite, library, int(ranks)), dict.fromkeys(("programs", "plain", "bridge", "ours", "below", "apart"), 0))
        row["programs"] += 1
        row["plain"] += entry["plain"]
        row["bridge"] += entry.get("bridge", False)
        for function, (ours, below) in entry.get("calls", {}).items():
            kept = calls.setdefault(function, {}).setdefault(family_of(library), [0, 0])
            kept[0] += ours
            kept[1] += below
            row["ours"] += ours
            row["apart" if is_apart(function) else "below"] += below
    return rows, dict(sorted(calls.items())), failing


def order_of(row):
    suite, library, ranks = row
    return list(SUITES).index(suite), library.endswith("ABI"), list(VERSIONS.values()).index(family_of(library)), library, ranks


def row_of(rows, runs, suite, library, ranks):
    whole = runs.get(f"{suite}|{library}", {})
    programs = whole.get("programs")
    head = f"| {whole.get('folder', suite)} | {library} | {ranks} | "
    row = rows[suite, library, ranks]
    extent = "whole" if row["programs"] == programs else f"{row['programs']} of {programs}"
    taken = row["ours"] + row["below"]
    share = f"{100 * row['ours'] / taken:.1f} %" if taken else ""
    return head + f"{extent} | {row['programs']} | {row['plain']} | {row['bridge']} | {row['ours']:,} | {row['below']:,} | {share} |"


def whole(runs):
    """The whole tables: a row for each number of ranks, and one for each function."""
    rows, calls, _ = tables_of(runs)
    lines = ["| suite | MPI library | ranks | run | programs | passed plain | of these, with Espalier | calls by Espalier | by MPI | share |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    lines += [row_of(rows, runs, *row) for row in sorted(rows, key=order_of)]
    lines += ["", "| function | Open MPI: by Espalier | by MPI | MPICH: by Espalier | by MPI |", "| --- | --- | --- | --- | --- |"]
    lines += [calls_row(f"MPI_{function}", of) for function, of in calls.items()]
    return "\n".join(lines) + "\n"


def calls_row(name, calls):
    return f"| {name} | " + " | ".join(f"{number:,}" for library in VERSIONS.values() for number in calls.get(library, [0, 0])) + " |"


def sum_of(found):
    """The sum of calls: by library, by whom."""
    found = list(found)
    return {library: [sum(each.get(library, [0, 0])[i] for each in found) for i in (0, 1)] for library in VERSIONS.values()}


def suite_row(rows, runs, suite, library):
    """The runs of all numbers of ranks together."""
    of = {ranks: row for (one, other, ranks), row in rows.items() if (one, other) == (suite, library)}
    total = {name: sum(row[name] for row in of.values()) for name in ("programs", "plain", "bridge", "ours", "below")}
    taken = total["ours"] + total["below"]
    share = f"{100 * total['ours'] / taken:.1f} %" if taken else ""
    whole = runs.get(f"{suite}|{library}", {})
    return (f"| {whole.get('folder', suite)} | {library} | {', '.join(map(str, sorted(of)))} | {whole.get('programs')} | {total['programs']} | "
            f"{total['plain']} | {total['bridge']} | {total['ours']:,} | {total['below']:,} | {share} |")


def page(runs):
    rows, calls, failing = tables_of(runs)
    digest = hashlib.sha256(whole(runs).encode()).hexdigest()[:16]
    lines = [HEAD, f"`tests/mpi/suites.py whole tests/mpi/suites_runs.json >build/tests/mpi/mpi_suites.md` writes a table with a row for each of {len(rows)} "
             f"suites,\nlibraries and numbers of ranks, and one for each of {len(calls)} functions. Their digest is {digest}: a test compares it.", "",
             "| suite | MPI library | ranks | programs | runs | passed plain | of these, with Espalier | calls by Espalier | by MPI | share |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    lines += [suite_row(rows, runs, suite, library) for suite, library in dict.fromkeys(row[:2] for row in sorted(rows, key=order_of))]
    lines += ["", "## Passed plain, failed with Espalier", ""]
    lines += failing or ["No program."]
    lines += ["", "## Calls", "", "Calls on all ranks of the programs above that Espalier took over, and that it passed on to the MPI library.", "",
              "| functions | Open MPI: by Espalier | by MPI | MPICH: by Espalier | by MPI |", "| --- | --- | --- | --- | --- |"]
    for name, belongs in KINDS:
        of = [each for function, each in calls.items() if belongs(function)]
        lines.append(calls_row(f"{name} ({len(of)})", sum_of(of)))
    lines += [calls_row("all", sum_of(calls.values())), "",
              "The functions of which Espalier passed on the most, without those that are for the MPI library:", "",
              "| function | Open MPI: by Espalier | by MPI | MPICH: by Espalier | by MPI |", "| --- | --- | --- | --- | --- |"]
    passed_on = sorted((function for function in calls if not is_apart(function)), key=lambda function: -sum(below for _, below in calls[function].values()))
    return "\n".join(lines + [calls_row(f"MPI_{function}", calls[function]) for function in passed_on[:MOST]]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--build", type=pathlib.Path, required=True)
    run.add_argument("--sources", nargs="+", default=[], metavar="SUITE=FOLDER")
    run.add_argument("--ranks", default=",".join(map(str, RANKS)))
    run.add_argument("--libraries", default=",".join(LAUNCHERS))
    run.add_argument("--only", default="", metavar="PATTERN")
    run.add_argument("--limit", type=int, default=900, metavar="SECONDS")
    run.add_argument("--again", action="store_true")
    run.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_name("suites_runs.json"))
    run.add_argument("--logs", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "espalier-suites-logs")
    for name in ("page", "whole", "check"):
        commands.add_parser(name).add_argument("runs", type=pathlib.Path)
    commands.choices["check"].add_argument("page", type=pathlib.Path)
    commands.choices["check"].add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "run":
        return run_suites(options)
    runs = json.loads(options.runs.read_text())
    text = whole(runs) if options.command == "whole" else page(runs)
    if options.command != "check":
        print(text, end="")
        return
    (options.folder / "mpi_suites.md").write_text(whole(runs))
    if text != options.page.read_text():
        fail(f"{options.page} is old; expected the output of suites.py page {options.runs}")


if __name__ == "__main__":
    main()
