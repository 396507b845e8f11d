#!/usr/bin/python3
"""Instructions of each poll on a board, counted by qemu (-icount: the clock then counts instructions).

instructions_test.py ELF [--board NAME] [--compiler VERSION] [--page FILE]
                     --page: writes the tables, as docs/results/instructions.md

On boards other than mps2-an385 it is a sample, of 8 ranks and 16 blocks; the page has one row for each, which is compared if the compiler is
that of the budgets of tests/size.

Fails where counting is not exact, where a collective fails, and where the worst poll of a program grows with the number of
blocks, with the message or with the ranks, apart from the bytes of the one block that it combines or copies. Then shows that it
can fail: the same measurements, spoilt in each of these ways, must be refused.
"""
import argparse
import collections
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bare"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "size"))
import emulator  # noqa: E402
import toolchain  # noqa: E402

BASE = "mps2-an385"
ROWS = """
## Every board

With 8 ranks and 16 blocks of 64 bytes: the worst poll of each kind, and what a byte or an element adds. Each row is written by the command above with
`--board` and the program of its build directory, and compared by the test `instructions` there.

"""
COUNTING = ["-serial", "stdio", "-icount", "shift=10,sleep=off"]
COLLECTIVES = {1: "broadcast", 2: "reduce", 3: "allreduce", 4: "scan", 8: "allgather", 9: "reduce-scatter"}
TYPES = {2: "u8", 3: "i16", 5: "i32", 7: "i64", 9: "f16", 11: "f32", 12: "f64"}
KINDS = ("nothing to do", "completions", "posts", "operator's call")
RANKS, PROGRAMS = (8, 64, 1024), 7
BETWEEN_RANKS = 1.02  # numbers of other sizes are divided and compared: not to the instruction the same
# actions: sends, receives, combines, copies; worst: by kind.
Run = collections.namedtuple("Run", "collective algorithm ranks blocks block_bytes op calls_between actions polls worst status")


def read(text):
    loops, combines, runs, checked, frames = {}, {}, [], [], {}
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "loop":
            loops[int(rest[0])] = int(rest[1])
        elif word == "combine":
            of, size, elements, spent = map(int, rest)
            combines.setdefault((of, size), {})[elements] = spent
        elif word == "frame":
            frames[int(rest[0])] = tuple(map(int, rest[1:]))
        elif word in ("run", "checked"):
            numbers = [int(rest[0]), rest[1], *map(int, rest[2:5]), rest[5], *map(int, rest[6:])]
            (runs if word == "run" else checked).append(Run(*numbers[:7], tuple(numbers[7:11]), numbers[11], tuple(numbers[12:16]), numbers[16]))
    if not text.rstrip().endswith("done"):
        raise SystemExit(f"instructions: the board did not come to its end:\n{text[-500:]}")
    return loops, combines, runs, checked, frames


def slope(points):
    """The slope of the line through the first and the last of {x: y}; None if one of the others is off the line."""
    at = sorted(points)
    found = (points[at[-1]] - points[at[0]]) / (at[-1] - at[0])
    return found if all(abs(points[x] - points[at[0]] - found * (x - at[0])) <= 2 + 0.001 * points[x] for x in at) else None


def of_program(runs, ranks):
    """Runs by program, script and operator."""
    found = {}
    for run in runs:
        if run.ranks == ranks:
            found.setdefault((run.collective, run.algorithm, run.op, run.calls_between), []).append(run)
    return found


def judge(loops, combines, runs):
    """One line for each broken rule."""
    bad = []
    first = min(loops)
    for rounds, spent in loops.items():
        if spent - loops[first] != 2 * (rounds - first):
            bad.append(f"counting: {rounds - first} rounds of a loop of two instructions took {spent - loops[first]}")
    for (of, _), points in combines.items():
        if slope(points) is None:
            bad.append(f"combine: {TYPES[of]}: not so many instructions an element: {points}")
    bad += [f"run: {run} failed with status {run.status}" for run in runs if run.status != 0]
    per_byte = {"sum": slope(combines[(5, 4)]) / 4} if slope(combines[(5, 4)]) else {}
    for ranks in RANKS:
        groups = of_program(runs, ranks)
        if len(groups) != 3 * PROGRAMS:
            bad.append(f"runs: {len(groups)} of {3 * PROGRAMS} for {ranks} ranks")
        for key, group in groups.items():
            name = f"{COLLECTIVES[key[0]]} by {key[1]}, {ranks} ranks, operator {key[2]}"
            many = {run.blocks: max(run.worst) for run in group if run.block_bytes == 64}
            steady = [many[blocks] for blocks in sorted(many) if blocks >= 16]
            if len(many) < 2 or len(set(steady)) != 1 or many.get(1, 0) > steady[0]:
                bad.append(f"blocks: {name}: the worst poll depends on N: {many}")
            sizes = {run.block_bytes: max(run.worst) for run in group if run.blocks == 16}
            grows = slope(sizes) if len(sizes) > 1 else 0
            most = max(1.5 if group[0].actions[3] else 0, per_byte.get(key[2], 0) * 1.05 if key[2] == "sum" else 0)
            if grows is not None and grows > most or grows is None and max(sizes.values()) > min(sizes.values()) + most * max(sizes):
                bad.append(f"bytes: {name}: the worst poll grows by {grows} instructions a byte of the block, may by {most:.2f}: {sizes}")
    worst = {}  # however the other ends answer: which poll gets the most of the work differs from place to place
    for run in runs:
        if run.block_bytes == 64:
            of = worst.setdefault((run.collective, run.algorithm, run.actions, run.op), {})
            of[run.ranks] = max(of.get(run.ranks, 0), *run.worst)
    for (collective, algorithm, _, op), of in worst.items():
        if max(of.values()) > BETWEEN_RANKS * of.get(RANKS[0], max(of.values())):
            bad.append(f"ranks: {COLLECTIVES[collective]} by {algorithm}, operator {op}: the worst poll grows with p: {of}")
    return bad


def spoilt(loops, combines, runs):
    """Yields (the change, words of the refusal, the changed measurements)."""
    def grown(change):
        return [run._replace(worst=tuple(2 * value if change(run) else value for value in run.worst)) for run in runs]

    yield "a clock that slips", "counting:", ({**loops, max(loops): loops[max(loops)] + 3}, combines, runs)
    yield "polls that grow with N", "blocks:", (loops, combines, grown(lambda run: run.blocks == 256))
    yield "polls that grow with the block", "bytes:", (loops, combines, grown(lambda run: run.block_bytes == 1024 and run.op == "none"))
    yield "polls that grow with p", "ranks:", (loops, combines, grown(lambda run: run.ranks == 1024))
    yield "a failure", "run:", (loops, combines, [runs[0]._replace(status=17), *runs[1:]])
    yield "a missing program", "runs:", (loops, combines, [run for run in runs if run.algorithm != "chain"] +
                                         [run for run in runs if run.algorithm == "chain" and run.ranks == 8])


def judge_frames(frames):
    """One line for each check of a frame whose instructions do not grow by the same number per byte, or are missing."""
    return [f"frames: the {name} takes {values}" for name, values in
            ((name, {size: of[at] for size, of in frames.items()}) for at, name in enumerate(("CRC", "code")))
            if len(values) < 3 or slope(values) is None]


def checks_of(runs, checked, frames):
    """{(program, block's bytes): (worst poll without CRCs, with CRCs of all blocks, CRCs of a block in the difference)}; 8 ranks."""
    per_byte = slope({size: crc for size, (crc, _) in frames.items()})
    found = {}
    for run in checked:
        if run.ranks != RANKS[0]:
            continue
        plain = next(max(other.worst) for other in runs if other[:7] == run[:7])
        found[COLLECTIVES[run.collective] + " by " + run.algorithm, run.block_bytes] = (
            plain, max(run.worst), (max(run.worst) - plain) / (per_byte * run.block_bytes))
    return found


def judge_checks(runs, checked, frames):
    """One line for each program whose worst poll computes CRCs of more than two blocks, one sent and one received; or that failed."""
    found = checks_of(runs, checked, frames)
    return [f"checks: {run} failed" for run in checked if run.status != 0] + [
        f"checks: the worst poll of {name} with blocks of {size} bytes has CRCs of {blocks:.2f} blocks"
        for (name, size), (_, _, blocks) in found.items() if size == 1024 and not 0 < blocks <= 2.1] + (
        [] if len(found) == 2 * PROGRAMS else [f"checks: {len(found)} of {2 * PROGRAMS}"])


def tables(combines, runs, checked, frames):
    lines = ["The worst poll of each kind. The ranks are 8, 64 and 1024; N is 1, 16, 256 and 4096 (only 1 and 16 if the message would exceed",
             "4 MiB). Blocks have 64 bytes, the operator does nothing, and the peers answer at once or late.", "",
             "| program | actions | " + " | ".join(KINDS) + " |", "| --- | ---: | " + " | ".join("---:" for _ in KINDS) + " |"]
    plain = {}
    for run in runs:
        if run.op == "none" and run.block_bytes == 64:
            plain.setdefault((run.collective, run.algorithm), []).append(run)
    for (collective, algorithm), group in plain.items():
        lines.append(f"| {COLLECTIVES[collective]} by {algorithm} | {sum(group[0].actions)} | " +
                     " | ".join(str(max(run.worst[kind] for run in group)) for kind in range(4)) + " |")
    lines += ["", "The same by N and by p, the worst of all kinds:", "",
              "| program | N = 1 | 16 | 256 | 4096 | p = 8 | 64 | 1024 |", "| --- | " + " | ".join("---:" for _ in range(7)) + " |"]
    for (collective, algorithm), group in plain.items():
        by = [[max(run.worst) for run in group if run.blocks == blocks] for blocks in (1, 16, 256, 4096)]
        by += [[max(run.worst) for run in group if run.ranks == ranks] for ranks in RANKS]
        lines.append(f"| {COLLECTIVES[collective]} by {algorithm} | " + " | ".join(str(max(part, default="")) for part in by) + " |")
    lines += ["", "What the bytes of the one block add, a sum of that type:", "",
              "| type | instructions an element | a byte |", "| --- | ---: | ---: |"]
    for (of, size), points in combines.items():
        lines.append(f"| {TYPES[of]} | {slope(points):.2f} | {slope(points) / size:.2f} |")
    checks = ["", "The check of a frame of `hal/serial` at one end, which has a CRC or, on a link with a key, a code:", "",
              "| bytes | CRC-32 | SipHash-2-4 |", "| ---: | ---: | ---: |"]
    checks += [f"| {size} | {by_crc} | {by_code} |" for size, (by_crc, by_code) in frames.items()]
    checks += ["", "The worst poll if every block has a CRC (`check_blocks`), 8 ranks and 16 blocks. It computes the CRC of at most one block that it",
               "posts and one that it received.", "", "| program | bytes of a block | without | with | in CRCs of a block |",
               "| --- | ---: | ---: | ---: | ---: |"]
    checks += [f"| {name} | {size} | {plain} | {worst} | {blocks:.2f} |"
               for (name, size), (plain, worst, blocks) in checks_of(runs, checked, frames).items() if size == 1024]
    copied = {run.block_bytes: max(run.worst) for run in runs if run.actions[3] and run.blocks == 16 and run.ranks == 8 and run.op == "none"}
    lines += ["", f"A copied block (allgather's first) adds {(copied[16384] - copied[1024]) / 15360:.2f} instructions a byte."]
    return lines + checks


def row_of(board, combines, runs, frames):
    """The board's row of the table of all boards."""
    plain = [run for run in runs if run.op == "none" and (run.ranks, run.blocks) == (RANKS[0], 16)]
    small = [run for run in plain if run.block_bytes == 64]
    copied = {size: max(max(run.worst) for run in plain if run.actions[3] and run.block_bytes == size) for size in (64, 1024)}
    numbers = [str(max(run.worst[kind] for run in small)) for kind in range(4)]
    numbers += [f"{slope(combines[(of, size)]):.2f}" for of, size in ((5, 4), (11, 4), (12, 8))]
    numbers += [f"{slope({size: crc for size, (crc, _) in frames.items()}):.2f}", f"{(copied[1024] - copied[64]) / 960:.2f}"]
    return f"| {board} | " + " | ".join(numbers) + " |"


def rows_of(page):
    """Board -> row, from the page's text."""
    return {line.split("|")[1].strip(): line for line in page.partition(ROWS)[2].splitlines()[2:] if line.startswith("|")}


def table_of(rows):
    heads = [*KINDS, "sum of i32", "of f32", "of f64, an element", "CRC, a byte", "copy, a byte"]
    return (ROWS + "| board | " + " | ".join(heads) + " |\n| --- |" + " ---: |" * len(heads) + "\n" +
            "".join(f"{rows[name]}\n" for name in sorted(rows)))


def other_board(args, measured):
    """The whole test of a board that is not the base."""
    loops, combines, runs, checked, frames = measured
    row, page = row_of(args.board, combines, runs, frames), pathlib.Path(__file__).parents[2] / "docs/results/instructions.md"
    rows = rows_of(page.read_text())
    print(f"a sample, of {len(runs)} runs\n{row}")
    bad = [line for line in judge(loops, combines, runs) if not line.startswith("runs:") and "depends on N: {16" not in line]
    bad += judge_frames(frames) + judge_checks(runs, checked, frames)
    if args.page and not bad:
        args.page.write_text(args.page.read_text().partition(ROWS)[0] + table_of({**rows, args.board: row}))
    elif rows.get(args.board, row) != row and args.compiler.split(".")[0] == toolchain.BUDGET_COMPILER:
        bad.append(f"page: docs/results/instructions.md has '{rows[args.board]}'; write it again with --page")
    print("\n".join(bad))
    return 1 if bad else 0


PAGE = """# Instructions of a poll

Written by `tests/instructions/instructions_test.py build-m3/tests/instructions/polls --page docs/results/instructions.md`: on the
Cortex-M3 of mps2-an385, built with its limits and -Os, counted to the instruction by qemu (`-icount`). A poll is
`Machine::poll()` with all that it calls but the fabric, which is scripted.

"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("elf", type=pathlib.Path)
    parser.add_argument("--board", default=BASE)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--compiler", default=toolchain.BUDGET_COMPILER, metavar="VERSION")
    args = parser.parse_args()
    machine = args.board if args.board.startswith("mps2-") else BASE  # of copies, the family's first
    done = subprocess.run([*emulator.words(args.elf, machine, "polls"), *COUNTING], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"instructions: qemu ended with {done.returncode}: {done.stderr}{done.stdout[-500:]}")
    measured = read(done.stdout)
    if args.board != BASE:
        return other_board(args, measured)
    lines = tables(*measured[1:])
    print("\n".join(lines))
    *polls, checked, frames = measured
    bad = judge(*polls) + judge_frames(frames) + judge_checks(polls[2], checked, frames)
    slow = [run._replace(worst=tuple(4 * value for value in run.worst)) for run in checked]
    if not judge_checks(polls[2], slow, frames):
        bad.append("polls with the CRCs of several blocks were not refused")
    if not judge_frames({size: (crc, code + 99 * (size == 512)) for size, (crc, code) in frames.items()}):
        bad.append("a code that does not grow with the frame was not refused")
    for what, words, values in spoilt(*polls):
        if not any(line.startswith(words) for line in judge(*values)):
            bad.append(f"{what} were not refused ('{words}')")
    for line in bad:
        print(line)
    if args.page and not bad:
        rows = {**(rows_of(args.page.read_text()) if args.page.exists() else {}), BASE: row_of(BASE, *polls[1:], frames)}
        args.page.write_text(PAGE + "\n".join(lines) + "\n" + table_of(rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
