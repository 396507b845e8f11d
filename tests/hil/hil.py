#!/usr/bin/python3
"""Runs a test list on the devices of a rig, joined into one cluster, and compares every result and every node's log with
simulation, bit by bit.

hil.py RIG.textproto [--tests FILE] [--only WORDS] [--output DIR] [--list]

Exit status: 0 every case passed; 1 one failed; 2 bad input. docs/hil.md has the rest.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bad_image
import plan as plans
import rig as rigs
import verdict

GRACE_S = 10  # from the request to end until SIGKILL
MARK = "hil"  # this file marks a folder that belongs to this program


class Broken(Exception):
    """The preparation failed; one line says why."""


def printable(line):
    """Returns the line with escapes for what could control a terminal: devices wrote parts of it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def end(process):
    """Ends the process and everything that it started; returns its output."""
    process.terminate()  # so that it can clean up
    try:
        return process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def execute(words, limit_s, folder=None, name="", shell=False):
    """Returns (status or None after limit_s, stdout, stderr); keeps NAME.out, NAME.err and NAME.sh in the folder."""
    words = words if shell else [str(word) for word in words]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                               errors="replace", cwd=rigs.ROOT, shell=shell, start_new_session=True)
    status = None
    try:
        output, error = process.communicate(timeout=limit_s)
        status = process.returncode
    except subprocess.TimeoutExpired:
        output, error = end(process)
    except BaseException:  # this program must end; the process has its own session and gets no signal
        end(process)
        raise
    if folder is not None:
        line = words if shell else plans.shlex.join(words)
        for kind, text in (("out", output), ("err", error), ("sh", line + "\n")):
            (folder / f"{name}.{kind}").write_text(text)
    return status, output, error


class Runner:
    def __init__(self, plan, say=print):
        self.plan, self.rig, self.say = plan, plan.rig, say
        self.passed, self.failed = 0, []

    def call(self, words):
        """Runs a step of the preparation, which must succeed. Returns its output."""
        status, output, error = execute(words, self.rig.limit_s)
        if status is None:
            raise Broken(f"{plans.shlex.join(map(str, words))}: not done after {self.rig.limit_s:g} s")
        if status != 0:
            raise Broken(error.strip().splitlines()[-1] if error.strip() else f"{words[0]}: status {status}")
        return output

    def prepare(self, cases):
        """Makes keys, schedules, images, flash and simulations."""
        plan = self.plan
        for folder in ("schedules", "images", "simulated"):
            (plan.out / folder).mkdir()
        for key in (plan.key, plan.foreign_key):
            self.call(plan.keygen(key))
        for test in plan.tests.entry.test:
            self.call(plan.compile(test))
            self.call(plan.verify(test))
        for case in cases:
            if not case.simulated.exists():
                case.simulated.mkdir()
                self.call(plan.simulate(plan.tests.entry.test[case.test], case.message, case.simulated))
        for case in {case.rotation: case for case in cases}.values():
            self.flash_rotation(case)

    def flash_rotation(self, case):
        plan = self.plan
        (plan.out / f"rotation-{case.rotation}").mkdir()
        for rank, seat in enumerate(case.seats):
            image = plan.image(rank, seat.board)
            if not image.exists():
                image.parent.mkdir(exist_ok=True)
                if plan.tests.entry.spares:  # proofs of all spares take long: once for all ranks
                    self.call(plan.build_image(seat.device.board, None, image.with_name("node-%r.img")))
                else:
                    self.call(plan.build_image(seat.device.board, rank, image))
            flash = plan.out / f"rotation-{case.rotation}" / f"node-{rank}.flash"
            self.call(plan.install(seat.device.board, rank, image, flash))

    def bring_flash(self, case):
        """Copies flash to the devices that do not read it from this host; returns problems."""
        for rank, seat in enumerate(case.seats):
            command = self.plan.bring(case, rank, seat)
            if command is None:
                continue
            status, _, error = execute(command, self.rig.limit_s, case.folder, f"flash-{seat.name}", shell=True)
            if status != 0:
                why = "took too long" if status is None else (error.strip().splitlines() or [f"status {status}"])[-1]
                return [f"{verdict.named(case, rank)} could not be flashed: {why}"]
        return []

    def fill_folder(self, case):
        """Makes the case's folder and, for a refusal, its own flash."""
        case.folder.mkdir(parents=True)
        if not case.refused:
            return
        for rank in range(len(case.seats)):
            shutil.copy(self.plan.out / f"rotation-{case.rotation}" / f"node-{rank}.flash", case.folder)
        bad_image.make(self.plan, case, self.call)

    def peers(self, case):
        """Returns, by node, the nodes to which the links of its image lead."""
        found = []
        for rank, seat in enumerate(case.seats):
            shown = json.loads(self.call(self.plan.show_image(self.plan.image(rank, seat.board))))
            found.append([link["peer"] for link in shown["links"]])
        return found

    def judge(self, case):
        """Runs one case; returns (problems, remark)."""
        self.fill_folder(case)
        problems = self.bring_flash(case)
        if problems:
            return problems, ""
        words = self.plan.run(case) if case.loss is None else self.plan.lose(case, self.peers(case))
        status, output, error = execute(words, self.rig.limit_s, case.folder, "run")
        if status is None:
            return [f"not done after {self.rig.limit_s:g} s: " + " ".join(error.strip().splitlines()[-1:])], ""
        if case.loss is not None:
            return verdict.lose(status, output, error)
        if case.victim is None:
            problems = verdict.collective(case, status, output, error)
            refused = f"{verdict.named(case, case.refused[0])}: {rigs.REFUSALS[case.refused[1]]}" if case.refused else ""
            return problems, refused
        deadline_s = self.rig.deadline_ms / 1000
        problems = verdict.kill(case, deadline_s, status, output, error)
        if problems:
            return problems, ""
        report, _ = verdict.read_report(output, error)
        (case.folder / "stalls").write_text("\n".join(verdict.failures(case, report)) + "\n")
        return [], (f"{verdict.named(case, case.victim)} killed, named by all within "
                    f"{verdict.last_to_end(report, case.victim):.1f} of {2 * deadline_s:g} s")

    def run(self, case):
        begin = time.monotonic()
        try:
            problems, remark = self.judge(case)
        except Broken as broken:
            problems, remark = [str(broken)], ""
        seconds = f"{time.monotonic() - begin:.1f} s"
        if not problems:
            self.passed += 1
            self.say(f"ok      {case.name}, {seconds}" + (f": {remark}" if remark else ""))
            if case.refused:
                for path in case.folder.glob("*.flash"):
                    path.unlink()
            return
        self.failed.append(case.name)
        (case.folder / "problems").write_text("\n".join(problems) + "\n")
        self.say(f"FAILED  {case.name}, {seconds}: {problems[0]}" +
                 (f" (and {len(problems) - 1} more in {case.folder / 'problems'})" if len(problems) > 1 else ""))

    def run_all(self, cases):
        plan, begin = self.plan, time.monotonic()
        seats = ", ".join(f"{seat.name} ({seat.board})" for seat in self.rig.seats)
        ranks = cases[0].ranks
        routers = f" and {self.rig.ranks - ranks} routers" if ranks < self.rig.ranks else ""
        self.say(f"rig {self.rig.entry.name}: {ranks} ranks{routers}: {seats}")
        self.prepare(cases)
        self.say(f"{len(plan.tests.entry.test)} schedules compiled, verified and simulated, "
                 f"{len(list(plan.out.glob('images/*/*.img')))} images signed and installed, "
                 f"{time.monotonic() - begin:.1f} s")
        for case in cases:
            self.run(case)
        self.say(f"rig {self.rig.entry.name}: {self.passed} passed, {len(self.failed)} failed, "
                 f"{time.monotonic() - begin:.0f} s; logs in {plan.out}")
        return 1 if self.failed else 0


def check_topology(plan):
    """Checks that the rig has exactly one device per node of the list's topology. Returns the number of its ranks."""
    status, output, error = execute([plan.command, "topology", plan.tests.entry.topology, "--format", "json"],
                                    plan.rig.limit_s)
    if status != 0:
        raise rigs.BadRig(f"{plan.tests.path}: " + (error.strip().splitlines() or ["its topology cannot be read"])[-1])
    found = json.loads(output)
    nodes = len(found["nodes"])
    if nodes != len(plan.rig.seats):
        raise rigs.BadRig(f"{plan.tests.path}: {plan.tests.entry.topology} has {nodes} nodes, and the devices of "
                          f"{plan.rig.path} are {len(plan.rig.seats)}; expected as many")
    return found["ranks"]


def make_output(path):
    """Makes an empty folder; empties one that an earlier run made."""
    if path.exists() and any(path.iterdir()):
        if not (path / MARK).exists():
            raise rigs.BadRig(f"{path} is not empty and not of an earlier run; expected another --output")
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)
    (path / MARK).touch()


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rig", help="the rig's file")
    parser.add_argument("--tests", help="this test list instead of the rig's")
    parser.add_argument("--only", default="", help="only cases with this in their names, e.g. rotation-0/, kill/")
    parser.add_argument("--output", help="folder for all that is made and logged; default: build/hil/NAME")
    parser.add_argument("--list", action="store_true", help="says which cases there are, and runs none")
    parser.add_argument("--espalier", default=os.environ.get("ESPALIER", rigs.ROOT / "build/tools/espalier"))
    parser.add_argument("--node", default=os.environ.get("ESPALIER_NODE", rigs.ROOT / "build/firmware/node/espalier-node"))
    parser.add_argument("--cluster", default=os.environ.get("ESPALIER_CLUSTER", rigs.ROOT / "build/tests/hil/spares-cluster"))
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        rig = rigs.Rig(options.rig)
        tests = rigs.Tests(options.tests or rig.tests)
        out = pathlib.Path(options.output or rigs.ROOT / "build/hil" / rig.entry.name).absolute()
        with tempfile.TemporaryDirectory(prefix="hil-") as sockets:
            plan = plans.Plan(rig, tests, out, options.espalier, options.node, sockets, options.cluster)
            cases = [case for case in plan.cases() if options.only in case.name]
            if not cases:
                raise rigs.BadRig(f"no case has '{options.only}' in its name; --list names them")
            if options.list:
                print(*(case.name for case in cases), sep="\n")
                return 0
            for program in plan.programs():
                if not rigs.is_file(program):
                    raise rigs.BadRig(f"{options.rig}: there is no {program}; expected it to be built (docs/hil.md)")
            ranks = check_topology(plan)
            cases = [dataclasses.replace(case, ranks=ranks) for case in cases]
            make_output(out)
            return Runner(plan, lambda line: print(printable(line), flush=True)).run_all(cases)
    except (rigs.BadRig, Broken) as error:
        print(printable(f"hil: {error}"), file=sys.stderr)
        return 2


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
