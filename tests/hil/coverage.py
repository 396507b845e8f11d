"""Finds which programs of a rig run on which kinds of board, and writes the rig's part of docs/results/hil.md."""
import collections
import math
import pathlib
import re

import plan as plans
import rig as rigs

EVENT_BYTES = 16  # of a log's record (include/espalier/internal/collectives/machine/event_log.h)
ROOM_BYTES, ROOM_EVENTS = 262144, 16384  # of a board whose description says nothing (proto/board.proto)
PER_RANK = ("scatter", "gather", "allgather", "reduce-scatter", "all-to-all")
# A whole message, of all ranks' parts: where it is the input, and the output.
WHOLE_INPUT = {"scatter": "root", "reduce-scatter": "all", "all-to-all": "all"}
WHOLE_OUTPUT = {"gather": "root", "allgather": "all", "all-to-all": "all"}


def reason(line, board):
    """Shortens a line of `espalier image build` about a program that the board cannot hold, and leaves out which node's it is."""
    if not line:
        return ""
    found = re.search(rf"'s program (has .*); board '{re.escape(board)}'", line)
    if found:
        return f"its program {found[1]}"
    found = re.search(rf" need (\d+ links?); board '{re.escape(board)}' has (\d+)", line)
    return f"its program needs {found[1]}, and the board has {found[2]}" if found else re.sub(r"'\S*/", "'", line)


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)(B|KiB|MiB|GiB)?", text).groups()
    return int(number) << {None: 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


def needed_bytes(test, message, rank, shown, report):
    """Returns the bytes of the largest of input, output and scratch of a rank. shown, report: the JSON of `espalier show` and of
    `espalier simulate`."""
    part = bytes_of(message.bytes)
    whole = part * shown["ranks"] if test.collective in PER_RANK else part
    is_whole = ("all", "root") if rank == test.root else ("all",)
    given = max(whole if table.get(test.collective) in is_whole else part for table in (WHOLE_INPUT, WHOLE_OUTPUT))
    element = int(re.search(r"\d+", message.type)[0]) // 8 if test.collective in plans.COMBINING else 1
    slot = math.ceil(math.ceil(whole // element / report["segments"]) / report["blocks"]) * element
    return max(given, shown["programs"][rank]["scratch_blocks"] * slot)


def shortage(needed, events, limits):
    """Returns what the rooms of a board with these limits cannot hold; "" if they can."""
    room = limits.room_bytes if limits.HasField("room_bytes") else ROOM_BYTES
    records = limits.room_events if limits.HasField("room_events") else ROOM_EVENTS
    if needed > room:
        return f"a buffer needs {needed} bytes, and its rooms have {room}"
    return f"its log has {events} records, and room for {records}" if events > records else ""


def placed(plan, cases):
    """Returns {(test, board): ranks whose programs run on that board}."""
    found = collections.defaultdict(set)
    for case in cases:
        if case.victim is None and case.refused is None and case.loss is None:
            for rank in range(case.ranks or len(case.seats)):
                found[case.test, case.seats[rank].board].add(rank)
    return found


def numbers(values):
    """Returns "0 to 3, 6"."""
    runs = []
    for value in sorted(values):
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def excesses(plan, cases):
    """Returns {(board, test, message or "", reason): (ranks, boards in its place)} of the programs that stand-ins run."""
    found = collections.defaultdict(lambda: (set(), set()))
    for case in cases:
        for rank, seat, why in case.replaced:
            message = "" if why.startswith("its program") else plans.message_name(plan.tests.entry.test[case.test], case.message)
            ranks, boards = found[seat.board, case.test, message, why]
            ranks.add(rank)
            boards.add(case.seats[rank].board)
    return found


def check(plan, cases):
    """Every rank's program of every test runs on every kind of board that can hold it."""
    runs, left = placed(plan, cases), excesses(plan, cases)
    for at, test in enumerate(plan.tests.entry.test):
        for kind in plan.rig.kinds():
            reasons = [ranks for (board, test_at, _, _), (ranks, _) in left.items() if (board, test_at) == (kind.board, at)]
            missing = set(range(cases[0].ranks)) - runs[at, kind.board] - set().union(*reasons)
            if missing:
                raise rigs.BadRig(f"{plan.rig.path}: {plans.test_name(test)}: the programs of ranks {numbers(missing)} never run on "
                                  f"{kind.board}; expected enough rotations (rotate, in {plan.tests.path})")


def section(plan, cases):
    """Returns the rig's part of the page. Raises BadRig as check() does."""
    check(plan, cases)
    runs, kinds = placed(plan, cases), [kind.board for kind in plan.rig.kinds()]
    ranks = cases[0].ranks
    names = {board: sum(seat.board == board for seat in plan.rig.seats) for board in kinds}
    lines = [f"`{plan.rig.path.resolve().relative_to(rigs.ROOT)}`, on `{plan.tests.entry.topology}`: " +
             ", ".join(f"{count} {board}" for board, count in names.items()) + ".", ""]
    for seat in {seat.board: seat for seat in plan.rig.seats if seat.has_cable()}.values():
        cable = seat.how.cable
        lines += [f"Cables of {seat.board}: one byte in {cable.lose} lost, in {cable.repeat} repeated, and in {cable.cut} cut off with the "
                  "next ones.", ""]
    lines += ["| program | cases | " + " | ".join(kinds) + " |", "| --- | ---: |" + " ---: |" * len(kinds)]
    for at, test in enumerate(plan.tests.entry.test):
        count = sum(case.test == at and case.victim is None and case.refused is None for case in cases)
        lines.append(f"| {plans.test_name(test)} | {count} | " +
                     " | ".join(f"{len(runs[at, board])} of {ranks}" for board in kinds) + " |")
    lines += ["", "| board | killed | bad images |", "| --- | ---: | --- |"]
    for board in kinds:
        killed = sum(case.victim is not None and not case.left_out and case.seats[case.victim].board == board for case in cases)
        names = [case.refused[1] for case in cases if case.refused and not case.left_out and
                 any(case.seats[rank].board == board for rank in case.refused[0])]
        lines.append(f"| {board} | {killed} | {', '.join(names) or 'none'} |")
    left = excesses(plan, cases)
    if left:
        lines += ["", "| board | program | ranks | left out, because | in its place |", "| --- | --- | --- | --- | --- |"]
        for (board, at, message, why), (which, instead) in sorted(left.items()):
            program = message or plans.test_name(plan.tests.entry.test[at])
            lines.append(f"| {board} | {program} | {numbers(which)} | {why} | {', '.join(sorted(instead))} |")
    return "\n".join(lines) + "\n"


def part(page, name):
    """Returns the part of a page below the heading of a rig; None without one."""
    found = re.search(rf"^## {re.escape(name)}\n\n(.*?)(?=\n## |\Z)", page, re.M | re.S)
    return found and found[1]


def write(path, name, text):
    """Puts a rig's part into the page, in place of its former one."""
    page = pathlib.Path(path).read_text()
    former = part(page, name)
    heading = f"## {name}\n\n"
    if former is None:
        page = page.rstrip("\n") + f"\n\n{heading}{text}"
    else:
        page = page.replace(heading + former, heading + text)
    pathlib.Path(path).write_text(page)
