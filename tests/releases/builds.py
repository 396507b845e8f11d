#!/usr/bin/python3
"""Builds Espalier in every way that docs/results/releases.md names, and runs the main job with what came of it.

builds.py [NAME...]   builds these, by default all whose tools are here, in build-releases/builds/NAME; keeps what came of it in
                      tests/releases/builds.json, a row for each name and compiler; exit status 1 if one failed
builds.py --list      prints names and what each is

Warnings are errors in those that meson setup configures here. Takes some minutes each. libc++ needs the packages libc++-dev and
libc++abi-dev, and musl needs musl-tools and ./setup.sh. page.py --write then writes the page.
"""
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNS = ROOT / "tests/releases/builds.json"
FOLDER = ROOT / "build-releases/builds"
# Name -> what it is, compiler of C++, compiler of C, arguments of meson setup, what comes after the build: functions below.
BUILDS = {
    "g++": ("the defaults", "g++", "gcc", [], ["main_job"]),
    "clang++": ("the defaults", "clang++", "clang", [], ["main_job"]),
    "debug": ("-Dbuildtype=debug", "g++", "gcc", ["-Dbuildtype=debug"], ["main_job"]),
    "lto": ("-Db_lto=true", "g++", "gcc", ["-Db_lto=true"], ["main_job", "installed", "cmake"]),
    "ndebug": ("-Db_ndebug=true", "g++", "gcc", ["-Db_ndebug=true"], ["main_job"]),
    "unity-off": ("-Dunity=off", "g++", "gcc", ["-Dunity=off"], ["main_job"]),
    "unity-large": ("-Dunity_size=1000: all sources of a target at once", "g++", "gcc", ["-Dunity_size=1000"], ["main_job"]),
    "both": ("--default-library=both", "g++", "gcc", ["--default-library=both"], ["main_job", "installed", "cmake"]),
    "dist": ("from what `meson dist` packs", "g++", "gcc", [], ["main_job"]),
    "libc++": ("-stdlib=libc++, without what links a C++ library of Debian: -Dhost=false -Dtools=false", "clang++", "clang",
               ["-Dcpp_args=-stdlib=libc++", "-Dcpp_link_args=-stdlib=libc++", "-Dhost=false", "-Dtools=false"], ["nodes"]),
    "subproject": ("a subproject of a project in another folder", "g++", "gcc", None, ["subproject"]),
    "installed": ("the defaults, installed, and a project in another folder that uses pkg-config", "g++", "gcc", [], ["installed"]),
    "cmake": ("the defaults, installed, and a project in another folder that uses CMake", "g++", "gcc", [], ["cmake"]),
    "musl": ("the library in C for firmware, in a static C program linked by musl-gcc", "g++", "musl-gcc", None, ["musl"]),
}
# Build -> programs that it needs besides the compilers.
NEEDED = {"lto": ["cmake", "help2man"], "both": ["cmake", "help2man"], "cmake": ["cmake", "help2man"]}


class Failed(Exception):
    pass


def run(log, folder, *words, **variables):
    """Runs the command; raises Failed with its first line that names an error, or its last."""
    done = subprocess.run(words, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL)
    with log.open("a") as out:
        out.write(f"$ {' '.join(map(str, words))}\n{done.stdout}")
    if done.returncode != 0:
        lines = done.stdout.splitlines() or ["no output"]
        raise Failed(next((line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)), lines[-1]))
    return done.stdout


def build(log, folder, sources, arguments, cxx, cc):
    run(log, sources, "meson", "setup", folder, "-Dtests=false", "-Dwerror=true", *arguments, CXX=cxx, CC=cc)
    run(log, folder, "ninja", "-C", folder)
    return folder


def defaults(log):
    """Returns the build of the defaults that other builds take the espalier command from."""
    folder = FOLDER / "defaults"
    if (folder / "build.ninja").exists():
        run(log, folder, "ninja", "-C", folder)
        return folder
    return build(log, folder, ROOT, [], "g++", "gcc")


def sum_over(log, espalier, providers, *more):
    """Eight processes sum over each of the providers."""
    schedule = log.parent / "sum.esp"
    run(log, log.parent, espalier, "compile", "--topology", "complete:8", "--collective", "allreduce", "--algorithm", "two-tree", "-o", schedule)
    run(log, log.parent, espalier, "verify", schedule)
    for provider in providers:
        run(log, log.parent, espalier, "run", schedule, "--provider", provider, "--bytes", "100000", "--op", "sum", "--type", "f32", *more)


def main_job(log, folder):
    sum_over(log, folder / "tools/espalier", ("tcp", "mem"))
    return "a sum over tcp and mem"


def nodes(log, folder):
    sum_over(log, defaults(log) / "tools/espalier", ("tcp", "mem"), "--start", f"0-7={folder / 'firmware/node/espalier-node'}")
    return "a sum over tcp and mem, by the command of the defaults and nodes of this build"


def example(log, script, *arguments):
    run(log, ROOT, ROOT / "examples" / script, ROOT, *arguments, log.parent / script)


def subproject(log, _):
    example(log, "build_subproject.sh")
    return "examples/subproject and the program in docs/using.md"


def installed(log, folder):
    example(log, "build_installed.sh", folder)
    return "examples/pkg-config"


def cmake(log, folder):
    example(log, "build_cmake.sh", folder)
    return "examples/cmake"


def musl(log, _):
    example(log, "build_musl.sh", defaults(log))
    return "four processes sum, and name one that is killed"


def build_one(name):
    _, cxx, cc, arguments, after = BUILDS[name]
    work = FOLDER / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log, sources, folder = work / "log", ROOT, work / "build"
    if name == "dist":
        run(log, ROOT, "meson", "setup", work / "first", "-Dtests=false", CXX=cxx, CC=cc)
        run(log, work, "meson", "dist", "-C", work / "first", "--no-tests", "--allow-dirty", "--formats", "gztar")
        packed = next((work / "first/meson-dist").glob("*.tar.gz"))
        (work / "unpacked").mkdir()
        run(log, work, "tar", "-xzf", packed, "-C", work / "unpacked")
        sources = next((work / "unpacked").iterdir())
    if arguments is not None:
        build(log, folder, sources, arguments, cxx, cc)
    return "; ".join(globals()[function](log, folder) for function in after)


def version_of(compiler):
    text = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return re.search(r"\d+\.\d+\.\d+", text)[0]


def compiler_of(name):
    """Returns the compiler and its version; for musl also the version of that library, which its loader prints."""
    _, cxx, cc, *_ = BUILDS[name]
    if name != "musl":
        return f"{cxx} {version_of(cxx)}"
    said = subprocess.run(["/lib/ld-musl-x86_64.so.1"], capture_output=True, text=True).stderr
    return f"{cxx} {version_of(cxx)}, {cc} of musl {re.search(r'Version ([0-9.]+)', said)[1]}"


def release():
    fields = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return fields.get("VERSION_ID", "unstable").strip('"')


def lacks(name):
    """Returns what this machine lacks for the build; empty: nothing."""
    _, cxx, cc, *_ = BUILDS[name]
    missing = [program for program in (cxx, cc, *NEEDED.get(name, [])) if shutil.which(program) is None]
    if missing:
        return f"no {', '.join(missing)}"
    if name == "libc++" and subprocess.run([cxx, "-stdlib=libc++", "-x", "c++", "-fsyntax-only", "-"], input="#include <vector>\n", text=True,
                                           capture_output=True).returncode != 0:
        return "no libc++-dev and libc++abi-dev"
    return ""


def within_sources(line):
    """Returns the line with paths from the folder of the sources: the page has none of this machine."""
    line = re.sub(rf"{re.escape(str(ROOT))}/(build-releases/builds/[^/]+/build/)?", "", line)
    return re.sub(r"(\.\./)+", "", line)


def main(names):
    if names == ["--list"]:
        for name, (text, cxx, *_) in BUILDS.items():
            print(f"{name}: {text} ({cxx})")
        return 0
    for name in names:
        if name not in BUILDS:
            print(f"builds.py: unknown build '{name}'; expected {', '.join(BUILDS)}, or --list", file=sys.stderr)
            return 2
        if lacks(name):
            print(f"builds.py: {name}: {lacks(name)} here", file=sys.stderr)
            return 2
    failed = False
    for name in names or BUILDS:
        if lacks(name):
            print(f"{name}: not built: {lacks(name)} here")
            continue
        text, *_ = BUILDS[name]
        row = {"date": datetime.date.today().isoformat(), "compiler": compiler_of(name), "Debian": release()}
        try:
            row |= {"built": True, "ran": build_one(name)}
            shutil.rmtree(FOLDER / name)
        except Failed as error:
            row |= {"built": False, "ran": within_sources(str(error))[:200]}
            failed = True
        rows = json.loads(RUNS.read_text()) if RUNS.exists() else {}
        rows[f"{name}, {row['compiler']}"] = row
        RUNS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
        print(f"{name} ({text}), {row['compiler']}: {row['ran']}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
