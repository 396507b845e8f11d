"""Finds the problems of a case, one line each; no line means that the case passed."""
import json
import re

import rig as rigs

# The output of a Linux node, and the output of a gateway about its board.
SLOT = re.compile(r"node-(\d+)\.flash slot ([01]): (refused|boots), ([^\n]*)")
BOARD = re.compile(r"node (\d+): board \S+ boots slot ([01]), [^\n]*; slot 0: ([^;\n]*); slot 1: ([^;\n]*)")
# The status's number and what follows it, e.g. the two security counters of "rolled back".
STATUS = re.compile(r" \(status \d+\).*$")
# Where a node stood when it failed.
WHERE = re.compile(r"in step \d+ .*(rank|router) \d+.* \(link \d+")


def named(case, rank):
    """Returns a node's name with its device, e.g. "m3-0 (rank 6)"."""
    if rank >= len(case.seats):
        return f"node {rank}"
    return named_seat(case.seats[rank], rank, case.ranks is not None and rank >= case.ranks)


def named_seat(seat, rank, is_router=False):
    return f"{seat.name} ({'router' if is_router else 'rank'} {rank})"


def same_files(case, simulated, real):
    """Results and logs must be the same bytes in both folders."""
    problems = []
    names = {path.name for folder in (simulated, real) if folder.is_dir() for path in folder.iterdir()
             if path.suffix in (".bin", ".events")}
    if not any(name.endswith(".events") for name in names):
        return [f"there are no logs in {simulated} and {real}"]
    for name in sorted(names):
        what, number = re.fullmatch(r"(rank|node)-(\d+)\.\w+", name).groups()
        about = f"{named(case, int(number))}: its {'result' if what == 'rank' else 'log'}"
        contents = [(folder / name).read_bytes() if (folder / name).is_file() else None for folder in (simulated, real)]
        if None in contents:
            problems.append(f"{about} is missing {'in the simulation' if contents[0] is None else 'of the run'}")
        elif contents[0] != contents[1]:
            at = next((at for at, (a, b) in enumerate(zip(*contents)) if a != b), min(map(len, contents)))
            problems.append(f"{about} differs from the simulation's from byte {at} on ({len(contents[1])} bytes, "
                            f"{len(contents[0])} simulated)")
    return problems


def boots(error):
    """Reads the boot reports on stderr; returns {rank: {slot: "boots" or why it was refused}}."""
    found = {}
    for rank, slot, verb, why in SLOT.findall(error):
        found.setdefault(int(rank), {})[int(slot)] = STATUS.sub("", why) if verb == "refused" else verb
    for rank, boots, *slots in BOARD.findall(error):
        found[int(rank)] = {slot: STATUS.sub("", why) for slot, why in enumerate(slots) if why != "older"}
        found[int(rank)][int(boots)] = "boots"
    return found


def all_boot(case, error):
    """Every rank must boot from its flash; a rank with a bad image must boot the other slot, with the correct status."""
    problems, found = [], boots(error)
    for rank in range(len(case.seats)):
        slots = found.get(rank, {})
        if "boots" not in slots.values():
            problems.append(f"{named(case, rank)} did not say that it booted from its flash")
            continue
        if case.refused and rank in case.refused[0]:
            expected = {1: rigs.REFUSALS[case.refused[1]], 0: "boots"}
            problems += [f"{named(case, rank)}: slot {slot} says '{slots.get(slot, 'nothing')}'; expected '{what}'"
                         for slot, what in expected.items() if slots.get(slot) != what]
    return problems


def read_report(output, error):
    """Reads the output of `espalier run --format json`; returns (value or None, problems)."""
    try:
        return json.loads(output), []
    except json.JSONDecodeError:
        lines = [line for line in error.splitlines() if line.startswith("espalier")] or error.splitlines()[-1:]
        return None, ["no report: " + (lines[-1] if lines else "nothing on stderr")]


def nodes_of(report):
    return [node for run in report["runs"][-1:] for node in run["ranks"] + run.get("routers", [])]


def failures(case, report):
    """Returns one line per failed node: its device's name and its failure."""
    return [f"{named(case, node.get('rank', node.get('router')))}: {node['status']}" for node in nodes_of(report)
            if node.get("failed")]


def collective(case, status, output, error):
    """Returns the problems of a run that must succeed."""
    report, problems = read_report(output, error)
    if report is None:
        return problems
    problems = failures(case, report)
    problems += [f"{named(case, node['rank'])}: a wrong result" for node in nodes_of(report)
                 if node.get("checked") and not node.get("right") and not node.get("failed")]
    if problems:
        return problems
    if status != 0:
        return [f"espalier run ended with status {status}: {error.strip().splitlines()[-1] if error.strip() else 'no reason'}"]
    return all_boot(case, error) + same_files(case, case.simulated, case.folder / "real")


def is_refused_by_gateways(case):
    """Whether the bad image is another node's on bare-metal boards: these boot it, and their gateways refuse them."""
    return case.refused is not None and case.refused[1] == "wrong-node" and case.seats[case.refused[0][0]].is_bare()


def foreign(case, status, error):
    """Returns (problems, remark) of a run that must not begin, because the gateway of a board with another node's image refuses it."""
    rank = case.refused[0][0]
    line = f"its image is for node {(rank + 1) % len(case.seats)}, expected one for {rank}"
    problems = [] if status == 1 else [f"espalier run ended with status {status}; expected 1"]
    if not any(re.match(rf"espalier: rank {rank}\b", text) and line in text for text in error.splitlines()):
        problems.append(f"no line says of rank {rank} that {line}")
    return problems, f"{named(case, rank)}: {line}"


def kill(case, deadline_s, status, output, error):
    """Returns the problems of a run whose victim was killed: all others must end in time, each naming the victim, and the step and the
    link at which it stood."""
    report, problems = read_report(output, error)
    if report is None:
        return problems
    if status != 1:
        problems.append(f"espalier run ended with status {status}; expected 1")
    nodes = nodes_of(report)
    if len(nodes) < len(case.seats):
        problems.append(f"{rigs.counted(len(nodes), 'node')} reported; expected {len(case.seats)}")
    victim = named(case, case.victim)
    for node in nodes:
        rank = node.get("rank", node.get("router"))
        who, cause = named(case, rank), node.get("cause")
        if not node.get("failed"):
            problems.append(f"{who} did not fail, though {victim} was killed")
        elif rank == case.victim:
            if not node.get("disturbed"):
                problems.append(f"{who} was to be killed and was not: {node['status']}")
        elif cause is None:
            problems.append(f"{who} names no cause: {node['status']}")
        elif (cause["status"], cause["peer"]) != ("dead link", case.victim):
            problems.append(f"{who} blames {named(case, cause['peer'])} ({cause['status']}); expected a dead link to {victim}")
        elif not WHERE.search(node["status"]):
            problems.append(f"{who} does not say in which step and at which link it stood: {node['status']}")
        elif node["after_disturbance_s"] > 2 * deadline_s:
            problems.append(f"{who} ended {node['after_disturbance_s']:.2f} s after {victim} was killed; expected at most "
                            f"{2 * deadline_s:g} s")
    return problems


def lose(status, output, error):
    """Returns (problems, remark) of spares-cluster: all others must go on by themselves."""
    if status == 0:
        return [], output.strip()
    lines = [line for line in error.splitlines() if line.startswith("spares-cluster: ")] or error.splitlines()[-1:]
    return [lines[-1].removeprefix("spares-cluster: ") if lines else f"spares-cluster ended with status {status}"], ""


def last_to_end(report, victim):
    """Returns the seconds from the kill to the end of the last other node."""
    return max((node["after_disturbance_s"] for node in nodes_of(report)
                if node.get("rank", node.get("router")) != victim and "after_disturbance_s" in node), default=0)
