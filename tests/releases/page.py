#!/usr/bin/python3
"""docs/results/releases.md: what the README's two commands did in bare roots of Debian's releases, and what was built with other compilers
and options.

page.py --record RELEASE FOLDER   keeps what run.sh left in FOLDER (run.log, test.log, packages.log) in runs.json, and prints its row
page.py --write                   writes docs/results/releases.md from runs.json, builds.json and docs/results/providers.md
page.py --check                   exit status 1 unless the page is what --write would write
"""
import datetime
import json
import pathlib
import re
import sys

sys.path += [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent / "bench")]
import builds as all_builds
import providers

HERE = pathlib.Path(__file__).resolve().parent
RUNS, BUILDS = HERE / "runs.json", HERE / "builds.json"
RESULTS = HERE.parent.parent / "docs/results"
PAGE = RESULTS / "releases.md"
RELEASES = ("12", "13", "unstable")
# Heading -> the package whose version is shown.
PACKAGES = {"g++": "g++", "clang": "clang", "Meson": "meson", "libfabric": "libfabric-dev", "PMIx": "libpmix-dev",
            "Open MPI": "openmpi-bin", "MPICH": "mpich", "Slurm": "slurm-wlm", "Protobuf": "protobuf-compiler", "nanopb": "libnanopb-dev",
            "libsodium": "libsodium-dev", "Expat": "libexpat1-dev", "QEMU": "qemu-system-arm", "ARM GCC": "gcc-arm-none-eabi"}
HEAD = """# Releases of Debian, compilers, and libfabric

Written by `tests/releases/page.py --write` from tests/releases/runs.json and builds.json. As root, `tests/releases/run.sh RELEASE` made a bare root
of the release by debootstrap, cloned the sources into it, ran `./run.sh` and `./test.sh` there, with nothing installed by hand, and kept what
came of it. [Elsewhere](../using.md#systems-other-than-debian) what is needed is a table.

"""
BUILT = """
## Compilers and options

Built by `tests/releases/builds.py`, with warnings as errors and without tests. What was built then verified a schedule, and summed over it between
eight processes.

"""
FABRICS = """
## libfabric

Tests of the conformance suite that passed over each provider that serves ([providers.md](providers.md) has the others, with reasons).

"""


def version_of(text):
    """Returns the part of a Debian version that the software's authors gave: 4:12.2.0-3 is 12.2.0, and 4.3.0+really4.2.1-1 is 4.2.1."""
    version = re.sub(r"^\d+:", "", text).rsplit("-", 1)[0].rsplit("+really", 1)[-1]
    return re.split(r"[+~](?!rc)", version)[0]


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
    held = (folder / "run.log").read_text().splitlines()[-1:] == ["every check held"]
    return {"date": datetime.date.today().isoformat(), "run": "every check held" if held else "failed",
            "versions": {name: installed.get(package, "none") for name, package in PACKAGES.items()},
            "passed": int(totals[1]), "failed": int(totals[2]), "skipped": int(totals[3] or 0),
            "skips": [line.removeprefix("skipped: ") for line in lines if line.startswith("skipped: ")],
            "failures": [line.removeprefix("failed: ") for line in lines if line.startswith("failed: ")]}


def cells_of(release, run):
    return [release, run["date"], *(run["versions"][name] for name in PACKAGES), run["run"], f"{run['passed']:,}", f"{run['failed']:,}",
            f"{run['skipped']:,}"]


def row_of(cells):
    return "| " + " | ".join(cells) + " |\n"


def page_of(runs):
    columns = ["Debian", "date", *PACKAGES, "`./run.sh`", "`./test.sh`: passed", "failed", "skipped"]
    text = HEAD + row_of(columns) + row_of(["---"] * len(columns))
    text += "".join(row_of(cells_of(release, runs[release])) if release in runs else row_of([release, "not run", *[""] * (len(columns) - 2)])
                    for release in RELEASES)
    for heading, key in (("What failed", "failures"), ("What was skipped", "skips")):
        lines = [f"- {release}: {line}\n" for release in RELEASES for line in runs.get(release, {}).get(key, [])]
        text += f"\n## {heading}\n\n" + ("".join(lines) or "Nothing.\n")
    return text + builds_of(json.loads(BUILDS.read_text())) + fabrics_of(providers.sections((RESULTS / "providers.md").read_text()))


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
        case ["--write"]:
            PAGE.write_text(page_of(runs))
        case ["--check"]:
            if PAGE.read_text() != page_of(runs):
                print(f"{PAGE} is not what {RUNS} gives; write it with tests/releases/page.py --write")
                return 1
        case _:
            print(f"page.py: expected --record {'|'.join(RELEASES)} FOLDER, --write or --check", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
