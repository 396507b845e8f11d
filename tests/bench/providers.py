#!/usr/bin/python3
"""Which providers pass the conformance suite: docs/results/providers.md.

providers.py --write BUILD FOLDER [NAME...]  runs the suite over each provider that serves here, or only over these and keeps the counts that the
                                         page has of the others; writes this libfabric's table of FOLDER/providers.md; exit status 1 if a test fails
providers.py --check COMMAND NODE PAGE   compares the page's providers, versions and reasons with what `espalier doctor` finds here

The number of tests that passed is not compared: the test ofi-conformance runs them. A version of libfabric or a processor
without a table has other providers, so there the comparison is skipped (exit status 77). Whether a device is there depends on the
machine: a difference in a provider of devices is printed only.
"""
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

SKIPPED = 77
WITHOUT_DEVICE = {"tcp", "net", "shm", "udp", "sockets", "mem"}
HEAD = """# Providers

Written by `tests/bench/providers.py --write build docs/results`, which replaces the table of the libfabric that it finds. A test compares the
providers, versions and reasons of this table with those of the machine.

`mem` is Espalier's own; all others are libfabric's. `espalier doctor` gives versions, offers and reasons. The conformance
suite (`hal/conformance`) holds the endpoint over a provider to its contract (`include/espalier/hal/endpoint.h`). It runs with links
that the fabric routes; over `tcp` and `mem` also hop by hop, with links added later and with a job secret. A provider that serves by two names is tested by one.
`mem` counts the tests of `mem+tcp`, too. Providers of devices that the machine does not have (such as `verbs` and `efa`) have not been tried.
"""
SECTION = """
## libfabric {libfabric} on {machine}

| provider | version | serves | conformance tests passed | offers, or why it cannot serve |
| --- | --- | --- | --- | --- |
{rows}
"""
HEADING = re.compile(r"^## libfabric (\S+) on (\S+)$", re.MULTILINE)


def sections(text):
    """The rows of each table, as lines, by (libfabric, machine)."""
    parts = HEADING.split(text)
    return {(parts[i], parts[i + 1]): [line for line in parts[i + 2].splitlines() if line.startswith("| `")] for i in range(1, len(parts), 3)}


def doctor(command, node):
    """The report, of all providers: FI_PROVIDER would hide some. Exit status 1 says that none serves."""
    clean = {name: value for name, value in os.environ.items() if name != "FI_PROVIDER"}
    done = subprocess.run([command, "doctor", "--node-binary", node, "--format", "json"], capture_output=True, text=True, env=clean)
    if not done.stdout:
        sys.exit(f"providers.py: exit status {done.returncode}: espalier doctor\n{done.stderr}")
    return json.loads(done.stdout)


def facts(provider):
    """The columns that are compared: provider, version, serves, offers or reason."""
    serves = "no" if not provider["serves"] else "yes" if provider["served_by"] == provider["provider"] else f"as `{provider['served_by']}`"
    return f"`{provider['provider']}`", provider["version"], serves, provider["offers"] if provider["serves"] else provider["problem"]


def tests_by_provider(suite, names):
    """The full names of the suite's tests, by the provider that they run over."""
    listed = subprocess.run([suite, "--gtest_filter=Ofi/*", "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    tests, case = {}, ""
    for line in listed.splitlines():
        if not line.startswith(" "):
            case = line.strip()
            continue
        test = line.split("#")[0].strip()
        back_end = test.split("/")[-1]
        of = [name for name in names if re.fullmatch(re.escape(name.replace(";", "_")) + "(_(hop|added|closed).*)?", back_end)
              or name == "mem" and back_end.startswith("mem_tcp_")]  # mem+tcp
        if len(of) != 1:
            sys.exit(f"providers.py: {case}{test} runs over {of or 'no provider that serves'}")
        tests.setdefault(of[0], []).append(case + test)
    return tests


def passed(suite, tests):
    done = subprocess.run([suite, "--gtest_filter=" + ":".join(tests)], capture_output=True, text=True,
                          env={**os.environ, "IPATH_NO_BACKTRACE": "1"})
    found = re.search(r"\[  PASSED  \] (\d+) test", done.stdout)
    count = int(found[1]) if found else 0
    if done.returncode != 0 or count != len(tests):
        print(f"{done.stdout}{done.stderr}", file=sys.stderr)
    return count


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def write(build, folder, only):
    page = folder / "providers.md"
    suite = str(build / "hal/fabric/ofi-test")
    report = doctor(build / "tools/espalier", build / "firmware/node/espalier-node")
    here = (report["libfabric"], platform.machine())
    tables = sections(page.read_text(encoding="utf-8"))
    kept = {row[0].strip("`"): row[3] for row in map(cells, tables.get(here, []))} if only else {}
    served = {provider["provider"]: provider["served_by"] for provider in report["providers"] if provider["serves"]}
    tests = tests_by_provider(suite, served)
    rows, failed = [], False
    for provider in report["providers"]:
        name, *rest, words = facts(provider)
        own = tests.get(provider["provider"])
        by = [other for other in tests if served[other] == provider["provider"]]
        counted = "–"
        if own and only and provider["provider"] not in only:
            counted = kept.get(provider["provider"], "not run")
        elif own:
            count = passed(suite, own)
            failed = failed or count != len(own)
            counted = f"{count} of {len(own)}"
        elif provider["serves"]:
            counted = f"by the name `{by[0]}`" if by else "not tried"
        rows.append("| " + " | ".join([name, *rest, counted, words]) + " |")
        print(rows[-1], flush=True)
    tables[here] = rows
    by_version = sorted(tables, key=lambda key: ([int(number) for number in re.findall(r"\d+", key[0])], key[1]))
    page.write_text(HEAD + "".join(SECTION.format(libfabric=key[0], machine=key[1], rows="\n".join(tables[key])) for key in by_version),
                    encoding="utf-8")
    sys.exit(1 if failed else 0)


def without_device(name):
    return name.strip("`").split(";")[0] in WITHOUT_DEVICE


def check(command, node, page):
    tables = sections(page.read_text(encoding="utf-8"))
    report = doctor(command, node)
    here = (report["libfabric"], platform.machine())
    if here not in tables:
        known = ", ".join(" on ".join(key) for key in tables)
        print(f"skipped: the page has tables of libfabric {known}, and this is libfabric {' on '.join(here)}")
        sys.exit(SKIPPED)
    old = {row[0]: (*row[:3], row[4]) for row in map(cells, tables[here])}
    now = {facts(provider)[0]: facts(provider) for provider in report["providers"]}
    wrong = False
    for name in sorted(old | now):
        if old.get(name) == now.get(name):
            continue
        print(f"{name}: {old.get(name, 'missing')} on the page, {now.get(name, 'missing')} here"
              + ("" if without_device(name) else " (depends on the machine's devices: not a fault)"))
        wrong = wrong or without_device(name)
    if wrong:
        sys.exit(f"{page} is old: tests/bench/providers.py --write build docs/results writes it anew")
    print(f"{len(old)} providers as on the page")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"] and len(sys.argv) >= 4:
        write(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4:])
    elif sys.argv[1:2] == ["--check"] and len(sys.argv) == 5:
        check(*map(pathlib.Path, sys.argv[2:]))
    else:
        sys.exit(__doc__)
