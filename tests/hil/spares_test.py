#!/usr/bin/python3
"""spares_test.py --espalier PROGRAM --hosted PROGRAM --rig PROGRAM --gateway PROGRAM --cluster PROGRAM --node PROGRAM [--topology SPEC]
[--loss LOSS] [--over links|gateways|mixed] [--seeds N] [--deadline-ms N] [--output FILE]: boards that run as processes of this host, joined by framed
links alone, by their gateways, or by these with espalier-nodes between them. Each link, then each board, is cut in the middle of a collective: all survivors go on by
themselves, and the next ten collectives are right. Prints the flash that each board's spares take. By default a sample of the
losses; ESPALIER_WHOLE=1: all."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
import sample  # noqa: E402

# What the boards run, as tests/spares/recovery_test.cc.
PROGRAMS = [("allreduce", "two-tree", None), ("broadcast", "chain", 2), ("allgather", "ring", None), ("reduce", "two-tree", 1),
            ("reduce-scatter", "ring", None), ("barrier", "dissemination", None)]
OVER = ["links", "gateways", "mixed"]  # framed links alone; boards behind gateways; every other node is an espalier-node
LIMIT_S = 400  # only a hang takes as long


def call(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"spares: {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def make_board(folder):
    """The description of a board that is a process: like boards/mps2-an385, with a host's limits and with spares."""
    board = folder / "board"
    board.mkdir()
    links = "\n".join(f"link {{ device: 0 port: {port} }}" for port in range(8))
    (board / "board.textproto").write_text(f"""name: "hosted"
{links}
limits {{ spares: true selections: 0 }}
fabric {{ kind: SERIAL carrier: "ethernet" }}
flash {{ bytes: 1048576 block_bytes: 4096 unit_bytes: 16 }}
signature: ED25519
""")
    return board


def make_flash(args, folder):
    """Builds the images with spares, and installs them. Prints what `image build` says of each board's flash."""
    board = make_board(folder)
    files = []
    for collective, algorithm, root in PROGRAMS:
        files.append(folder / f"{collective}.esp")
        call([args.espalier, "compile", "--topology", args.topology, "--collective", collective, "--algorithm", algorithm,
              *(["--root", root] if root is not None else []), "--links", "hop-by-hop", "-o", files[-1]])
    call([args.espalier, "image", "keygen", "-o", folder / "key"])
    print(call([args.espalier, "image", "build", *files, "--board", board, "--release", "1.0.0", "--spares", "both", "--key",
                folder / "key", "-o", folder / "node-%r.img"]), end="", flush=True)
    call([args.espalier, "image", "build", *files, "--board", ROOT / "boards/linux-x86_64", "--release", "1.0.0", "--spares", "both",
          "--key", folder / "key", "-o", folder / "linux-%r.img"])
    for image in folder.glob("node-*.img"):
        call([args.espalier, "image", "install", image, "--board", board, "--flash", image.with_suffix(".flash"), "--public-key",
              folder / "key.pub", "--confirmed"])


def losses(args):
    """All links, then all boards."""
    found = json.loads(call([args.espalier, "topology", args.topology, "--format", "json"]))
    ends = sorted({(min(link["from"], link["to"]), max(link["from"], link["to"])) for link in found["links"]})
    return [f"link:{a},{b}" for a, b in ends] + [f"node:{v}" for v in range(found["ranks"])]


def cluster_words(args, made, over, loss):
    """Returns the arguments that only spares-cluster needs."""
    kind, numbers = loss.split(":")
    ends = [int(number) for number in numbers.split(",")]
    nodes = len(list(made.glob("node-*.flash")))
    linux = [] if over == "gateways" else list(range(1, nodes, 2))  # on mesh:3x3 each link then has a board at one end
    peers = [[link["peer"] for link in json.loads(call([args.espalier, "image", "show", made / f"node-{v}.img", "--format",
                                                        "json"]))["links"]] for v in range(nodes)]
    # A link of what is lost, at a board.
    board, peer = next((v, w) for v in range(nodes) for w in peers[v]
                       if v not in linux and ({v, w} == set(ends) if kind == "link" else ends[0] in (v, w)))
    words = ["--gateway", args.gateway, "--topology", args.topology, "--nodes", nodes, "--programs",
             ",".join(f"{collective}:{root or 0}" for collective, _, root in PROGRAMS), "--at",
             f"{board}:{peers[board].index(peer)}/{len(peers[board])}"]
    return words + (["--node", args.node, "--linux", ",".join(map(str, linux))] if linux else [])


def run(args, made, over, loss, seed):
    """Returns the line of one case; ends the program if it fails. The seed and the loss determine the collective and the moment."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path in [*made.glob("node-*.flash"), *made.glob("linux-*.img"), made / "key.pub"]:
            shutil.copy(path, folder)
        words = [args.rig if over == "links" else args.cluster, "--hosted", args.hosted, "--folder", folder, "--loss", loss, "--seed",
                 zlib.crc32(f"{loss} {seed}".encode()), "--deadline-ms", args.deadline_ms]
        if over != "links":
            words += cluster_words(args, made, over, loss)
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        try:
            output, error = process.communicate(timeout=LIMIT_S)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # its boards
            except ProcessLookupError:
                pass
        if process.returncode != 0:
            consoles = "".join(f"{path.name}: {path.read_text()}" for path in sorted(folder.glob("console-*")))
            if args.output:
                pathlib.Path(args.output).write_text(consoles)
            sys.exit(f"spares: {loss}, seed {seed}: {output}{error}")
        return output.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("espalier", "hosted", "rig", "gateway", "cluster", "node"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--topology", default="mesh:3x3")
    parser.add_argument("--loss", help="only this one: link:A,B or node:V")
    parser.add_argument("--over", choices=OVER, help="only these; default: all")
    parser.add_argument("--deadline-ms", type=int, default=3000, help="how long a link may be silent")
    parser.add_argument("--seeds", type=int, default=1, help="moments at which each is cut")
    parser.add_argument("--images", type=pathlib.Path, help="folder for the images; those of an earlier run are used again")
    parser.add_argument("--output", help="file for the boards' consoles after a failure")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        made = args.images or pathlib.Path(name)
        if not (made / "complete").exists():
            made.mkdir(exist_ok=True)
            make_flash(args, made)
            (made / "complete").touch()
        cases = [(over, loss) for over in ([args.over] if args.over else OVER)
                 for loss in ([args.loss] if args.loss else losses(args))]
        if not args.loss and os.environ.get("ESPALIER_WHOLE") != "1":
            dice = random.Random(sample.seed())
            cases = [dice.choice([case for case in cases if case[0] == over and case[1].startswith(kind)] or cases)
                     for over, kind in (("links", dice.choice(("link", "node"))), ("gateways", "link"), ("mixed", "node"))
                     if args.over in (None, over)]
        for over, loss in cases:
            for seed in range(args.seeds):
                begin = time.monotonic()
                line = run(args, made, over, loss, seed + 1)
                print(f"{line}; {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{len(cases) * args.seeds} losses, all survivors went on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
