#!/usr/bin/python3
"""What `auto` takes, measured: docs/results/choice_runs.md. Root only; nothing else should run meanwhile.

choice.py measure lab|tcp   measures on a fabric, writes build/bench/choice-FABRIC.json; with --only, the other rows stay
choice.py record            puts the rows of both files into the page's record, choice_runs.csv, and writes the page
choice.py page              writes the page from the record as it is; with --check, the exit status is 1 if it is another one

lab: 8 hosts, network namespaces with shaped links of 100 Mbit/s (lab.sh). tcp: 8 processes on this machine, over libfabric's tcp.
`espalier measure` fits a model to the fabric, and with --candidates adds what candidates take. With it `espalier explain` ranks the candidates of
each collective and size, and all that are predicted to take at most twice the best time are run in turn, several times around. One process start is one sample of
placements and connections, so each round starts them anew. The fastest of many is often one that was lucky, so it is run again, in turn
with what `auto` takes; the comparison is of these runs.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pages
from lab import LAUNCH, espalier, hosts, measured_run

RECORD = pathlib.Path(__file__).resolve().with_name("choice_runs.csv")
PAGE = pages.RESULTS / "choice_runs.md"
HOSTS = 8
SHARED = ("--ranks-per-host", HOSTS)  # the hosts of the lab have this machine's processors, too
FABRICS = {"lab": "8 hosts, 100 Mbit/s links", "tcp": "8 processes on one machine, unshaped TCP"}
COLLECTIVES = ("broadcast", "reduce", "allreduce", "scan", "exscan", "scatter", "gather", "allgather", "reduce-scatter", "all-to-all", "barrier")
PER_RANK = {"scatter", "gather", "allgather", "reduce-scatter", "all-to-all"}
SIZES = (8, 1024, 16384, 262144, 4194304)  # of the whole message, or of all parts that a rank gets or gives
TUNED = (8, 1024, 16384, 65536, 524288, 4194304)
SHORT = 65536
SHORT_RUNS, LONG_RUNS = (4, 8), (3, 3)  # rounds, and repetitions per round: at least 31 in all below 64 KiB
WITHIN, TWICE = 1.10, 2.0
OPTIONS = {"run_length": "--run-length", "radix": "--radix", "lambda": "--lambda", "ratio": "--ratio", "embedding": "--embedding"}


def launch(fabric):
    return LAUNCH if fabric == "lab" else LAUNCH[:2]


def times(fabric, model, collective, size, candidate, repeats):
    """The seconds of each repetition of one start."""
    words = ["--topology", f"complete:{HOSTS}", "--collective", collective, "--algorithm", candidate["algorithm"], "--model", model,
             *SHARED, *launch(fabric), "--repeat", repeats, "--warmup", 2, "--deadline", 20000]
    for key, option in OPTIONS.items():
        if candidate.get(key):
            words += [option, candidate[key]]
    what = f"{collective} of {size} bytes by {candidate['candidate']}"
    return measured_run(what, *words, *([] if collective == "barrier" else ["--bytes", size]))["times_s"]


def measure_row(fabric, model, collective, size):
    words = ["explain", "--topology", f"complete:{HOSTS}", "--collective", collective, "--model", model, *SHARED, "--format", "json"]
    ranking = json.loads(espalier(*words, *([] if collective == "barrier" else ["--bytes", size])))["sizes"][0]["ranking"]
    near = [one for one in ranking if one["times_best"] <= TWICE]
    medians = in_turn(fabric, model, collective, size, near, 1)
    taken = near[0]
    best = min(near, key=lambda one: medians[one["candidate"]])
    again = in_turn(fabric, model, collective, size, [taken, best], 6 if size < SHORT else 2) if best is not taken else medians
    return {"collective": collective, "bytes": size, "taken": taken["candidate"], "blocks": taken["blocks"],
            "predicted_s": taken["predicted_ps"] * 1e-12, "measured_s": again[taken["candidate"]],
            "best": best["candidate"], "best_s": again[best["candidate"]], "candidates": medians}


def in_turn(fabric, model, collective, size, candidates, times_as_many):
    """The median time of each candidate, s."""
    rounds, repeats = SHORT_RUNS if size < SHORT else LONG_RUNS
    found = {one["candidate"]: [] for one in candidates}
    for _ in range(rounds * times_as_many):
        for one in candidates:
            found[one["candidate"]] += times(fabric, model, collective, size, one, repeats)
    return {name: statistics.median(values) for name, values in found.items()}


def measure(fabric, only, model):
    folder = pathlib.Path("build/bench")
    folder.mkdir(exist_ok=True)
    with hosts(HOSTS, 100) if fabric == "lab" else contextlib.nullcontext():
        if not model:
            model = folder / f"{fabric}.textproto"
            espalier("measure", *launch(fabric), *SHARED, "--receivers", "2,4,7", "-o", model)
            espalier("measure", "--candidates", f"complete:{HOSTS}", *launch(fabric), *SHARED, "--bytes", ",".join(map(str, TUNED)),
                     "--deadline", 20000, "--model", model, "-o", model)
        found = folder / f"choice-{fabric}.json"
        rows = json.loads(found.read_text())["rows"] if found.exists() and set(only) < set(COLLECTIVES) else []
        rows = [row for row in rows if row["collective"] not in only]
        for collective in only:
            for size in SIZES if collective != "barrier" else (0,):
                part = max(8, size // HOSTS) if collective in PER_RANK else size
                rows.append(measure_row(fabric, model, collective, part))
                print(" ".join(f"{key}={value}" for key, value in rows[-1].items() if key != "candidates"), file=sys.stderr, flush=True)
                rows.sort(key=lambda row: COLLECTIVES.index(row["collective"]))
                found.write_text(json.dumps({"model": pathlib.Path(model).read_text(), "rows": rows}, indent=1))


def time_text(seconds):
    return f"{seconds * 1e3:.3f}" if seconds < 1 else f"{seconds * 1e3:.0f}"


COLUMNS = ("fabric", "collective", "bytes", "taken", "N", "predicted", "measured", "fastest", "its time", "ratio", "candidates")
SHOWN = ("collective", "bytes", "taken", "N", "predicted", "measured", "fastest", "its time", "ratio", "candidates")
NUMBERS = ("bytes", "N", "predicted", "measured", "its time", "ratio", "candidates")
WORST = 6


def record():
    """The text of choice_runs.csv, times in ms."""
    rows = []
    for fabric in FABRICS:
        for row in json.loads(pathlib.Path(f"build/bench/choice-{fabric}.json").read_text())["rows"]:
            rows.append([fabric, row["collective"], row["bytes"], row["taken"], row["blocks"], time_text(row["predicted_s"]), time_text(row["measured_s"]),
                         row["best"], time_text(row["best_s"]), f"{row['measured_s'] / row['best_s']:.2f}", len(row["candidates"])])
    return pages.csv_text(COLUMNS, rows)


def section(fabric, rows):
    near = sum(float(row["measured"]) <= WITHIN * float(row["its time"]) for row in rows)
    text = f"\n## {FABRICS[fabric]}\n\n`auto` is within {round(WITHIN * 100 - 100)} % of the fastest in {near} of {len(rows)} rows. "
    far = pages.worst(rows, lambda row: float(row["ratio"]), WORST)
    return text + f"The {WORST} greatest ratios:\n\n" + pages.markdown(SHOWN, [[row[name] for name in SHOWN] for row in far], NUMBERS)


def page(rows):
    text = f"""# What `auto` takes, measured

Written by `tests/bench/choice.py record`, from what `tests/bench/choice.py measure lab` and `measure tcp` measured. The model is of
`espalier measure`, tuned by `--candidates` ([choosing.md](../choosing.md#tuned-by-runs)) with messages of {len(TUNED)} sizes:
{", ".join(map(str, TUNED[:-1]))} and {TUNED[-1]} bytes, of all ranks' parts together.

For each collective and size, all candidates that the model predicts to take at most {TWICE:g} times the best time were run in turn:
{SHORT_RUNS[0] * SHORT_RUNS[1]} repetitions of each below 64 KiB, {LONG_RUNS[0] * LONG_RUNS[1]} above. The fastest of many is often one that was lucky, so it and what `auto` takes were run again, in
turn: the times are medians of these runs, in ms, and *ratio* is their quotient. All {HOSTS} ranks share this machine's processors.
[tests/bench/choice_runs.csv](../../tests/bench/choice_runs.csv) has all {len(rows)} rows.
"""
    return text + "".join(section(fabric, [row for row in rows if row["fabric"] == fabric]) for fabric in FABRICS)


def main():
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record")
    commands.add_parser("page").add_argument("--check", action="store_true")
    command = commands.add_parser("measure")
    command.add_argument("fabric", choices=FABRICS)
    command.add_argument("--model", help="a model of the fabric, instead of fitting one")
    command.add_argument("--only", nargs="+", choices=COLLECTIVES, default=COLLECTIVES, metavar="COLLECTIVE")
    arguments = parser.parse_args()
    if arguments.command == "measure":
        measure(arguments.fabric, arguments.only, arguments.model)
        return
    if arguments.command == "record":
        RECORD.write_text(record(), encoding="utf-8")
    text = page(pages.read(RECORD))
    if arguments.command == "page" and arguments.check:
        bad = pages.differences("docs/results/choice_runs.md", PAGE.read_text(encoding="utf-8"), text)
        sys.exit("\n".join([*bad, "tests/bench/choice.py page writes it anew"]) if bad else 0)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
