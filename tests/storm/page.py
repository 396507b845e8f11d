#!/usr/bin/python3
"""page.py PAGE FILE...: makes the tables of PAGE, docs/results/storm.md, anew from what runs of `storm [--over CARRIER] SEEDS FROM` printed
into the FILEs. The rest of the page stays."""
import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pages  # noqa: E402

CARRIERS = {"network": "simulated network", "frames": "framed links", "tcp": "tcp", "mem": "mem", "mem+tcp": "mem+tcp"}
COUNTS = ("seeds that broke a promise", "collectives, counted on each node", "block messages")


def tallies(text):
    """Returns (carrier, {name: number}) of each run; the text may have other lines before each tally."""
    found = re.findall(r"^tally over (\S+)\n((?:.+: \d+\n)*)end of the tally$", text, re.M)
    if not found or len(found) != text.count("tally over "):
        raise ValueError("expected a run's tally, to its end")
    return [(carrier, {name: int(number) for name, number in re.findall(r"(.+): (\d+)\n", lines)}) for carrier, lines in found]


def add_up(carrier, runs):
    """Adds up runs, which must have other seeds. Returns {name: number}, and the text of their seeds."""
    ranges, total = [], {}
    for run in sorted(runs, key=lambda run: run["first seed"]):
        first, last = run["first seed"], run["first seed"] + run["seeds"] - 1
        if ranges and first <= ranges[-1][1]:
            raise ValueError(f"two runs over {carrier} had seed {first}")
        if ranges and first == ranges[-1][1] + 1:
            ranges[-1][1] = last
        else:
            ranges.append([first, last])
        for name, number in run.items():
            total[name] = total.get(name, 0) + number
    return total, ", ".join(f"{first} to {last}" for first, last in ranges)


def tables(found):
    """Returns the tables of these tallies."""
    sums = {title: add_up(carrier, [run for name, run in found if name == carrier])
            for carrier, title in CARRIERS.items() if carrier in dict(found)}
    totals = [total for total, _ in sums.values()]
    faults = [sum(number for name, number in total.items() if name.startswith("fault ")) for total in totals]
    seconds = [max(1, total["ms of the processor"]) / 1000 for total in totals]
    rows = [["seeds", *(seeds for _, seeds in sums.values())], ["number of seeds", *(total["seeds"] for total in totals)]]
    rows += [[name, *(total[name] for total in totals)] for name in COUNTS]
    rows += [["faults that struck", *faults],
             ["seeds per second of one core", *(int(total["seeds"] / time) for total, time in zip(totals, seconds))],
             ["faults per second of one core", *(int(number / time) for number, time in zip(faults, seconds))]]

    def table(title, rows):
        return pages.markdown([title, *sums], rows, list(sums))

    def named(kind, other):
        names = dict.fromkeys(name for total in totals for name in total if name.startswith(kind))
        return [[name.removeprefix(kind), *(total.get(name, other) for total in totals)] for name in names]

    return "\n".join((table("", rows), table("fault that struck", named("fault ", "-")),
                      table("seeds that ended with", sorted(named("ended with ", 0)))))


def with_tables(page, new):
    return re.sub(r"^\|  \|.*?(?=\n## Found)", lambda _: new, page, flags=re.M | re.S)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    path, *files = map(pathlib.Path, sys.argv[1:])
    path.write_text(with_tables(path.read_text(), tables(tallies("".join(file.read_text() for file in files)))))
