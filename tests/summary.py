#!/usr/bin/python3
"""Counts what `meson test` ran, from its logs.

summary.py BUILD... [--skipped REASONS]
                                   prints skips, failures and, as the last line, the totals; exit 1 on any failure.
                                   REASONS: why whole suites were not run, one per line; each counts as a skip
summary.py --names BUILD FOLDER... prints the names of the tests whose programs were built from these folders
summary.py --tests BUILD NAME...   prints these names; exit 1 if the build has no test of that name
summary.py --units BUILD           prints the names of the unit tests: GoogleTest programs from the folders of the code that they
                                   test and from tests/algorithms, without the slow ones (SLOW)
summary.py --generated BUILD       prints the headers that the build makes
summary.py --share BUILD           prints how many of the build's tests the last run ran, if not all
"""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Tests whose output is a result for people to read.
SHOWN = {"rig", "footprint"}
# Of a program that failed, as many lines are shown in the summary.
LAST_LINES = 40
# `./test.sh quick` omits these unit tests: back ends between processes, which depend on the clock.
SLOW = {"gateway-bridge", "ofi-conformance", "ofi-processes", "serial-conformance", "serial-conformance-keyed"}


def introspect(build, what):
    return json.loads((build / f"meson-info/intro-{what}.json").read_text())


def build_root(build):
    return json.loads((build / "meson-info/meson-info.json").read_text())["directories"]["build"]


def units(build, _):
    others = tuple(f"{build_root(build)}/{folder}/" for folder in ("tests", "examples"))
    generators = f"{build_root(build)}/tests/algorithms/"
    found = {test["name"] for test in introspect(build, "tests") if test["protocol"] == "gtest" and
             (test["cmd"][0].startswith(generators) or not test["cmd"][0].startswith(others))}
    if SLOW - found:
        sys.exit(f"summary.py: {build} has no test {' '.join(sorted(SLOW - found))}, which SLOW names")
    return sorted(found - SLOW)


def generated(build, _):
    root = build_root(build)
    return [name.removeprefix(root + "/") for target in introspect(build, "targets") if target["type"] == "custom"
            for name in target["filename"] if name.endswith(".h")]


def share(build):
    run, listed = len(read_runs(build)), len(introspect(build, "tests"))
    return "" if run == listed else f": {run} of its {listed} tests"


def names(build, folders):
    tests = introspect(build, "tests")
    inside = tuple(f"{build_root(build)}/{folder}/" for folder in folders)
    found = [test["name"] for test in tests if test["cmd"][0].startswith(inside)]
    if not found:
        sys.exit(f"summary.py: {build} has no test from {' '.join(folders)}")
    return found


def read_cases(build):
    """Returns test name -> [(case, state, message)] of the GoogleTest programs."""
    found = {}
    log = build / "meson-logs/testlog.junit.xml"
    # Meson copies a test's output as it is: XML has no place for the colours of a compiler.
    suites = xml.fromstring(NOT_XML.sub("", log.read_text())).iter("testsuite") if log.exists() else []
    for suite in suites:
        program = suite.get("name").split(".")
        # The project, the test (in Meson 1.12 the project again, and the test), and the program's own name of the suite.
        if len(program) < 3:
            continue  # meson's own list of programs that only have an exit status
        for case in suite.iter("testcase"):
            bad = [child for child in case if child.tag in ("failure", "error")]
            skipped = [child for child in case if child.tag == "skipped"]
            state = "failed" if bad else "skipped" if skipped else "passed"
            text = next((child.get("message") or child.text or "" for child in bad + skipped), "")
            found.setdefault(program[1].split(":")[-1], []).append(
                (f"{case.get('classname')}.{case.get('name')}", state, " ".join(text.split())))
    return found


def judge(run, name, gtest):
    """Returns the cases of one program that ran: [(name, state, message)]."""
    ended_well = run["result"] in ("OK", "EXPECTEDFAIL")
    if name in gtest:
        cases = gtest[name]
        if not ended_well and all(state != "failed" for _, state, _ in cases):
            cases = cases + [(name, "failed", run["result"])]  # it crashed
        return cases
    lines = (run.get("stdout") or "").strip().splitlines()
    if run["result"] == "SKIP":
        return [(name, "skipped", lines[-1] if lines else "no reason given")]
    return [(name, "passed" if ended_well else "failed", run["result"])]


def read_runs(build):
    log = build / "meson-logs/testlog.json"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def print_end(run):
    """Prints the exit status of a program without cases, and the end of what it printed: a sample's seed is there."""
    print(f"  exit status {run.get('returncode')}")
    for stream in ("stdout", "stderr"):
        for line in (run.get(stream) or "").strip().splitlines()[-LAST_LINES:]:
            print(f"  {stream}: {line}")


def count(build, total):
    runs = read_runs(build)
    if not runs:
        print(f"failed: {build}: no test ran")
        total["failed"] += 1
    gtest = read_cases(build)
    for run in runs:
        name = run["name"].split(" / ")[-1].split(":")[-1]
        if name in SHOWN:
            print((run.get("stdout") or "").strip())
        for case, state, message in judge(run, name, gtest):
            total[state] += 1
            if state != "passed":
                print(f"{state}: {build}: {name}: {case}: {message}")
            if state == "failed" and message == run["result"]:
                print_end(run)


def named(build, wanted):
    unknown = set(wanted) - {test["name"] for test in introspect(build, "tests")}
    if unknown:
        sys.exit(f"summary.py: {build} has no test {' '.join(sorted(unknown))}")
    return wanted


def main(arguments):
    lists = {"--names": names, "--tests": named, "--units": units, "--generated": generated}
    if arguments[:1] and arguments[0] in lists:
        print("\n".join(lists[arguments[0]](pathlib.Path(arguments[1]), arguments[2:])))
        return 0
    if arguments[:1] == ["--share"]:
        print(share(pathlib.Path(arguments[1])))
        return 0
    total = {"passed": 0, "failed": 0, "skipped": 0}
    if arguments[-2:-1] == ["--skipped"]:
        reasons = arguments.pop().splitlines()
        arguments.pop()
        total["skipped"] += len(reasons)
        for reason in reasons:
            print(f"skipped: {reason}")
    for build in arguments:
        count(pathlib.Path(build), total)
    line = f"{total['passed']} passed, {total['failed']} failed"
    print(line + (f", {total['skipped']} skipped" if total["skipped"] else ""))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
