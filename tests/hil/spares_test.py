#!/usr/bin/python3
"""spares_test.py --espalier PROGRAM --hosted PROGRAM --rig PROGRAM --gateway PROGRAM --cluster PROGRAM --node PROGRAM [--topology SPEC]
[--over links|gateways|mixed] [--loss LOSS [--moment N] [--returns N]] [--moments N [--seed S]] [--results FILE] [--page FILE]
[--check FILE]: boards that run as processes of this host, joined by framed links alone, by their gateways, or by these with
espalier-nodes between them. A link or a board is lost in the middle of a collective: all survivors go on by themselves, and the next
ten collectives are right. A lost node is also started again: all take it in, and the next ten collectives are right on all. By default
a sample of the losses; ESPALIER_WHOLE=1: each link, then each node, then each node that comes back.

A number, the moment, determines the interrupted collective and when the loss comes. --moments: N random losses, each at a random
moment, for each --over; --seed determines them. A failure names the loss, the moment and the words that repeat it.
--results: notes each case there, and leaves out those that it has; --jobs: as many at once.
--page: writes docs/results/spares.md from --results. --check: compares the page's flash with that of new images, and its form."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
import zlib

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import sample  # noqa: E402
from processes import execute, output_of  # noqa: E402

# What the boards run, as tests/spares/recovery_test.cc.
PROGRAMS = [("allreduce", "two-tree", None), ("broadcast", "chain", 2), ("allgather", "ring", None), ("reduce", "two-tree", 1),
            ("reduce-scatter", "ring", None), ("barrier", "dissemination", None)]
BOARD = HERE / "hosted"
OVER = {"links": "boards, framed links alone", "gateways": "boards behind gateways",
        "mixed": "boards behind gateways, every other node an `espalier-node`"}
LIMIT_S = 600  # only a hang takes as long
RETURNS = 2  # how often a cluster takes a node in (Recovery::kReturns); one more is refused
REFUSALS_ONE_IN = {"links": 10, "gateways": 25, "mixed": 25}  # of so many random moments, one more case of RETURNS + 1 returns
RETURN = re.compile(r"(?:board|node) (\d+) started again after \d+ ms, (taken in|refused) in generation \d+ after ([0-9.]+) s")


def build_images(args, folder):
    """Builds the images of all boards, with and without spares. Returns the text of the build, and the words of one."""
    files = []
    for collective, algorithm, root in PROGRAMS:
        files.append(folder / f"{collective}.esp")
        output_of([args.espalier, "compile", "--topology", args.topology, "--collective", collective, "--algorithm", algorithm,
              *(["--root", root] if root is not None else []), "--links", "hop-by-hop", "-o", files[-1]])
    output_of([args.espalier, "image", "keygen", "-o", folder / "key"])
    build = [args.espalier, "image", "build", *files, "--release", "1.0.0", "--key", folder / "key"]
    text = output_of([*build, "--board", BOARD, "--spares", "both", "-o", folder / "node-%r.img"])
    output_of([*build, "--board", BOARD, "-o", folder / "plain-%r.img"])
    return text, build


def make_flash(args, folder):
    """Builds the images, and installs those of boards. Prints what `image build` says of each board's flash."""
    text, build = build_images(args, folder)
    print(text, end="", flush=True)
    output_of([*build, "--board", ROOT / "boards/linux-x86_64", "--spares", "both", "-o", folder / "linux-%r.img"])
    for image in folder.glob("node-*.img"):
        output_of([args.espalier, "image", "install", image, "--board", BOARD, "--flash", image.with_suffix(".flash"), "--public-key",
              folder / "key.pub", "--confirmed"])


def losses(args):
    """All links, then all boards."""
    found = json.loads(output_of([args.espalier, "topology", args.topology, "--format", "json"]))
    ends = sorted({(min(link["from"], link["to"]), max(link["from"], link["to"])) for link in found["links"]})
    return [f"link:{a},{b}" for a, b in ends] + [f"node:{v}" for v in range(found["ranks"])]


def peers_of(args, made, node):
    """Returns the nodes to which the links of a node lead."""
    shown = json.loads(output_of([args.espalier, "image", "show", made / f"node-{node}.img", "--format", "json"]))
    return [link["peer"] for link in shown["links"]]


def cluster_words(args, made, folder, over, loss):
    """Returns the words of spares-cluster for nodes with gateways."""
    ends = [int(number) for number in loss.split(":")[1].split(",")]
    nodes = len(list(made.glob("node-*.flash")))
    linux = [] if over == "gateways" else list(range(1, nodes, 2))  # on mesh:3x3 each link then has a board at one end
    words = [args.cluster, "--topology", args.topology, "--nodes", nodes, "--programs",
             ",".join(f"{collective}:{root or 0}" for collective, _, root in PROGRAMS)]
    at = None  # a link of what is lost, at a board
    for node in range(nodes):
        if node in linux:
            words += ["--start", f"{node}={args.node}"]
            continue
        peers = peers_of(args, made, node)
        for peer in peers:
            if at is None and ({node, peer} == set(ends) if len(ends) == 2 else ends[0] in (node, peer)):
                at = f"{node}:{peers.index(peer)}"
        relay, board, other, gateway = (folder / f"{end}{node}" for end in "rbsg")
        started = (f"{args.hosted} --device unix:{board},{relay} --flash {folder}/node-{node}.flash --public-key {folder}/key.pub "
                   "--board hosted")
        words += ["--start", f"{node}={args.gateway} --device unix:{gateway},{other} --start '{started}' --console "
                  f"{folder}/console-{node}", "--relay", f"{node}:{len(peers)}={relay},{board},{other},{gateway}"]
    if linux:
        words += ["--boots", ",".join(map(str, linux)), "--image", f"{folder}/linux-%r.img", "--public-key", f"{folder}/key.pub"]
    return words + ["--at", at]


def case_words(over, loss, moment, returns=0):
    return f"--over {over} --loss {loss} --moment {moment}" + (f" --returns {returns}" if returns else "")


def run(args, made, case):
    """Runs one case. Returns (whether it is right, its line)."""
    over, loss, moment, returns = (*case, 0)[:4]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in [*made.glob("node-*.flash"), *made.glob("linux-*.img"), made / "key.pub"]:
            shutil.copy(path, folder)
        words = [args.rig, "--hosted", args.hosted, "--folder", folder] if over == "links" else cluster_words(args, made, folder, over,
                                                                                                         loss)
        words += ["--loss", loss, "--seed", moment, "--deadline-ms", args.deadline_ms, *(["--returns", returns] if returns else [])]
        status, output, error = execute(words, LIMIT_S)
        if status == 0:
            return True, output.strip()
        if args.output:
            consoles = "".join(f"{path.name}: {path.read_text()}" for path in sorted(folder.glob("console-*")))
            pathlib.Path(args.output).write_text(consoles)
        return False, f"{case_words(*case)}: {output}{error}".strip()


def cases_of(args):
    """Returns all cases, (over, loss, moment) each, with the number of returns if there are any."""
    kinds = [args.over] if args.over else list(OVER)
    if args.loss:
        returns = [args.returns] if args.returns else []
        return [(over, args.loss, args.moment, *returns) for over in kinds]
    all_losses = losses(args)
    every = [(over, loss, zlib.crc32(f"{loss} 1".encode())) for over in kinds for loss in all_losses]
    nodes = [loss for loss in all_losses if loss.startswith("node")]
    every += [(over, loss, zlib.crc32(f"{loss} 1".encode()), 1) for over in kinds for loss in nodes]
    if args.moments:
        found = list(every) if args.results else []
        for over in kinds:
            dice = random.Random(f"{args.seed} {over}")
            found = found + [(over, dice.choice(all_losses), dice.randrange(2**32)) for _ in range(args.moments)]
        for over in kinds:
            dice = random.Random(f"{args.seed} returns" + ("" if over == "links" else f" {over}"))
            found = found + [(over, dice.choice(nodes), dice.randrange(2**32), RETURNS + 1)
                             for _ in range(args.moments // REFUSALS_ONE_IN[over])]
        return found
    if os.environ.get("ESPALIER_WHOLE") == "1":
        return every
    dice = random.Random(sample.seed())
    picked = []
    for over, kind in (("links", dice.choice(("link", "node"))), ("gateways", "link"), ("mixed", "node")):
        if over not in kinds:
            continue
        loss = dice.choice([loss for loss in all_losses if loss.startswith(kind)])
        picked.append((over, loss, dice.randrange(2**32)))
    over = dice.choice(kinds)
    return picked + [(over, dice.choice(nodes), dice.randrange(2**32), 1)]


def read_results(path):
    """Returns the noted cases: {case: {"right": ..., "line": ...}}."""
    if path is None or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {tuple(row["case"]): row for row in rows}


def run_all(args, made):
    """Runs the cases that have no result yet. Returns the number of all cases, and of those that are not right."""
    cases, known = cases_of(args), read_results(args.results)
    failed = sum(not known[case]["right"] for case in cases if case in known)

    def one(case):
        begin = time.monotonic()
        right, line = run(args, made, case)
        return case, right, line, time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, right, line, seconds in pool.map(one, [case for case in cases if case not in known]):
            print(f"{line}; {case_words(*case)}; {seconds:.1f} s" if right else f"FAILED: {line}", flush=True)
            failed += not right
            if args.results:
                with args.results.open("a") as file:
                    file.write(json.dumps({"case": case, "right": right, "line": line}) + "\n")
    return len(cases), failed


def flash_rows(folder):
    """Returns the table of each board's flash."""
    rows = ["| node | image without spares | spares | image |", "| ---: | ---: | ---: | ---: |"]
    for node in range(len(list(folder.glob("node-*.img")))):
        plain, whole = ((folder / f"{kind}-{node}.img").stat().st_size for kind in ("plain", "node"))
        rows.append(f"| {node} | {plain} | {whole - plain} | {whole} |")
    return rows


def table_rows(args, results):
    """Returns the tables of losses and of random moments."""
    all_losses = losses(args)
    fixed = {(over, loss): zlib.crc32(f"{loss} 1".encode()) for over in OVER for loss in all_losses}
    summary = ["| rig | losses right | moments right | time to the next collective: least | median | most |",
               "| --- | ---: | ---: | ---: | ---: | ---: |"]
    by_loss = ["| loss | " + " | ".join(f"{over}: moments right | median time" for over in OVER) + " |",
               "| --- | " + " | ".join("---: | ---:" for _ in OVER) + " |"]

    def seconds(rows):
        return [float(re.search(r"the next collective after ([0-9.]+) s", row["line"])[1]) for row in rows if row["right"]]

    def right(rows):
        return f"{sum(row['right'] for row in rows)} of {len(rows)}"

    for over, what in OVER.items():
        rows = [row for case, row in results.items() if case[0] == over and len(case) == 3]
        each = [row for case, row in results.items() if len(case) == 3 and case[0] == over and fixed[over, case[1]] == case[2]]
        moments = [row for row in rows if row not in each]
        times = seconds(rows)
        summary.append(f"| {what} (`{over}`) | {right(each)} | {right(moments)} | {min(times):.2f} s | "
                       f"{statistics.median(times):.2f} s | {max(times):.2f} s |")
    for loss in all_losses:
        cells = []
        for over in OVER:
            rows = [row for case, row in results.items() if case[:2] == (over, loss) and len(case) == 3]
            times = seconds(rows)
            cells.append(f"{right(rows)} | {statistics.median(times):.2f} s" if times else f"{right(rows)} |")
        by_loss.append(f"| {loss} | " + " | ".join(cells) + " |")
    failures = [f"- {row['line']}" for row in results.values() if not row["right"]]
    return summary, by_loss, failures


def return_rows(args, results):
    """Returns the tables of nodes that come back: of each rig, and of each node."""
    nodes = [int(loss.split(":")[1]) for loss in losses(args) if loss.startswith("node")]
    rigs = ["| rig | cases right | came back | taken in | refused: the third | time until taken in: median | worst |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    by_node = ["| node | " + " | ".join(f"{over}: taken in | median | worst" for over in OVER) + " |",
               "| ---: | " + " | ".join("---: | ---: | ---:" for _ in OVER) + " |"]
    cells = {node: [] for node in nodes}

    def figures(times):
        return f"{statistics.median(times):.2f} s | {max(times):.2f} s" if times else "|"

    for over, what in OVER.items():
        rows = [row for case, row in results.items() if len(case) == 4 and case[0] == over]
        ends = [found for row in rows for found in RETURN.findall(row["line"]) if row["right"]]
        times = {node: [float(seconds) for number, end, seconds in ends if end == "taken in" and int(number) == node] for node in nodes}
        taken_in = sum(times.values(), [])
        rigs.append(f"| {what} (`{over}`) | {sum(row['right'] for row in rows)} of {len(rows)} | {len(ends)} | {len(taken_in)} | "
                    f"{len(ends) - len(taken_in)} | {figures(taken_in)} |")
        for node in nodes:
            cells[node].append(f"{len(times[node])} | {figures(times[node])}")
    by_node += [f"| {node} | " + " | ".join(row) + " |" for node, row in cells.items()]
    return rigs + ["", "By node; in the rig `mixed`, nodes with an odd number are `espalier-node`s, and all others boards:", ""] + by_node


def page(args, folder, results):
    summary, by_loss, failures = table_rows(args, results)
    return "\n".join([
        "# Nine nodes that lose a link or a node", "",
        f"Written by `tests/hil/spares_test.py ... --moments {args.moments} --seed {args.seed} --results FILE --page "
        "docs/results/spares.md`", "(`meson test -C build rig-spares --verbose` prints the words for the dots). "
        "[spares.md](../spares.md) explains what is tested.", "",
        f"Nine nodes on {args.topology} run six collectives. Each of the 12 links, then each of the 9 nodes, is lost in the middle "
        "of a", f"collective, and then {args.moments} random losses at random moments, in each of three rigs. A case is right if all "
        "survivors go on by themselves,", "all without what was lost, and if the interrupted collectives and the next ten have the "
        "bytes of a plain reference.", "",
        f"The deadline D is {args.deadline_ms / 1000:g} s. The time is from the loss until a board has received eight messages over a "
        "link of the spare. The", "agreement sends fewer, so by then collectives of the spare run. A link takes 7/4 D: D until it is "
        "found dead, and 3/4 D until all are", "known to have heard. A node takes twice as long, because the spare of a link is tried "
        "first.", "",
        *summary, "", "Failures:", "", *(failures or ["- none"]), "", "By loss, with the random moments:", "", *by_loss, "",
        "## Returns", "", "A lost node is started again up to 2 D after ten collectives without it. It boots, asks, and is taken in: over framed "
        "links alone while", "the others run collectives, and otherwise between two runs. Then ten collectives must be right on all nine. The time "
        "is from its start. A", "board asks for D/2 over the links of each of the other 8 generations, and starts anew if none was right. In each rig "
        "each node comes back", f"once. In further cases random nodes are lost and come back one after the other: {RETURNS} are taken in, and the "
        "third must be refused.", "",
        *return_rows(args, results), "",
        "## Flash", "", f"The bytes of each board's image for six collectives on {args.topology}, without spares, and with "
        "`--spares both`:", "", *flash_rows(folder), ""])


def check_page(args, folder):
    """The page's flash must be that of new images, and all its cases right."""
    text = args.check.read_text()
    for row in flash_rows(folder):
        if row not in text.splitlines():
            return f"{args.check} is old; expected the row {row}"
    for over, what in OVER.items():
        row = re.search(rf"^\| {re.escape(what)} \(`{over}`\) \| (\d+) of (\d+) \| (\d+) of (\d+) \|", text, re.M)
        if row is None or row[1] != row[2] or row[3] != row[4] or int(row[1]) < len(losses(args)) or int(row[3]) < 100:
            return f"{args.check}: expected all losses and 100 moments right over {over}"
    for loss in losses(args):
        if f"\n| {loss} | " not in text:
            return f"{args.check} is old; expected a row for {loss}"
    for over, what in OVER.items():
        row = re.search(rf"^\| {re.escape(what)} \(`{over}`\) \| (\d+) of (\d+) \| (\d+) \| (\d+) \| (\d+) \| [0-9.]+ s \| [0-9.]+ s \|$",
                        text, re.M)
        nodes, least = sum(loss.startswith("node") for loss in losses(args)), 100 // REFUSALS_ONE_IN[over]
        # Each node once, and the cases with a refusal.
        if row is None or row[1] != row[2] or int(row[5]) < least or int(row[3]) != int(row[4]) + int(row[5]) or (
                int(row[2]) != nodes + int(row[5]) or int(row[4]) != nodes + RETURNS * int(row[5])):
            return f"{args.check}: expected that each node came back over {over}, and {least} refusals"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("espalier", "hosted", "rig", "gateway", "cluster", "node"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--topology", default="mesh:3x3")
    parser.add_argument("--loss", help="only this one: link:A,B or node:V")
    parser.add_argument("--moment", type=int, default=1, help="of --loss")
    parser.add_argument("--returns", type=int, default=0, help=f"of --loss node:V: the node comes back, then random ones; "
                        f"{RETURNS + 1}: the last is refused")
    parser.add_argument("--moments", type=int, default=0, help="random losses for each --over, at random moments")
    parser.add_argument("--seed", type=int, default=1, help="of --moments")
    parser.add_argument("--over", choices=list(OVER), help="only these; default: all")
    parser.add_argument("--deadline-ms", type=int, default=3000, help="how long a link may be silent")
    parser.add_argument("--jobs", type=int, default=1, help="cases that run at once")
    parser.add_argument("--images", type=pathlib.Path, help="folder for the images; those of an earlier run are used again")
    parser.add_argument("--results", type=pathlib.Path, help="file of the cases that have run; with --moments also every loss once")
    parser.add_argument("--page", type=pathlib.Path, help="writes the page there")
    parser.add_argument("--check", type=pathlib.Path, help="compares this page, and runs nothing")
    parser.add_argument("--output", help="file for the boards' consoles after a failure")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        made = args.images or pathlib.Path(name)
        if args.check:
            build_images(args, made)
            wrong = check_page(args, made)
            return f"spares: {wrong}" if wrong else 0
        if not (made / "complete").exists():
            shutil.rmtree(made, ignore_errors=True)  # of a run that was ended
            made.mkdir()
            make_flash(args, made)
            (made / "complete").touch()
        count, failed = run_all(args, made)
        if args.page:
            args.page.write_text(page(args, made, read_results(args.results)))
    print(f"{count} losses, all survivors went on" if failed == 0 else f"{count} losses, {failed} FAILED")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
