#!/usr/bin/python3
"""Stands in for the espalier command in hil_test.py. $FAKE names the fault of `run`: right (none), silent (forever), failed,
loud (failed, with an escape sequence), wrong (a result), lost (a log), dumb (no report), killed, late (a node ended late), blamed (a live node); $FAKE_LOG gets the
words of every call."""
import json
import os
import pathlib
import sys
import time

RANKS = 2


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
        other.update(failed=True, right=False, status="dead link", after_disturbance_s=99 if how == "late" else 1.5,
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


def main():
    with open(os.environ["FAKE_LOG"], "a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    what = sys.argv[1] if sys.argv[1] != "image" else sys.argv[2]
    if what == "run":
        return run(os.environ["FAKE"])
    if what == "simulate":
        leave(option("--output"))
    elif what == "keygen":
        pathlib.Path(option("-o") + ".pub").write_text("key")
    elif what == "show":
        print(json.dumps({"links": [{"peer": 1}]}))
    elif what == "topology":
        print(json.dumps({"ranks": RANKS, "nodes": list(range(RANKS))}))
    elif what in ("compile", "build"):
        pathlib.Path(option("-o")).write_bytes(b"made")
    elif what == "install":
        pathlib.Path(option("--flash")).write_bytes(bytes(1 << 20))
    return 0


if __name__ == "__main__":
    sys.exit(main())
