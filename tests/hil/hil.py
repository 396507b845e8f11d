#!/usr/bin/python3
"""Runs a test list on the devices of a rig, joined into one cluster, and compares every result and every node's log with
simulation, bit by bit.

hil.py RIG.textproto [--tests FILE] [--only WORDS] [--output DIR] [--list]
hil.py RIG.textproto [--output DIR] --page FILE     writes the rig's part of docs/results/hil.md once all cases have passed
hil.py RIG.textproto [--output DIR] --check FILE    compares that part with the cases that there are, and runs none

Exit status: 0 every case passed; 1 one failed; 2 bad input. docs/hil.md has the rest.
"""
import argparse
import base64
import collections
import contextlib
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
import coverage
import plan as plans
import rig as rigs
import verdict

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import processes  # noqa: E402

GRACE_S = 10  # from the request to end until SIGKILL
MARK = "hil"  # this file marks a folder that belongs to this program
CERTAIN = 30  # so many faults are expected: that there is none has a probability of e^-30
LEFT_S = 5  # from the end of a case until none of its processes may be left


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
        self.passed, self.failed, self.left_out = 0, [], 0
        self.faults = collections.Counter()  # of all cables
        self.reports, self.shown, self.excess = {}, {}, {}
        self.cable_process = None
        self.temporary = plan.sockets / "temporary"

    def call(self, words):
        """Runs a step of the preparation, which must succeed. Returns its output."""
        status, output, error = execute(words, self.rig.limit_s)
        if status is None:
            raise Broken(f"{plans.shlex.join(map(str, words))}: not done after {self.rig.limit_s:g} s")
        if status != 0:
            raise Broken(error.strip().splitlines()[-1] if error.strip() else f"{words[0]}: status {status}")
        return output

    def exceeds(self, board, words):
        """Builds an image. Returns the line by which the tool says that the board cannot hold it, or ""."""
        try:
            self.call(words)
        except Broken as broken:
            if f"board '{board}'" not in str(broken):
                raise
            return str(broken)
        return ""

    def prepare(self, cases):
        """Makes keys, schedules, simulations, images and flash. Returns the cases with the seats that they run on."""
        plan = self.plan
        for folder in ("schedules", "images", "simulated"):
            (plan.out / folder).mkdir()
        for key in (plan.key, plan.foreign_key):
            self.call(plan.keygen(key))
        if any(seat.kind == "wire" and "%b" in seat.how.start + seat.how.flash for seat in self.rig.seats):
            pem = pathlib.Path(plan.public()).read_text()
            pathlib.Path(plan.public_bytes()).write_bytes(base64.b64decode("".join(pem.split("-----")[2].split()))[-32:])
        for test in plan.tests.entry.test:
            self.call(plan.compile(test))
            self.call(plan.verify(test))
        for case in cases:
            if not case.simulated.exists():
                case.simulated.mkdir()
                told = self.call(plan.simulate(plan.tests.entry.test[case.test], case.message, case.simulated))
                self.reports[case.simulated] = json.loads(told)
        self.find_single()
        return [self.fit(case) for case in cases]

    def find_single(self):
        """If a board cannot hold the programs of the whole list, images have one program each."""
        plan = self.plan
        for seat in self.rig.kinds():
            if not seat.device.instead:
                continue
            image = plan.out / "images" / "whole" / "node-%r.img"
            image.parent.mkdir(exist_ok=True)
            why = self.exceeds(seat.board, plan.build_image(seat.device.board, None, image, plan.tests.entry.test))
            shutil.rmtree(image.parent)
            if why:
                plan.single = True
                self.say(f"images have one program each, because {seat.board} cannot hold all: {why.removeprefix('espalier: ')}")
                return

    def excess_of(self, case, rank, seat):
        """Returns why the board cannot hold the case's program; "" if it can."""
        if not self.plan.single:
            return ""
        key = seat.board, rank, case.test
        if key not in self.excess:
            image = self.plan.image(rank, seat.board, case.test)
            image.parent.mkdir(parents=True, exist_ok=True)
            tests = self.plan.image_tests(case.test)
            line = self.exceeds(seat.board, self.plan.build_image(seat.device.board, rank, image, tests))
            self.excess[key] = coverage.reason(line, seat.board)
        return self.excess[key]

    def shortage(self, case, rank, seat):
        """Returns what of the case the rooms of a board cannot hold; "" if they can."""
        test = self.plan.tests.entry.test[case.test]
        if test.collective == "barrier":
            return ""
        if case.test not in self.shown:
            self.shown[case.test] = json.loads(self.call(self.plan.show(test)))
        events = (case.simulated / f"node-{rank}.events").stat().st_size // coverage.EVENT_BYTES
        needed = coverage.needed_bytes(test, case.message, rank, self.shown[case.test], self.reports[case.simulated])
        return coverage.shortage(needed, events, seat.limits)

    def fit(self, case):
        """Puts stand-ins in the place of the boards that cannot hold the case."""
        seats, replaced = list(case.seats), []
        for rank, seat in enumerate(case.seats):
            if not seat.device.instead:
                continue
            why = self.excess_of(case, rank, seat) or self.shortage(case, rank, seat)
            if why:
                seats[rank] = self.rig.stand_in(seat)
                replaced.append((rank, seat, why))
        subjects = [case.victim] if case.victim is not None else case.refused[0] if case.refused else []
        left_out = "; ".join(f"{verdict.named(case, rank)}: {why}" for rank, _, why in replaced if rank in subjects)
        return dataclasses.replace(case, seats=seats, replaced=replaced, left_out=left_out)

    def install(self, case):
        """Makes the images and the flash of a case that no earlier case made."""
        plan, case = self.plan, dataclasses.replace(case, refused=None)
        for rank, seat in enumerate(case.seats):
            image, flash = plan.image(rank, seat.board, case.test), plan.flash(case, rank)
            if flash.exists():
                continue
            tests = plan.image_tests(case.test)
            if not image.exists():
                image.parent.mkdir(parents=True, exist_ok=True)
                if plan.tests.entry.spares:  # proofs of all spares take long: once for all ranks
                    self.call(plan.build_image(seat.device.board, None, image.with_name("node-%r.img"), tests))
                else:
                    self.call(plan.build_image(seat.device.board, rank, image, tests))
            flash.parent.mkdir(parents=True, exist_ok=True)
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
        good = dataclasses.replace(case, refused=None)
        for rank in range(len(case.seats)):
            shutil.copy(self.plan.flash(good, rank), case.folder)
        bad_image.make(self.plan, case, self.call)

    def peers(self, case):
        """Returns, by node, the nodes to which the links of its image lead."""
        found = []
        for rank, seat in enumerate(case.seats):
            shown = json.loads(self.call(self.plan.show_image(self.plan.image(rank, seat.board, case.test))))
            found.append([link["peer"] for link in shown["links"]])
        return found

    def judge(self, case):
        """Runs one case; returns (problems, remark)."""
        self.fill_folder(case)
        problems = self.bring_flash(case)
        if problems:
            return problems, ""
        words = self.plan.run(case) if case.loss is None else self.plan.lose(case, self.peers(case))
        with self.cables(case):
            status, output, error = execute(words, self.rig.limit_s, case.folder, "run")
            problems = self.left()
        if problems:
            return problems, ""
        if status is None:
            return [f"not done after {self.rig.limit_s:g} s: " + " ".join(error.strip().splitlines()[-1:])], ""
        if case.loss is not None:
            return verdict.lose(status, output, error)
        if verdict.is_refused_by_gateways(case):
            return verdict.foreign(case, status, error)
        if case.victim is None:
            problems = verdict.collective(case, status, output, error)
            remarks = [f"{verdict.named(case, rank)}: {rigs.REFUSALS[case.refused[1]]}"
                       for rank in (case.refused[0] if case.refused else [])]
            remarks += [f"{case.seats[rank].board} in place of {verdict.named_seat(seat, rank)}: {why}"
                        for rank, seat, why in case.replaced]
            return problems, "; ".join(remarks)
        deadline_s = self.rig.deadline_ms / 1000
        problems = verdict.kill(case, deadline_s, status, output, error)
        if problems:
            return problems, ""
        report, _ = verdict.read_report(output, error)
        (case.folder / "stalls").write_text("\n".join(verdict.failures(case, report)) + "\n")
        return [], (f"{verdict.named(case, case.victim)} killed, named by all within "
                    f"{verdict.last_to_end(report, case.victim):.1f} of {2 * deadline_s:g} s")

    @contextlib.contextmanager
    def cables(self, case):
        """While it lasts, the case's cables carry bytes. Then adds up what went wrong on them."""
        words = self.plan.cables(case)
        if not words:
            yield
            return
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        self.cable_process = process.pid
        try:
            if process.stdout.readline() != "ready\n":
                raise Broken("cable.py did not start")
            yield
        finally:
            told, _ = end(process)
        (case.folder / "cables").write_text(told)
        self.faults.update(json.loads(told))

    def processes_of_case(self):
        """Returns {process id: command} of the processes that a case has started."""
        own = (self.cable_process, os.getpid())
        return {number: processes.read(number, "cmdline").replace("\0", " ").strip()
                for number in processes.descendants(f"TMPDIR={self.temporary}") if number not in own}

    def left(self):
        """Returns a line per process or temporary file that a case has left behind. Ends such processes."""
        processes.wait_for(lambda: not self.processes_of_case(), LEFT_S)
        found = self.processes_of_case()
        for number in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        processes.wait_for(lambda: not self.processes_of_case())  # a killed process ends later
        files = sorted(path.name for path in self.temporary.iterdir())
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()
        return ([f"process {number} is left: {command}" for number, command in found.items()] +
                [f"{name} is left in TMPDIR" for name in files])

    def run(self, case):
        begin = time.monotonic()
        if case.left_out:
            self.left_out += 1
            self.say(f"left out {case.name}: {case.left_out}")
            return
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

    def run_all(self, cases, page=None):
        plan, begin = self.plan, time.monotonic()
        seats = ", ".join(f"{seat.name} ({seat.board})" for seat in self.rig.seats)
        ranks = cases[0].ranks
        routers = f" and {rigs.counted(self.rig.ranks - ranks, 'router')}" if ranks < self.rig.ranks else ""
        self.say(f"rig {self.rig.entry.name}: {rigs.counted(ranks, 'rank')}{routers}: {seats}")
        cases = self.prepare(cases)
        for case in cases:
            if not case.left_out:
                self.install(case)
        self.temporary.mkdir()
        os.environ["TMPDIR"] = str(self.temporary)  # of all that the cases start
        self.say(f"{rigs.counted(len(plan.tests.entry.test), 'schedule')} compiled, verified and simulated, "
                 f"{rigs.counted(len(list(plan.out.glob('images/**/*.img'))), 'image')} signed and installed, "
                 f"{time.monotonic() - begin:.1f} s")
        for case in cases:
            self.run(case)
        if self.faults:
            self.say("cables: {carried} bytes carried, {lost} lost, {repeated} repeated, {cuts} cuts".format(**self.faults))
        for fault in self.missing_faults():
            self.failed.append(fault)
            self.say(f"FAILED  the cables: none {fault}, so this run did not test that")
        self.say(f"rig {self.rig.entry.name}: {self.passed} passed, {len(self.failed)} failed, " +
                 (f"{self.left_out} left out, " if self.left_out else "") +
                 f"{time.monotonic() - begin:.0f} s; logs in {plan.out}")
        if page is not None and not self.failed:
            coverage.write(page, self.rig.entry.name, self.section(cases))
        return 1 if self.failed else 0

    def section(self, cases):
        """Returns the rig's part of the page; raises BadRig if a program does not run on a kind of board that can hold it."""
        return coverage.section(self.plan, cases)

    def check(self, cases, page):
        """Compares the rig's part of the page with the cases. Returns the exit status."""
        section = self.section(self.prepare(cases))
        same = coverage.part(page.read_text(), self.rig.entry.name) == section
        self.say(f"{page}: " + ("as the cases are" if same else f"its part '{self.rig.entry.name}' differs from\n{section}"))
        return 0 if same else 1

    def missing_faults(self):
        """Returns the kinds of fault that never occurred, though the cables carried so many bytes that they must have."""
        rates = [(fault, max([getattr(seat.how.cable, rate) for seat in self.rig.seats if seat.has_cable()], default=0))
                 for fault, rate in (("lost", "lose"), ("repeated", "repeat"), ("cuts", "cut"))]
        return [fault for fault, rate in rates if rate and self.faults["carried"] > CERTAIN * rate and not self.faults[fault]]


def check_topology(plan):
    """Checks that the rig has exactly one device per node of the list's topology. Returns the number of its ranks."""
    status, output, error = execute([plan.command, "topology", plan.tests.entry.topology, "--format", "json"],
                                    plan.rig.limit_s)
    if status != 0:
        raise rigs.BadRig(f"{plan.tests.path}: " + (error.strip().splitlines() or ["its topology cannot be read"])[-1])
    found = json.loads(output)
    nodes = len(found["nodes"])
    if nodes != len(plan.rig.seats):
        raise rigs.BadRig(f"{plan.tests.path}: {plan.tests.entry.topology} has {rigs.counted(nodes, 'node')}, and the devices of "
                          f"{plan.rig.path} are {len(plan.rig.seats)}; expected as many")
    links = {(link["from"], link["to"]) for link in found["links"]}
    for lose, ends in zip(plan.tests.entry.lose, plan.tests.losses):
        what = f"{plan.tests.path}: lose: {lose.what}"
        if len(ends) == 2 and not links & {tuple(ends), tuple(reversed(ends))}:
            raise rigs.BadRig(f"{what} is no link of {plan.tests.entry.topology}")
        if len(ends) == 1 and ends[0] >= found["ranks"]:
            raise rigs.BadRig(f"{what} is a router; expected a rank, for whose loss there are spares")
    return found["ranks"]


def make_output(path):
    """Makes an empty folder; empties one that an earlier run made."""
    try:
        if path.exists() and any(path.iterdir()):
            if not (path / MARK).exists():
                raise rigs.BadRig(f"{path} is not empty and not of an earlier run; expected another --output")
            shutil.rmtree(path)
        path.mkdir(parents=True, exist_ok=True)
        (path / MARK).touch()
    except OSError as error:
        raise rigs.BadRig(f"--output {path}: {error.strerror}") from None


def check_page(path, is_written):
    """Refuses a page that cannot be read, or written, before anything is started."""
    try:
        path.read_text()
        if is_written:
            path.open("a").close()
    except (OSError, ValueError) as error:
        raise rigs.BadRig(f"{path}: {getattr(error, 'strerror', error)}; expected docs/results/hil.md, or a copy") from None


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"hil: {printable(message)}; see hil.py --help\n")


def parse(arguments):
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rig", help="the rig's file")
    parser.add_argument("--tests", help="this test list instead of the rig's")
    parser.add_argument("--only", default="", help="only cases with this in their names, e.g. rotation-0/, kill/")
    parser.add_argument("--output", help="folder for all that is made and logged; default: build/hil/NAME")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="says which cases there are, and runs none")
    what.add_argument("--page", type=pathlib.Path, help="writes the rig's part of this page once all cases have passed")
    what.add_argument("--check", type=pathlib.Path, help="compares the rig's part of this page with the cases, and runs none")
    parser.add_argument("--espalier", default=os.environ.get("ESPALIER", rigs.ROOT / "build/tools/espalier"))
    parser.add_argument("--node", default=os.environ.get("ESPALIER_NODE", rigs.ROOT / "build/firmware/node/espalier-node"))
    parser.add_argument("--cluster", default=os.environ.get("ESPALIER_CLUSTER", rigs.ROOT / "build/tests/hil/spares-cluster"))
    options = parser.parse_args(arguments)
    if (options.page or options.check) and (options.tests or options.only):
        parser.error("--page and --check are for all cases of a rig; expected them without --tests and --only")
    if options.list and options.output:
        parser.error("--list writes no --output; expected one of them")
    return options


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
            for program in plan.programs() if not options.check else []:
                if not rigs.is_file(program):
                    raise rigs.BadRig(f"{options.rig}: there is no {program}; expected it to be built (docs/hil.md)")
            ranks = check_topology(plan)
            if options.page or options.check:
                check_page(options.page or options.check, options.page is not None)
            cases = [dataclasses.replace(case, ranks=ranks) for case in cases]
            make_output(out)
            runner = Runner(plan, lambda line: print(printable(line), flush=True))
            return runner.check(cases, options.check) if options.check else runner.run_all(cases, options.page)
    except (rigs.BadRig, Broken) as error:
        print(printable(f"hil: {error}"), file=sys.stderr)
        return 2


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
