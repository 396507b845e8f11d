#!/usr/bin/env python3
"""The programs in examples/, built against the installed library, under every launcher.

programs_test.py SOURCES BUILD FOLDER [ESPALIER [LINKS]]
Installs BUILD below FOLDER, builds each example there, and runs each with four processes: started by the environment, by mpirun of
Open MPI, mpiexec of MPICH, srun, and `espalier launch` on this host and over four network namespaces. What is not installed is
skipped with its reason. The output must be the same under all launchers. READMEs say how many lines each program has. LINKS is
`optimize` if a link optimizes what the library carries for it: then it must.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

from launchers import AS_ROOT, environment, run_by_hand, start_hosts, start_slurm

RANKS = 4
# Folder, program, arguments, words of the output, and the largest number of source lines where there is a limit.
PROGRAMS = [
    ("first", "first", [], "rank 3 of 4: sum 10"),
    ("four", "four", [], "rank 3 of 4: sum 10, data 42: right"),
    ("four", "four-c", [], "rank 3 of 4: sum 10, data 42: right"),
    ("poisson", "poisson", ["64"], "on 2 x 2 processes, largest error"),
    ("statistics", "statistics", ["1000000"], "as one process finds"),
    ("distribute", "distribute", ["FILE", "COPIES"], "on 4 of 4 ranks"),
    ("sort", "sort", ["20000"], "80000 numbers on 4 ranks"),
]
LIMITS = {"first.cc": 14, "four.cc": 35, "four.c": 45}


def fail(text):
    sys.exit(f"programs_test.py: {text}")


def quietly(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        fail(f"{command} ends with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def check_lines(sources):
    """Each README says how many lines the folder's programs have, and the programs keep to the limits."""
    for folder in sorted({name for name, *_ in PROGRAMS}):
        readme = " ".join((sources / "examples" / folder / "README.md").read_text().split())
        for source in sorted((sources / "examples" / folder).glob("*.c*")):
            lines = len(source.read_text().splitlines())
            said = re.search(rf"\[{re.escape(source.name)}\]\({re.escape(source.name)}\) has (\d+) lines", readme)
            if not said or int(said[1]) != lines:
                fail(f"{source} has {lines} lines; examples/{folder}/README.md says {said[1] if said else 'nothing'}")
            if lines > LIMITS.get(source.name, lines):
                fail(f"{source} has {lines} lines, at most {LIMITS[source.name]} are allowed")
            print(f"examples/{folder}/{source.name}: {lines} lines")
        if not (sources / "examples/README.md").read_text().count(f"]({folder})"):
            fail(f"examples/README.md does not list {folder}")


def build(sources, build_folder, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    quietly(["meson", "install", "-C", build_folder, "--no-rebuild"], env=environment(DESTDIR=str(folder / "root")))
    configs = list((folder / "root").rglob("espalier-communicator.pc"))
    if not configs:
        fail("espalier-communicator.pc is not installed")
    env = environment(PKG_CONFIG_PATH=str(configs[0].parent))
    for name in sorted({name for name, *_ in PROGRAMS}):
        shutil.copytree(sources / "examples" / name, folder / "source" / name)
        # A link that optimizes takes longest, so only the smallest program has it.
        env["LDFLAGS"] = "" if name == "four" else "-fno-lto"
        quietly(["meson", "setup", folder / "build" / name, folder / "source" / name], env=env)
        quietly(["ninja", "-C", folder / "build" / name], env=env)
    return configs[0].parent.parent  # of the shared library


def check_links(links, programs):
    """A link that optimizes makes most functions of a short call part of others; one with -fno-lto keeps them."""
    if links != "optimize":
        print("the optimization at link time: skipped, this build has none")
        return
    optimized, kept = (machine_functions(programs / name / name) for name in ("four", "sort"))
    print(f"functions of the machine: {optimized} in four, {kept} in sort")
    if optimized > kept * 2 / 3:
        fail(f"the link of four left {optimized} functions of the machine, that of sort with -fno-lto {kept}; expected at most two thirds")


def machine_functions(program):
    return len(re.findall(r" espalier::(?:build_machine_[0-9_]+::)?Machine::", quietly(["nm", "-C", "--defined-only", program])))


def by_environment(command, libraries):
    statuses, outs, errors = zip(*run_by_hand(command, RANKS, LD_LIBRARY_PATH=libraries))
    return max(statuses), "".join(outs), "".join(errors)


def by_launcher(launcher, command, libraries, more=None):
    env = environment(LD_LIBRARY_PATH=libraries, **AS_ROOT, **(more or {}))
    done = subprocess.run([*launcher, *command], env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def launchers(espalier, ends):
    """Yields (name, function that runs a command) and prints what is skipped."""
    yield "environment", by_environment
    for name, words in (("mpirun.openmpi", ["--oversubscribe", "-n", str(RANKS)]), ("mpiexec.hydra", ["-n", str(RANKS)])):
        path = shutil.which(name)
        if path:
            yield name, lambda command, libraries, start=(path, *words): by_launcher(start, command, libraries)
        else:
            print(f"{name}: skipped, it is not installed")
    slurm, reason = start_slurm(ends)
    if slurm:
        yield "srun", lambda command, libraries: by_launcher(("srun", "-O", f"--mpi={slurm.kinds()[0]}", "-n", str(RANKS)), command, libraries,
                                                             {"SLURM_CONF": slurm.conf})
    else:
        print(f"srun: skipped, {reason}")
    if not espalier:
        print("espalier launch: skipped, this build has no such command")
        return
    yield "espalier launch", lambda command, libraries: by_launcher((espalier, "launch", "-n", str(RANKS), "--"), command, libraries)
    on_first, hosts, reason = start_hosts(ends, RANKS)
    if reason:
        print(f"espalier launch over hosts: skipped, {reason}")
        return
    start = (*on_first, espalier, "launch", "-n", str(RANKS), *hosts, "--env", "LD_LIBRARY_PATH", "--")
    yield "espalier launch over hosts", lambda command, libraries: by_launcher(start, command, libraries)


def main(*arguments):
    with contextlib.ExitStack() as ends:
        run_all(ends, *arguments)


def run_all(ends, sources, build_folder, folder, espalier=None, links=""):
    sources, folder = pathlib.Path(sources).resolve(), pathlib.Path(folder).resolve()
    check_lines(sources)
    libraries = str(build(sources, build_folder, folder))
    check_links(links, folder / "build")
    file = folder / "firmware"
    file.write_bytes(os.urandom(1 << 20) + b"end")
    runs = list(launchers(espalier and os.path.abspath(espalier), ends))
    for name, program, arguments, words in PROGRAMS:
        outputs = {}
        for launcher, run in runs:
            copies = folder / "copies"
            shutil.rmtree(copies, ignore_errors=True)
            copies.mkdir()
            values = {"FILE": str(file), "COPIES": str(copies)}
            command = [str(folder / "build" / name / program), *(values.get(argument, argument) for argument in arguments)]
            status, output, errors = run(command, libraries)
            if status != 0 or words not in output:
                fail(f"{program} under {launcher}: status {status}, expected 0 and '{words}':\n{output}{errors}")
            if "COPIES" in arguments:
                for rank in range(RANKS):
                    if (copies / str(rank)).read_bytes() != file.read_bytes():
                        fail(f"{program} under {launcher}: the copy of rank {rank} differs")
            # `espalier launch` prefixes lines.
            outputs[launcher] = sorted(re.sub(r"^\[?\d+[\]:] ?", "", line) if launcher.startswith("espalier launch") else line
                                       for line in output.splitlines())
        for launcher, lines in outputs.items():
            if lines != outputs["environment"]:
                fail(f"{program} prints something else under {launcher} than by the environment:\n" + "\n".join(lines) +
                     "\nexpected\n" + "\n".join(outputs["environment"]))
        print(f"{program}: the same {len(outputs['environment'])} lines under {', '.join(outputs)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
