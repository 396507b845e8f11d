#!/usr/bin/python3
"""docs/results/releases.md: what the README's two commands did in bare roots of Debian's releases, what was built with other compilers
and options, and the Debian packages.

page.py --record RELEASE FOLDER   keeps what run.sh left in FOLDER (run.log, test.log, their .times, testlog.json, packages.log) in runs.json, and
                                  prints its row
page.py --failed RELEASE          prints build and name of each test that failed in the release's run
page.py --record-passed RELEASE FOLDER
                                  keeps which of these passed when run.sh --failed ran them (passed.log)
page.py --record-debs RELEASE ARCHITECTURE FOLDER
                                  keeps what tests/install/clean_root.sh left in FOLDER (debs.log, the packages) in debs.json, and prints
                                  a row for each package
page.py --write                   writes docs/results/releases.md from runs.json, builds.json, debs.json, tests/mpi/suites_runs.json and
                                  docs/results/providers.md
page.py --check                   exit status 1 unless the page is what --write would write
"""
import datetime
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "bench"), str(HERE.parent / "mpi")]
import builds as all_builds
import providers
import suites

RUNS, BUILDS, DEBS = HERE / "runs.json", HERE / "builds.json", HERE / "debs.json"
MAX_LINE = 240  # of a test's message on the page
SUITES_RUNS = HERE.parent / "mpi/suites_runs.json"
RESULTS = HERE.parent.parent / "docs/results"
PAGE = RESULTS / "releases.md"
RELEASES = ("12", "13", "unstable")
# Heading -> the package whose version is shown.
PACKAGES = {"g++": "g++", "clang": "clang", "Meson": "meson", "libfabric": "libfabric-dev", "PMIx": "libpmix-dev",
            "Open MPI": "openmpi-bin", "MPICH": "mpich", "Slurm": "slurm-wlm", "Protobuf": "protobuf-compiler", "nanopb": "libnanopb-dev",
            "libsodium": "libsodium-dev", "Expat": "libexpat1-dev", "QEMU": "qemu-system-arm", "ARM GCC": "gcc-arm-none-eabi"}
# Of the tests with an MPI library or its launcher: what each is, and its name; {} is the library.
MPI_TESTS = {"a program that joins, under its launcher": "launchers", "its collectives, with and without Espalier": "bridge-{}",
             "programs in C and Fortran": "bridge-programs-{}", "many communicators": "bridge-communicators-{}",
             "standard ABI: its collectives": "bridge-abi-{}", "standard ABI: programs in C": "bridge-programs-abi-{}",
             "standard ABI: many communicators": "bridge-communicators-abi-{}"}
HEAD = """# Releases of Debian, compilers, and libfabric

Written by `tests/releases/page.py --write` from what the commands below kept in `tests/releases`. As root, `tests/releases/run.sh RELEASE` made a
bare root of the release by debootstrap, cloned the sources into it, ran `./run.sh` and `./test.sh` there, with nothing installed by hand, and kept
what came of it. `tests/releases/run.sh RELEASE --failed` fetches the mends into that root, and runs the failed tests once more.
Versions are those of packages; `g++` and `clang` are the default of the release. Seconds (s), with the packages' installation: of all
processors together / of a clock. [Elsewhere](../using.md#systems-other-than-debian) what is needed is a table.

"""
MPI = """
## MPI libraries and their launchers

What came of the tests in the runs above, and how many programs of the [public suites](mpi_suites.md) that passed plain passed with Espalier's
library in front, on all numbers of ranks together.

"""
BUILT = """
## Compilers and options

Built by `tests/releases/builds.py`, with warnings as errors and without tests. In a sum, eight processes sum by a schedule that the
command verified. Programs in [examples/](../../examples/README.md) are built in a folder of their own, and run.

"""
PACKED = """
## Debian packages

Built in a clean root of the release by `tests/install/clean_root.sh`, installed in another one by apt-get, and tried there: `espalier doctor`, a sum
of four processes over tcp, a manual page, completion, [examples/pkg-config](../../examples/pkg-config) and
[examples/cmake](../../examples/cmake). arm64 is cross-built on amd64 and tried under qemu-user. Then they were removed, and left no file.

"""
FABRICS = """
## libfabric

Tests of the conformance suite that passed over each provider that serves ([providers.md](providers.md) has the others, with reasons).

"""


def version_of(text):
    """Returns the part of a Debian version that the software's authors gave: 4:12.2.0-3 is 12.2.0, and 4.3.0+really4.2.1-1 is 4.2.1."""
    version = re.sub(r"^\d+:", "", text).rsplit("-", 1)[0].rsplit("+really", 1)[-1]
    return re.split(r"[+~](?!rc)", version)[0].replace("~", "")


def mpi_tests():
    return sorted({test.format(library) for test in MPI_TESTS.values() for library in suites.LAUNCHERS})


def read_run(folder):
    """Returns what run.sh left in the folder. Raises ValueError if a log does not end as those commands end."""
    installed = {}
    for line in (folder / "packages.log").read_text().splitlines():
        state, name, *version = line.split()
        if state == "installed":
            installed[name] = version_of(version[0])
    lines = (folder / "test.log").read_text().splitlines()
    totals = re.fullmatch(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", lines[-1] if lines else "")
    if not totals:
        raise ValueError(f"{folder}/test.log does not end with the totals of ./test.sh")
    tests = [json.loads(line) for line in (folder / "testlog.json").read_text().splitlines()]
    tests = {test["name"].split(" / ")[-1].split(":")[-1]: test["result"] for test in tests}
    held = (folder / "run.log").read_text().splitlines()[-1:] == ["every check held"]
    return {"date": datetime.date.today().isoformat(), "run": "every check held" if held else "failed",
            "versions": {name: installed.get(package, "none") for name, package in PACKAGES.items()},
            "seconds": {name: [int(word) for word in (folder / f"{name}.times").read_text().split()] for name in ("run", "test")},
            "passed": int(totals[1]), "failed": int(totals[2]), "skipped": int(totals[3] or 0),
            "mpi": {name: tests.get(name, "not built") for name in mpi_tests()},
            "skips": [line.removeprefix("skipped: ") for line in lines if line.startswith("skipped: ")],
            "failures": [line.removeprefix("failed: ") for line in lines if line.startswith("failed: ")]}


def cells_of(release, run):
    return [release, run["date"], *(run["versions"][name] for name in PACKAGES), run["run"], f"{run['passed']:,}", f"{run['failed']:,}",
            f"{run['skipped']:,}", *(seconds_of(run, name) for name in ("run", "test"))]


def seconds_of(run, name):
    return " / ".join(f"{seconds:,}" for seconds in run["seconds"][name]) if "seconds" in run else ""


def row_of(cells):
    return "| " + " | ".join(cells) + " |\n"


def page_of(runs):
    columns = ["Debian", "date", *PACKAGES, "`./run.sh`", "`./test.sh`: passed", "failed", "skipped", "`./run.sh`: s", "`./test.sh`: s"]
    text = HEAD + row_of(columns) + row_of(["---"] * len(columns))
    text += "".join(row_of(cells_of(release, runs[release])) if release in runs else row_of([release, "not run", *[""] * (len(columns) - 2)])
                    for release in RELEASES)
    for heading, key in (("What failed", "failures"), ("What was skipped", "skips")):
        lines = [f"- {release}: {within(line)}{since(runs[release], line) if key == 'failures' else ''}\n"
                 for release in RELEASES for line in runs.get(release, {}).get(key, [])]
        text += f"\n## {heading}\n\n" + ("".join(lines) or ("Nothing.\n" if runs else "Not run.\n"))
    text += mpi_of(runs, json.loads(SUITES_RUNS.read_text())) + builds_of(json.loads(BUILDS.read_text())) + debs_of(json.loads(DEBS.read_text()))
    return text + fabrics_of(providers.sections((RESULTS / "providers.md").read_text()))


def within(line):
    """Returns the beginning of the line, with paths from the folder of the sources, which are in /root/espalier of each root."""
    line = re.sub(r"/root/espalier/(build[^/ ]*/\.\./)?", "", line)
    return line if len(line) <= MAX_LINE else line[:MAX_LINE] + " ..."


def test_of(failure):
    """Returns 'BUILD TEST' of a line 'BUILD: TEST: CASE: MESSAGE'."""
    return " ".join(failure.split(": ")[:2])


def since(run, failure):
    """Returns the words that say when the failed test passed in that root, if it did."""
    return f"; mended, and passed there on {run['mended']['date']}" if test_of(failure) in run.get("mended", {}).get("passed", []) else ""


def mpi_of(runs, suites_runs):
    """Returns the section of the MPI libraries: a column for each, a row for each test and suite."""
    libraries = [(release, name, f"{title} {runs[release]['versions'][title]}") for release in RELEASES if release in runs
                 for name, title in suites.VERSIONS.items()]
    if not libraries:
        return MPI + "Not run.\n"
    columns = ["", *(title for *_, title in libraries)]
    text = MPI + row_of(columns) + row_of(["---"] * len(columns))
    text += row_of(["Debian", *(release for release, *_ in libraries)])
    words = {"OK": "passed", "SKIP": "skipped", "not built": "not built"}
    for what, test in MPI_TESTS.items():
        text += row_of([what, *(words.get(runs[release]["mpi"][test.format(name)], "failed") for release, name, _ in libraries)])
    counts = {}
    for (suite, title, _), row in suites.tables_of(suites_runs)[0].items():
        passed = counts.setdefault((suite, title), [0, 0])
        passed[0] += row["bridge"]
        passed[1] += row["plain"]
    for suite in suites.SUITES:
        for of, ending in ((suite, ""), (f"standard ABI: {suite}", ", standard ABI")):
            found = [counts.get((suite, title + ending)) for *_, title in libraries]
            if any(found):
                text += row_of([of, *("{:,} of {:,}".format(*each) if each else "not run" for each in found)])
    return text


def builds_of(builds):
    columns = ["build", "options", "compiler", "Debian", "date", "built", "then"]
    text = BUILT + row_of(columns) + row_of(["---"] * len(columns))
    for name, (options, *_) in all_builds.BUILDS.items():
        rows = [row for key, row in sorted(builds.items()) if key.startswith(name + ", ")]
        for row in rows:
            text += row_of([name, options, row["compiler"], row["Debian"], row["date"], "yes" if row["built"] else "no", row["ran"]])
        if not rows:
            text += row_of([name, options, "", "", "", "not built", ""])
    return text


def read_debs(release, architecture, folder):
    """Returns a row for each package in the folder."""
    rows = []
    for line in (folder / "debs.log").read_text().splitlines():
        package, version, own_architecture, installed_kib = line.split()
        file = folder / f"{package}_{version}_{own_architecture}.deb"
        rows.append({"package": package, "version": version, "Debian": release, "architecture": architecture, "date": datetime.date.today().isoformat(),
                     "KiB": (file.stat().st_size + 1023) // 1024, "installed KiB": int(installed_kib)})
    return rows


def deb_cells(row):
    return [row["package"], row["version"], row["Debian"], row["architecture"], row["date"], f"{row['KiB']:,}", f"{row['installed KiB']:,}"]


def debs_of(debs):
    columns = ["package", "version", "Debian", "architecture", "date", "KiB", "KiB installed"]
    text = PACKED + row_of(columns) + row_of(["---"] * len(columns))
    return text + "".join(row_of(deb_cells(row)) for _, rows in sorted(debs.items()) for row in rows)


def fabrics_of(tables):
    columns = ["libfabric", "processor", "provider: passed"]
    text = FABRICS + row_of(columns) + row_of(["---"] * len(columns))
    for (version, machine), lines in tables.items():
        rows = [providers.cells(line) for line in lines]
        text += row_of([version, machine, ", ".join(f"{row[0]}: {row[3]}" for row in rows if " of " in row[3])])
    return text


def main(arguments):
    runs = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    match arguments:
        case ["--record", release, folder] if release in RELEASES:
            runs[release] = read_run(pathlib.Path(folder))
            RUNS.write_text(json.dumps(runs, indent=1) + "\n")
            print(row_of(cells_of(release, runs[release])), end="")
        case ["--failed", release] if release in runs:
            print("".join(f"{test}\n" for test in dict.fromkeys(map(test_of, runs[release]["failures"]))), end="")
        case ["--record-passed", release, folder] if release in runs:
            passed = (pathlib.Path(folder) / "passed.log").read_text().splitlines()
            runs[release]["mended"] = {"date": datetime.date.today().isoformat(), "passed": passed}
            RUNS.write_text(json.dumps(runs, indent=1) + "\n")
            print(f"{len(passed)} of {len(set(map(test_of, runs[release]['failures'])))} failed tests passed")
        case ["--record-debs", ("12" | "13") as release, ("amd64" | "arm64") as architecture, folder]:
            debs = json.loads(DEBS.read_text()) | {f"{release} {architecture}": read_debs(release, architecture, pathlib.Path(folder))}
            DEBS.write_text(json.dumps(debs, indent=1, sort_keys=True) + "\n")
            for row in debs[f"{release} {architecture}"]:
                print(row_of(deb_cells(row)), end="")
        case ["--write"]:
            PAGE.write_text(page_of(runs))
        case ["--check"]:
            if PAGE.read_text() != page_of(runs):
                print(f"{PAGE} is not what {RUNS} gives; write it with tests/releases/page.py --write")
                return 1
        case _:
            print(f"page.py: expected --record {'|'.join(RELEASES)} FOLDER, --failed RELEASE, --record-passed RELEASE FOLDER, "
                  "--record-debs 12|13 amd64|arm64 FOLDER, --write or --check", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
