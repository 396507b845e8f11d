#!/usr/bin/python3
"""Runs packed trees and paths on the graphs of docs/results/graphs.md, over mem: a node has one endpoint per lane of its own links, and no other.

run_test.py GRAPHS ESPALIER [--whole]     a sample, or all graphs of at most 32 nodes and all collectives (also ESPALIER_WHOLE=1)
"""
import json
import os
import subprocess
import sys

COLLECTIVES = ("broadcast", "reduce", "allgather", "reduce-scatter", "allreduce", "all-to-all")
SAMPLE = (("uneven-tree", "allreduce"), ("cube-mesh-8", "reduce-scatter"), ("hypercube-3", "broadcast"), ("uneven-tree", "all-to-all"))


def main():
    graphs, espalier = sys.argv[1:3]
    whole = sys.argv[3:] == ["--whole"] or os.environ.get("ESPALIER_WHOLE", "0") != "0"
    listed = [json.loads(line) for line in subprocess.run([graphs, "--list"], stdout=subprocess.PIPE, check=True).stdout.splitlines()]
    runs = 0
    for graph in listed:
        for collective in COLLECTIVES:
            if graph["nodes"] > 32 or not whole and (graph["topology"], collective) not in SAMPLE:
                continue
            command = [espalier, "run", "--topology", graph["spec"], "--collective", collective, "--algorithm",
                       "packed-paths" if collective == "all-to-all" else "packed-trees", "--links",
                       "hop-by-hop", "--provider", "mem", "--bytes", "4,64KiB", "--nodes-per-process", "16"]
            ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            last = ran.stdout.splitlines()[-1] if ran.stdout else ""
            print(f"{graph['topology']}, {collective}: {last}", flush=True)
            if ran.returncode != 0 or not last.startswith("ok: "):
                sys.exit(f"{' '.join(command)}\nexit status {ran.returncode}\n{ran.stdout}")
            runs += 1
    assert runs >= len(SAMPLE), f"{runs} runs"
    print(f"ok: {runs} runs", "" if whole else "(a sample; --whole: all)")


if __name__ == "__main__":
    main()
