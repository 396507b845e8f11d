"""The public suites of suites.py: how each is built from its folder, and which of its programs are about collectives.

A function of SUITES takes the folder of sources, a new folder for what it builds, and the MPI library. It returns the programs, a list of
Program. Nothing is written into the folder of sources.
"""

import dataclasses
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys


@dataclasses.dataclass
class Program:
    """One command of a suite. `good`: a pattern that its output must have; `bad`: one that it must not have."""
    name: str
    command: list
    good: str = ""
    bad: str = ""
    env: dict = dataclasses.field(default_factory=dict)
    ranks: tuple = ()  # empty: any number


class Missing(Exception):
    """A folder lacks what a suite needs; the text says what."""


def run(command, folder, **more):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise Missing(f"{' '.join(map(str, command))}: status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def need(folder, name):
    if not (folder / name).exists():
        raise Missing(f"{folder} has no {name}")


# MPICH's tests need no configure: this is what theirs finds for C on Linux with 64 bits.
MPICH_CONFIGURATION = "".join(f"#define HAVE_{name} 1\n" for name in (
    "STDINT_H INTTYPES_H UNISTD_H SYS_TIME_H SYS_RESOURCE_H GETRUSAGE STDLIB_H STRING_H STDARG_H LONG_DOUBLE LONG_LONG MPI_WIN_CREATE PTHREAD_H "
    "FLOAT__COMPLEX DOUBLE__COMPLEX LONG_DOUBLE__COMPLEX _BOOL").split()) + (
    "#define SIZEOF_VOID_P 8\n#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX\n#define POINTERINT_t long\n")


def mpich(source, build, library):
    """test/mpi/coll: each program with each line of arguments of its list."""
    tests = source / "test" / "mpi"
    need(tests, "coll/testlist.in")
    (build / "mpitestconf.h").write_text(MPICH_CONFIGURATION)
    compiler = [f"mpicc.{library}", "-w", "-O1", f"-I{build}", f"-I{tests / 'include'}", f"-I{tests / 'dtpools/include'}"]
    utilities = []
    for name in ("mtest", "mtest_common", "mtest_thread"):
        utilities.append(build / f"{name}.o")
        run([*compiler, "-c", tests / "util" / f"{name}.c", "-o", utilities[-1]], build)
    flags = re.findall(r"^(\w+)_SOURCES\s*=\s*(\w+)\.c", (tests / "coll" / "Makefile.am").read_text(), re.M)
    sources = dict(flags)  # the non-blocking variants: another name of a source, with USE_MTEST_NBC
    programs, skipped = {}, set()
    for line in (tests / "coll" / "testlist.in").read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith(("#", "@", "!")):
            continue
        name = words[0]
        arguments = [word[4:] for word in words[2:] if word.startswith("arg=")]
        stem = sources.get(name, name)
        if not (tests / "coll" / f"{stem}.c").exists():
            continue
        executable = build / name
        if not executable.exists() and name not in skipped:
            more = ["-DUSE_MTEST_NBC"] if name in sources else []
            done = subprocess.run([*map(str, compiler), *more, str(tests / "coll" / f"{stem}.c"), *map(str, utilities), "-o", str(executable), "-lm",
                                   "-lpthread"], capture_output=True, text=True)
            if done.returncode != 0:
                skipped.add(name)
        if name not in skipped:
            title = " ".join([name, *arguments])
            programs[title] = Program(title, [executable, *arguments], good="No Errors", bad="Found [0-9]+ errors")
    if skipped:
        print(f"mpich under {library}: {len(skipped)} programs use functions that this library does not have: {' '.join(sorted(skipped))}", file=sys.stderr)
    return list(programs.values())


def mpi4py(source, build, library):
    """test_cco_*.py: each file with Python's runner of unit tests."""
    need(source, "setup.py")
    need(source, "test")
    if importlib.util.find_spec("Cython") is None:
        raise Missing(f"{sys.executable} has no Cython (package cython3)")
    copy = build / "mpi4py"
    shutil.copytree(source, copy, symlinks=True)
    run([sys.executable, "setup.py", "build", f"--mpicc={shutil.which(f'mpicc.{library}')}"], copy)
    (built,) = copy.glob("build/lib*")
    found = sorted((copy / "test").glob("test_cco_*.py"))
    if not found:
        raise Missing(f"{source / 'test'} has no test_cco_*.py")
    env = {"PYTHONPATH": f"{built}:{copy / 'test'}", "PYTHONDONTWRITEBYTECODE": "1"}
    return [Program(path.stem, [sys.executable, "-m", "unittest", "-q", path.stem], good=r"^OK", bad="^FAILED", env=env) for path in found]


IMB = {"MPI1": "Allreduce Reduce Reduce_local Reduce_scatter Reduce_scatter_block Allgather Allgatherv Scatter Scatterv Gather Gatherv Alltoall "
               "Alltoallv Bcast Barrier".split(),
       "NBC": "Ibcast Iallgather Iallgatherv Igather Igatherv Iscatter Iscatterv Ialltoall Ialltoallv Ireduce Ireduce_scatter Iallreduce "
              "Ibarrier".split()}


def imb(source, build, library):
    """IMB-MPI1 and IMB-NBC with their check of results, each collective for itself."""
    need(source, "src_cpp/Makefile")
    programs = []
    for target, names in IMB.items():
        copy = build / target
        shutil.copytree(source, copy)
        for makefile in copy.rglob("Makefile*"):
            makefile.write_text(makefile.read_text().replace("-Werror", "").replace("-O0", "-O1"))
        run(["make", "-C", copy / "src_cpp", f"TARGET={target}", f"CC=mpicc.{library}", f"CXX=mpicxx.{library}", "CPPFLAGS=-DCHECK"], build)
        executable = copy / "src_cpp" / f"IMB-{target}"
        programs += [Program(f"{target} {name}", [executable, name, "-npmin", "64", "-iter", "10", "-msglog", "0:16", "-time", "2"],
                             good="All processes entering MPI_Finalize", bad=r"ERROR|Error|defects? +[1-9]") for name in names]
    return programs


def osu(source, build, library):
    """The blocking, non-blocking and persistent collectives of version 7, with validation of results."""
    need(source, "configure")
    need(source, "c/mpi/collective/blocking")
    run([source / "configure", f"CC=mpicc.{library}", f"CXX=mpicxx.{library}"], build)
    subprocess.run(["make", "-k", "-C", "c/mpi/collective"], cwd=build, capture_output=True)  # persistent ones need MPI-4
    found = [path for kind in ("blocking", "non_blocking", "persistent") for path in sorted((build / "c/mpi/collective" / kind).glob("osu_*"))
             if path.is_file() and os.access(path, os.X_OK)]
    if not found:
        raise Missing(f"{source}: no program of c/mpi/collective was built")
    # In sums of its default type, MPI_CHAR, version 7.4 finds errors of its own.
    ints = ("-c", "-m", "4:65536", "-T", "mpi_int")
    arguments = {path: () if "barrier" in path.name else ints if "reduce" in path.name else ("-c", "-m", "1:65536") for path in found}
    return [Program(path.name, [path, "-i", "5", "-x", "1", *arguments[path]], bad="Fail|DATA|error") for path in found]


def scalapack(source, build, library):
    """The testers of BLACS, PBLAS and ScaLAPACK in double and double complex precision. The folder has the unpacked Debian packages
    scalapack-mpi-test, scalapack-test-common, libscalapack-openmpi2.2 and libscalapack-mpich2.2."""
    libraries = next(iter(source.glob("usr/lib/*/scalapack")), None)
    if libraries is None:
        raise Missing(f"{source} has no usr/lib/*/scalapack: unpack the four packages there with dpkg -x")
    data = source / "usr" / "share" / "scalapack"
    need(data, "LU.dat")
    env = {"LD_LIBRARY_PATH": str(libraries.parent)}
    if not list(libraries.parent.glob(f"libscalapack-{library}.so*")):
        raise Missing(f"{libraries.parent} has no libscalapack-{library}.so: unpack libscalapack-{library}2.2 there")
    testers = sorted(libraries.glob(f"{library}-tests/x[dz]*")) + sorted(libraries.glob(f"{library}-tests/x[CF]btest"))
    testers += sorted(libraries.glob(f"{library}-tests/PBLAS/[dz]*tst"))
    for each in (*data.glob("*.dat"), *data.glob("BLACS/*.dat"), *data.glob("PBLAS/*.dat")):
        shutil.copy(each, build)
    bad = r"[1-9][0-9]* tests completed and failed|[1-9][0-9]* tests? failed|\*{5} FAILED|ILLEGAL VALUE|Segmentation|[1-9][0-9]* (?:tests )?FAILED"
    return [Program(path.name, [path], bad=bad, env=env | {"FOLDER": str(build)}) for path in testers]


# Name -> function, what its folder is, and how a user gets it.
SUITES = {
    "mpich": (mpich, "MPICH's sources: apt-get source mpich"),
    "mpi4py": (mpi4py, "mpi4py's sources: apt-get source mpi4py, or tag 3.1.4 of its repository"),
    "imb": (imb, "Intel MPI Benchmarks: github.com/intel/mpi-benchmarks"),
    "osu": (osu, "OSU Micro-Benchmarks 7: mvapich.cse.ohio-state.edu"),
    "scalapack": (scalapack, "the unpacked Debian packages scalapack-mpi-test, scalapack-test-common, libscalapack-openmpi2.2, libscalapack-mpich2.2"),
}
