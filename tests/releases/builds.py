#!/usr/bin/python3
"""Builds Espalier in every way that docs/results/releases.md names, and runs the main job with what came of it.

builds.py [NAME...]   builds these, by default all whose tools are here, in build-releases/builds/NAME; keeps what came of it in
                      tests/releases/builds.json, a row for each name and compiler; exit status 1 if one failed
builds.py --list      prints names and what each is

Warnings are errors in all of them. Takes some minutes each. page.py --write then writes the page.
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
# Name -> what it is, compiler of C++, compiler of C, arguments of meson setup.
BUILDS = {
    "g++": ("the defaults", "g++", "gcc", []),
    "clang++": ("the defaults", "clang++", "clang", []),
    "debug": ("-Dbuildtype=debug", "g++", "gcc", ["-Dbuildtype=debug"]),
    "lto": ("-Db_lto=true", "g++", "gcc", ["-Db_lto=true"]),
    "ndebug": ("-Db_ndebug=true", "g++", "gcc", ["-Db_ndebug=true"]),
    "unity-off": ("-Dunity=off", "g++", "gcc", ["-Dunity=off"]),
    "unity-large": ("-Dunity_size=1000: all sources of a target at once", "g++", "gcc", ["-Dunity_size=1000"]),
    "both": ("--default-library=both", "g++", "gcc", ["--default-library=both"]),
    "dist": ("from what `meson dist` packs", "g++", "gcc", []),
    "libc++": ("the node libraries with libc++", "clang++", "clang",
               ["-Dcpp_args=-stdlib=libc++", "-Dcpp_link_args=-stdlib=libc++", "-Dhost=false", "-Dtools=false", "-Dofi=false"]),
}


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


def main_job(log, build, work):
    """A broadcast and a sum over eight processes and tcp, then over mem."""
    espalier = build / "tools/espalier"
    schedule = work / "sum.esp"
    run(log, work, espalier, "compile", "--topology", "complete:8", "--collective", "allreduce", "--algorithm", "two-tree", "-o", schedule)
    run(log, work, espalier, "verify", schedule)
    for provider in ("tcp", "mem"):
        run(log, work, espalier, "run", schedule, "--provider", provider, "--bytes", "100000", "--op", "sum", "--type", "f32")
    return "sum over tcp and mem"


def build_one(name):
    _, cxx, cc, arguments = BUILDS[name]
    work = FOLDER / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log, sources, build = work / "log", ROOT, work / "build"
    compilers = {"CXX": cxx, "CC": cc}
    if name == "dist":
        run(log, ROOT, "meson", "setup", work / "first", "-Dtests=false", **compilers)
        run(log, work, "meson", "dist", "-C", work / "first", "--no-tests", "--formats", "gztar")
        packed = next((work / "first/meson-dist").glob("*.tar.gz"))
        shutil.unpack_archive(packed, work / "unpacked", filter="data")
        sources = next((work / "unpacked").iterdir())
    run(log, sources, "meson", "setup", build, "-Dtests=false", "-Dwerror=true", *arguments, **compilers)
    run(log, work, "ninja", "-C", build)
    return main_job(log, build, work) if (build / "tools/espalier").exists() else "built only"


def version_of(compiler):
    text = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return re.search(r"\d+\.\d+\.\d+", text)[0]


def release():
    fields = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return fields.get("VERSION_ID", "unstable").strip('"')


def lacks(name):
    """Returns what this machine lacks for the build; empty: nothing."""
    cxx = BUILDS[name][1]
    if shutil.which(cxx) is None:
        return f"no {cxx}"
    if name == "libc++" and subprocess.run([cxx, "-stdlib=libc++", "-x", "c++", "-fsyntax-only", "-"], input="#include <vector>\n", text=True,
                                           capture_output=True).returncode != 0:
        return "no libc++-dev"
    return ""


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
        text, cxx, *_ = BUILDS[name]
        row = {"date": datetime.date.today().isoformat(), "compiler": f"{cxx} {version_of(cxx)}", "Debian": release()}
        try:
            row |= {"built": True, "ran": build_one(name)}
            shutil.rmtree(FOLDER / name)
        except Failed as error:
            row |= {"built": False, "ran": str(error)[:200]}
            failed = True
        rows = json.loads(RUNS.read_text()) if RUNS.exists() else {}
        rows[f"{name}, {row['compiler']}"] = row
        RUNS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
        print(f"{name} ({text}), {row['compiler']}: {row['ran']}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
