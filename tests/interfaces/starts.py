#!/usr/bin/python3
"""How long the ranks of a job take to join on three hosts with 20 interfaces each (hosts.py), under every launcher (ways.py); and when the line
that says who is missing comes, where no rank can be reached.

starts.py --write BUILD   starts every cell ten times, and 100 jobs that cannot join; writes starts.csv, nobody.csv and docs/results/interfaces.md
starts.py --check BUILD   the same of a few cells, once each; compares the page with the records
starts.py --page          writes the page from the records
--ways WORD,.. --variants WORD,.. --times N restrict --write to some cells, whose rows it replaces.
"""
import argparse
import contextlib
import os
import pathlib
import random
import re
import selectors
import statistics
import sys
import tempfile
import time

import hosts
import ways

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PAGE = pages.RESULTS / "interfaces.md"
STARTS, NOBODY = HERE / "starts.csv", HERE / "nobody.csv"
START_COLUMNS, NOBODY_COLUMNS = ("variant", "way", "seconds", "reason"), ("case", "variant", "way", "cause", "seconds", "line")
TIMES, PER_HOST = 10, 2
MAX_S = 3.0        # of a cell's median
FIRST_WORD_S = 5.0
CASES = 100
# Jobs that cannot join. A launcher that needs the network itself cannot start them.
CAUSES = {"no cable": "each host's cable to the switch is taken away before the start", "silent": "the switch forwards nothing",
          "absent": "the last rank does not call join()"}
SAMPLE = (("bridge", "launch"), ("bridge", "mpiexec"), ("twice", "folder"), ("ipv6", "launch"), ("ipv6", "a name"), ("names", "a name"), ("names", "mpirun of Open MPI and"))
SAMPLE_CASES = (("names", "by a shared folder", "silent"), ("names", "by hand, MASTER_ADDR a name", "no cable"), ("names", "espalier launch", "absent"))


def once(lab, programs, start, per_host, slurm):
    """Seconds until all have joined; or what went wrong."""
    words = [start.program or programs.member]
    good, text = ways.Running(lab, start, ways.preferred(words) if ways.Running.is_preferred else words, per_host, slurm).wait()
    seconds = ways.seconds_to_join(text, len(hosts.NAMES) * per_host)
    return seconds if good and seconds is not None else "did not join: " + next((line for line in text.splitlines() if "member:" in line or "done" in line), text[-200:])


def of_variant(variant, programs, names, times, per_host):
    """The rows of one variant."""
    rows = []
    with contextlib.ExitStack() as ends:
        lab = ends.enter_context(hosts.Hosts(variant))
        slurm = None
        for name, start in ways.ways(programs).items():
            if name not in names:
                continue
            if name.startswith("srun") and not slurm and not ways.missing(start):
                slurm = ways.Slurm(lab, ends.enter_context(tempfile.TemporaryDirectory(prefix="espalier-slurm-")))
                ends.callback(slurm.end)
                slurm.wait_until_up(lab)
            reason = ways.refusal(lab, name, start, slurm)
            seconds = []
            while not reason and len(seconds) < times:
                found = once(lab, programs, start, per_host, slurm)
                if isinstance(found, str):
                    reason = found
                else:
                    seconds.append(found)
            rows.append({"variant": variant, "way": name, "seconds": " ".join(f"{each:.3f}" for each in seconds), "reason": reason or ""})
            print(f"{variant}, {name}: {cell(rows[-1])}", file=sys.stderr, flush=True)
    return rows


def cell(row):
    return row["reason"] or f"{statistics.median(map(float, row['seconds'].split())):.2f}"


class Watched:
    """A job that cannot join, and the first line that says who is missing."""

    def __init__(self, lab, programs, case, more):
        self.case, self.line, self.seconds, self.begun, self.parts = case, "", None, [], {}
        words = [programs.member]
        if case["cause"] == "absent":  # by hand, in a folder and by launch the last rank sleeps instead
            last = str(len(hosts.NAMES) - 1)
            words = ["sh", "-c", f'case "${{ESPALIER_RANK-${{RANK-$3}}}}" in {last}) exec sleep 100;; esac; exec "$0" "$@"', programs.member]
        self.running = ways.Running(lab, ways.ways(programs)[case["way"]], words, 1, more=more)

    def files(self):
        return [process.stdout for process in self.running.processes]

    def read(self, file):
        """Takes the whole lines that have come. Returns whether more may come."""
        got = os.read(file, 1 << 16).decode(errors="replace")
        *lines, self.parts[file] = (self.parts.get(file, "") + got).split("\n")
        for line in lines:
            self.take(line)
        return bool(got)

    def end(self):
        self.running.end()
        for process in self.running.processes:
            process.stdout.close()
            process.wait()

    def take(self, line):
        if found := re.search(r"called (\d+)$", line):
            self.begun.append(int(found[1]) * 1e-6)
        elif self.seconds is None and re.search(r"espalier: .*(waits? for|waiting for|no server)", line):
            # join() of the last rank that called it; all have called long before the line.
            self.line, self.seconds = line.strip(), time.monotonic() - max(self.begun)


def watch(lab, programs, cases, more):
    """Runs jobs side by side until each has said who is missing, or for four times the time."""
    jobs = [Watched(lab, programs, case, more) for case in cases]
    with selectors.DefaultSelector() as selector:
        for job in jobs:
            for file in job.files():
                selector.register(file.fileno(), selectors.EVENT_READ, job)
        until = time.monotonic() + 4 * FIRST_WORD_S
        while any(job.seconds is None for job in jobs) and time.monotonic() < until and selector.get_map():
            for key, _ in selector.select(0.1):
                if not key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
    for job in jobs:
        job.end()
    return [{**job.case, "seconds": "" if job.seconds is None else f"{job.seconds:.3f}", "line": job.line} for job in jobs]


def nobody(programs, cases, **more):
    """The rows of jobs that cannot join, with these variables."""
    rows = []
    for variant in hosts.VARIANTS:
        mine = [case for case in cases if case["variant"] == variant]
        if not mine:
            continue
        with hosts.Hosts(variant) as lab:
            for cause in CAUSES:
                same = [case for case in mine if case["cause"] == cause]
                cut = {"no cable": lambda is_cut: lab.set_lan(not is_cut), "silent": lab.set_silent}.get(cause, lambda _: None)
                cut(True)
                for first in range(0, len(same), 4):  # more at once would wait for processors
                    rows += watch(lab, programs, same[first:first + 4], more)
                cut(False)
                print(f"{variant}, {cause}: {[row['seconds'] for row in rows[len(rows) - len(same):]]}", file=sys.stderr, flush=True)
    return sorted(rows, key=lambda row: row["case"])


def random_cases(programs):
    chance = random.Random(51)
    able = [name for name, start in ways.ways(programs).items() if start.each or name.startswith("espalier launch")]
    cases = []
    for number in range(CASES):
        variant = chance.choice(list(hosts.VARIANTS))
        way = chance.choice([name for name in able if variant != "ipv6" or not name.endswith("IPv4 address")])
        cases.append({"case": number, "variant": variant, "way": way, "cause": chance.choice(list(CAUSES))})
    return cases


def findings(starts, nobodies):
    """What is wrong with the records."""
    cells = {(row["variant"], row["way"]) for row in starts}
    bad = [f"no row of {variant}, {way}" for variant in hosts.VARIANTS for way in {way for _, way in cells} if (variant, way) not in cells]
    bad += [] if len(nobodies) == CASES and cells else [f"{len(nobodies)} jobs that cannot join and {len(cells)} cells; expected {CASES}, and some"]
    for row in starts:
        if row["reason"].startswith("did not join"):
            bad.append(f"{row['variant']}, {row['way']}: {row['reason']}")
        elif not row["reason"] and float(cell(row)) > MAX_S:
            bad.append(f"{row['variant']}, {row['way']}: {cell(row)} s; expected at most {MAX_S}")
    bad += [f"case {row['case']} ({row['variant']}, {row['way']}, {row['cause']}): the line came after {row['seconds'] or 'more than 20'} s"
            for row in nobodies if not row["seconds"] or float(row["seconds"]) > FIRST_WORD_S]
    return bad


def page(starts, nobodies):
    reasons = sorted({row["reason"] for row in starts if row["reason"]})
    shown = {(row["variant"], row["way"]): f"({reasons.index(row['reason']) + 1})" if row["reason"] else cell(row) for row in starts}
    rows = [[way, *(shown.get((variant, way), "") for variant in hosts.VARIANTS)] for way in dict.fromkeys(row["way"] for row in starts)]
    notes = "".join(f"- ({number}): {reason}\n" for number, reason in enumerate(reasons, 1))
    in_time = [row for row in nobodies if row["seconds"] and float(row["seconds"]) <= FIRST_WORD_S]
    longest = max((float(row["seconds"]) for row in nobodies if row["seconds"]), default=0)
    by_cause = [[cause, text, sum(row["cause"] == cause for row in nobodies), sum(row["cause"] == cause for row in in_time)] for cause, text in CAUSES.items()]
    joined = [row for row in starts if row["seconds"]]
    return f"""# Hosts with many interfaces

Written by `tests/interfaces/starts.py --write build`, with the records [starts.csv](../../tests/interfaces/starts.csv) and
[nobody.csv](../../tests/interfaces/nobody.csv).

## Time to join

{pages.wrapped(f'''Three hosts are network namespaces with 20 interfaces each; {PER_HOST} ranks run on each. A cell has the seconds from the last rank's call of
`join()` until all ranks have returned from it: the median of {max((len(row["seconds"].split()) for row in joined), default=0)} starts. mpirun and mpiexec are told the interface of their
own connections, and no program is told any. An MPI program joins in its first collective; the bridge took over all of its calls. The limit is {MAX_S:.0f} s. The machine, of two processors, had other work meanwhile.''')}

{chr(10).join(f"- {variant}: {text}" for variant, text in hosts.VARIANTS.items())}

{pages.markdown(["way to start", *hosts.VARIANTS], rows, tuple(hosts.VARIANTS))}
{notes}
## No rank can be reached

{pages.wrapped(f'''Random jobs of one rank per host that cannot join: by launch, by hand and by folder, in all variants. The first line that says which ranks are
missing came within {FIRST_WORD_S:.0f} s of the last `join()` in {len(in_time)} of {len(nobodies)} jobs; the longest took {longest:.2f} s.''')}

{pages.markdown(["cause", "what it is", "jobs", "line in time"], by_cause, ("jobs", "line in time"))}"""


def write(arguments, programs):
    ways.Running.is_preferred = True
    names = [name for name in ways.ways(programs) if any(word in name for word in arguments.ways.split(","))]
    variants = [variant for variant in hosts.VARIANTS if not arguments.variants or variant in arguments.variants.split(",")]
    kept = {(row["variant"], row["way"]): row for row in (pages.read(STARTS) if STARTS.exists() else [])}
    for variant in variants if names else []:
        for row in of_variant(variant, programs, names, arguments.times, PER_HOST):
            kept[row["variant"], row["way"]] = row
        order = [(each, name) for name in ways.ways(programs) for each in hosts.VARIANTS]
        STARTS.write_text(pages.csv_text(START_COLUMNS, [kept[key] for key in order if key in kept]), encoding="utf-8")
    if not arguments.ways and not arguments.variants or arguments.nobody:
        NOBODY.write_text(pages.csv_text(NOBODY_COLUMNS, nobody(programs, random_cases(programs))), encoding="utf-8")


def check(programs):
    """A sample of both. Returns what is wrong."""
    rows = []
    for variant in hosts.VARIANTS:
        words = [word for each, word in SAMPLE if each == variant]
        names = [name for name in ways.ways(programs) if any(name == f"espalier {word}" or (word != "launch" and word in name) for word in words)]
        rows += of_variant(variant, programs, names, 1, 1) if names else []
    bad = [row for row in rows if row["reason"].startswith("did not join")]
    cases = [{"case": number, "variant": variant, "way": way, "cause": cause} for number, (variant, way, cause) in enumerate(SAMPLE_CASES)]
    return [str(row) for row in bad] + [f"no line says who is missing: {row}" for row in nobody(programs, cases, ESPALIER_FIRST_WORD="1") if not row["seconds"]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write")
    parser.add_argument("--check")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--nobody", action="store_true")
    parser.add_argument("--ways", default="")
    parser.add_argument("--variants", default="")
    parser.add_argument("--times", type=int, default=TIMES)
    arguments = parser.parse_args()
    if not arguments.page:
        if reason := hosts.refusal():
            print(f"skipped: {reason}")
            sys.exit(77)
        hosts.alone()
        programs = ways.Programs(arguments.write or arguments.check)
    if arguments.write:
        write(arguments, programs)
    bad = check(programs) if arguments.check else []
    starts, nobodies = pages.read(STARTS), pages.read(NOBODY)
    text = page(starts, nobodies)
    if arguments.check:
        bad += findings(starts, nobodies) + pages.differences(str(PAGE), PAGE.read_text(encoding="utf-8"), text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        bad += findings(starts, nobodies)
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
