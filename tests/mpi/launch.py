"""Starts MPI programs for the tests of the bridges, with a library in front or without.

LIBRARY: openmpi or mpich, for programs compiled for it; or abi-openmpi=FOLDERS or abi-mpich=FOLDERS, for programs of the standard's ABI over
that library, which is in one of the FOLDERS (between colons).
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.hydra"}
# What the launchers print before their version.
BEFORE_VERSIONS = {"openmpi": r"^mpirun\S* \([^)]*\) ", "mpich": r"^ *Version: +"}
# How MPI_Get_library_version() begins.
VERSIONS = {"openmpi": "Open MPI", "mpich": "MPICH"}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def version_of(path):
    """Returns what the MPI library at `path` says of itself. A library that cannot be loaded has no version."""
    script = ("import ctypes, sys\ntext = ctypes.create_string_buffer(1 << 16)\nlength = ctypes.c_int()\n"
              "ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))\nprint(text.value.decode())")
    return subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True).stdout.strip()


def find_abi_library(name, folders):
    """Returns (path, version) of that MPI library's libmpi_abi.so."""
    for folder in folders:
        for path in sorted(pathlib.Path(folder).glob("libmpi_abi*.so*")):
            version = version_of(path) if path.exists() else ""
            if version.startswith(VERSIONS[name]):
                return path.resolve(), version.splitlines()[0]
    skip(f"no libmpi_abi.so of {VERSIONS[name]} in {', '.join(folders)}")


class Library:
    """`name`: openmpi or mpich. `label`: for messages. `is_abi`: for programs of the standard's ABI. `kind`: in the name of the bridge's file.
    `env`: variables that its programs need."""

    def __init__(self, text):
        kind, _, folders = text.partition("=")
        self.is_abi = kind.startswith("abi-")
        self.name = kind.removeprefix("abi-")
        self.label = kind
        self.kind = "abi" if self.is_abi else self.name
        if not shutil.which(LAUNCHERS[self.name]):
            skip(f"{LAUNCHERS[self.name]} is not installed")
        self.env = {}
        if self.is_abi:
            path, version = find_abi_library(self.name, folders.split(":"))
            # Both libraries have the same name for programs: with both installed, the system's link leads to one of them.
            self.links = tempfile.TemporaryDirectory()
            pathlib.Path(self.links.name, "libmpi_abi.so.1").symlink_to(path)
            self.env["LD_LIBRARY_PATH"] = self.links.name
            print(f"{kind}: {path}, {version}")

    def title(self):
        """Returns the library's name for people, with its version."""
        text = subprocess.run([LAUNCHERS[self.name], "--version"], capture_output=True, text=True).stdout
        version = re.search(BEFORE_VERSIONS[self.name] + r"(\S+)", text, re.M)
        return f"{VERSIONS[self.name]} {version[1]}" + (", standard ABI" if self.is_abi else "")

    def run(self, bridge, ranks, command, env=None, **more):
        """Runs `command` on so many ranks, with `bridge` in front unless it is empty. Returns the completed process."""
        env = env or {}
        whole = {key: value for key, value in os.environ.items() if not key.startswith(("PMI", "OMPI", "SLURM"))}
        whole |= {"IPATH_NO_BACKTRACE": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                  "OMPI_MCA_mpi_yield_when_idle": "1"}
        launcher = [shutil.which(LAUNCHERS[self.name]), "-n", str(ranks)]
        if self.name == "openmpi":
            launcher += ["--oversubscribe"]
            for key in (env | self.env):
                launcher += ["-x", key]
            launcher += ["-x", f"LD_PRELOAD={bridge}"] if bridge else []
        elif bridge:
            launcher += ["-genv", "LD_PRELOAD", bridge]
        return subprocess.run([*launcher, *command], env=whole | env | self.env, capture_output=True, text=True, **more)
