#!/usr/bin/python3
"""Stands in for the espalier command in hil_test.py. $FAKE names the fault of `run`: right (none), silent (forever), failed,
loud (failed, with an escape sequence), wrong (a result), lost (a log), dumb (no report), late (a node ended late), blamed (a live
node), vague (no step), haunted (leaves a process), littered (leaves a file). With small, a microbit holds one program, and of node 1
none. $FAKE_LOG gets the words of every call."""
import json
import os
import pathlib
import subprocess
import sys
import time

RANKS = 2
WHERE = ", in step 3 waiting to receive from rank 0 (link 0, action 5)"


def option(name):
    words = sys.argv[1:]
    return words[words.index(name) + 1] if name in words else None


def leave(folder, wrong=None, lost=None):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for rank in range(RANKS):
        (folder / f"rank-{rank}.bin").write_bytes(b"right" if rank != wrong else b"rigHt")
        if rank != lost:
            (folder / f"node-{rank}.events").write_bytes(bytes(16))


def run(how):
    pathlib.Path(os.environ["FAKE_LOG"] + ".pid").write_text(str(os.getpid()))
    while how == "silent":
        time.sleep(1)
    if how == "dumb":
        print("espalier: node 1 did not start: its board says nothing", file=sys.stderr)
        return 1
    if how == "haunted":
        ghost = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 start_new_session=True)
        pathlib.Path(os.environ["FAKE_LOG"] + ".pid").write_text(str(ghost.pid))
    if how == "littered":
        (pathlib.Path(os.environ["TMPDIR"]) / "crumb").touch()
    flash = option("--flash").split("=", 1)[1].replace("%r", "{}")
    print(f"boot: {flash.format(0)} slot 0: boots, confirmed\nboot: {flash.format(0)} slot 1: refused, corrupt (status 5)\n"
          "espalier-gateway: node 1: board m3 boots slot 0, release 1.0.0; slot 0: ok; slot 1: corrupt (status 5)",
          file=sys.stderr)
    ranks = [{"rank": rank, "status": "ok", "checked": True, "right": True} for rank in range(RANKS)]
    victim = option("--kill")
    if victim:
        victim = int(victim.split("@")[0])
        ranks[victim].update(failed=True, right=False, disturbed=True, status="killed by signal 9")
        other = ranks[1 - victim]
        other.update(failed=True, right=False, status="dead link" + ("" if how == "vague" else WHERE), after_disturbance_s=99 if how == "late" else 1.5,
                     cause={"status": "dead link", "detector": 1 - victim, "peer": 1 - victim if how == "blamed" else victim})
        print(json.dumps({"runs": [{"ranks": ranks, "routers": []}]}))
        return 1
    if how in ("failed", "loud"):
        words = "\x1b[2J\u202e" if how == "loud" else ""
        ranks[1].update(failed=True, right=False, status=f"dead link: no word of rank 0{words}")
        print(json.dumps({"runs": [{"ranks": ranks, "routers": []}]}))
        return 1
    leave(option("--output"), wrong=1 if how == "wrong" else None, lost=0 if how == "lost" else None)
    print(json.dumps({"runs": [{"ranks": ranks, "routers": []}]}))
    return 0


def build():
    """Returns why the board is too small; "" if it is not."""
    if os.environ["FAKE"] == "small" and option("--board").endswith("microbit"):
        count = sum(word.endswith(".esp") for word in sys.argv)
        if count > 1:
            return f"{count} schedules; board 'microbit' has room for 1 program"
        if option("--node") == "1":
            return "the programs of node 1 need 4 links; board 'microbit' has 3"
    pathlib.Path(option("-o")).write_bytes(b"made")
    return ""


def main():
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    what = sys.argv[1] if sys.argv[1] != "image" else "image " + sys.argv[2]
    if what == "run":
        return run(os.environ["FAKE"])
    if what == "simulate":
        leave(option("--output"))
        print(json.dumps({"segments": 1, "blocks": 1}))
    elif what == "show":
        print(json.dumps({"ranks": RANKS, "programs": [{"scratch_blocks": 1}] * RANKS}))
    elif what == "image keygen":
        pathlib.Path(option("-o") + ".pub").write_text("key")
    elif what == "image show":
        print(json.dumps({"links": [{"peer": 1}]}))
    elif what == "topology":
        links = [{"from": a, "to": b} for a in range(RANKS) for b in range(RANKS) if a != b]
        print(json.dumps({"ranks": RANKS, "nodes": list(range(RANKS)), "links": links}))
    elif what == "compile":
        pathlib.Path(option("-o")).write_bytes(b"made")
    elif what == "image build":
        why = build()
        if why:
            print(f"espalier: {why}", file=sys.stderr)
            return 2
    elif what == "image install":
        pathlib.Path(option("--flash")).write_bytes(bytes(1 << 20))
    return 0


if __name__ == "__main__":
    sys.exit(main())
