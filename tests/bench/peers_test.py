#!/usr/bin/python3
"""peers.py measures, prints and refuses. A contestant that is not installed is not measured, and the test prints that.

peers_test.py sample BUILD            a small run on this machine, and its page
peers_test.py page BUILD RUNS FOLDER  FOLDER/peers.md is what peers.py prints of RUNS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import peers_profile

PEERS = str(pathlib.Path(__file__).with_name("peers.py"))


def peers(*words, status=0):
    """Returns what peers.py prints, on both streams."""
    done = subprocess.run([PEERS, *map(str, words)], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"peers.py {' '.join(map(str, words))}\nexit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def expect(what, where):
    if what not in where:
        sys.exit(f"peers_test.py: '{what}' is not in\n{where}")


def sample(build, folder):
    out = folder / "runs.json"
    words = ("--build", build, "--out", out, "--places", "machine-2", "--quick")
    _, said = peers(*words, "--collectives", "broadcast", "--sizes", "1024,64Ki")
    print(said)
    cell = json.loads(out.read_text())["cells"]["machine-2 broadcast 1024"]
    peers(*words, "--collectives", "broadcast,barrier", "--sizes", "1024", "--contestants", "espalier,openmpi,mpich")  # adds up
    cells = json.loads(out.read_text())["cells"]
    assert list(cells) == ["machine-2 broadcast 1024", "machine-2 broadcast 65536", "machine-2 barrier 0"], list(cells)
    for name, contestant in cells["machine-2 broadcast 1024"].items():
        for start in ("warm", "cold"):
            times = 1 if name in ("shared", "measured", "gloo") else 2
            assert 6 == len(cell[name][start]) == len(contestant[start]) / times and min(contestant[start]) > 0, (name, contestant)
    runs = json.loads(out.read_text())
    assert len(set(runs["commits"].values())) == 1 and set(runs["commits"]) == set(cells), runs["commits"]
    runs["commits"]["machine-2 broadcast 1024"] = "another"
    out.write_text(json.dumps(runs))
    peers(*words, "--collectives", "broadcast", "--sizes", "1024")  # replaces the cell of another commit
    replaced = json.loads(out.read_text())["cells"]
    assert 6 == len(replaced["machine-2 broadcast 1024"]["espalier"]["warm"]), replaced
    assert replaced["machine-2 barrier 0"] == cells["machine-2 barrier 0"]
    predictions(out, folder)
    profiles(out, folder)
    if set(cell) == {"espalier", "shared", "measured"}:
        print("no other contestant is installed, so there is no page")
        return
    peers("--build", build, "--page", out, "--plots", folder)
    page, _ = peers("--page", out)
    print(page)
    for line in ("## 2 processes on one machine", "| broadcast | 1 KiB | ", "| broadcast | 64 KiB | ", "| barrier | - | ", "| collective | size | Espalier | shared | measured |"):
        expect(line, page)
    expect("<svg", (folder / "peers-machine-2-broadcast.svg").read_text())


def predictions(out, folder):
    """A page with a time that was predicted, and one that was predicted badly."""
    runs = json.loads(out.read_text())
    for collective, predicted in (("broadcast", 86000), ("scan", 60000)):
        runs["commits"][f"hosts-8 {collective} 1048576"] = "0"
        runs["cells"][f"hosts-8 {collective} 1048576"] = {"measured": {"by": "chain", "warm": [90000, 90000, 90600], "cold": [], "predicted": predicted}}
    runs["rings"]["hosts-8"] = [0.7]
    changed = folder / "predicted.json"
    changed.write_text(json.dumps(runs))
    page, _ = peers("--page", changed)
    for line in ("### Predicted", "| broadcast | 1 MiB | 86000 | 90000 | 1.05 | chain |", "| scan | 1 MiB | 60000 | 90000 | 1.50 | chain |",
                 "than the measured model predicted | 0 | 0 | 1 | 2 | 1.50: scan, 1 MiB, 8 hosts"):
        expect(line, page)


def profiles(out, folder):
    """Whose time perf's lines are, and the page's table of them."""
    shares = peers_profile.shares("""# Overhead;Command        ;Shared Object       ;Symbol
 40.25%  ;espalier-bench ;[kernel.kallsyms]   ;[k] tcp_sendmsg
 20.50%  ;swapper        ;[kernel.kallsyms]   ;[k] default_idle
  8.05%  ;swapper        ;[kernel.kallsyms]   ;[k] net_rx_action
 20.00%  ;espalier-bench ;libfabric.so.1.18.2 ;[.] 0x00000000000a1f2c
  6.00%  ;espalier-bench ;espalier-bench      ;[.] espalier::Machine::work
  3.20%  ;espalier-bench ;libc.so.6           ;[.] __memmove_avx_unaligned_erms
  2.00%  ;perf           ;perf                ;[.] main
""")
    assert shares == {"Espalier": 6.0, "libfabric": 20.0, "C library": 3.2, "kernel": 48.3, "idle": 20.5, "other": 2.0}, shares
    runs = json.loads(out.read_text())
    runs["profiles"] = {"hosts-8 allgather 65536": {"commit": "0123456789", "shares": shares}}
    changed = folder / "profiled.json"
    changed.write_text(json.dumps(runs))
    page, _ = peers("--page", changed)
    for line in ("Sampled at 0123456789.", "| hosts-8 | allgather | 64 KiB | 6.0 | 20.0 | 3.2 | 48.3 | 20.5 | 2.0 |"):
        expect(line, page)


def refusals(folder):
    out = ("--out", folder / "refused.json")
    for words, reason in ((("--page", "x", "--sizes", "8"), "expected no"), (("--page", __file__), "is no file of results"), ((), "expected --out FILE"),
                          ((*out, "--places", "hosts-1"), "is no place"), ((*out, "--sizes", "12"), "no multiple of 8 bytes"), ((*out, "--profile", "--sizes", "8"), "expected no --sizes"),
                          ((*out, "--places", "machine-2", "--contestants", "forced"), "forced runs on hosts-P only"),
                          ((*out, "--collectives", "sort"), "is none of")):
        expect(reason, peers(*words, status=2)[1])
    # A contestant with a wrong result.
    program = folder / "tests/bench/peers-gloo"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\n[ "$1" != 0 ] || echo \'[{"bytes": 8, "warm_s": [1], "cold_s": [1], "wrong": 1}]\'\n')
    program.chmod(0o755)
    _, said = peers("--build", folder, *out, "--places", "machine-2", "--collectives", "broadcast", "--sizes", "8", "--contestants", "gloo", status=1)
    expect("gloo gave a wrong broadcast of 8 bytes on machine-2", said)


def sees_changes(runs, folder):
    """The page changes if a time does whose row it does not show."""
    kept = json.loads(pathlib.Path(runs).read_text())
    kept["cells"] = {key: cell for key, cell in kept["cells"].items() if key.startswith(("machine-2 scan ", "machine-2 reduce "))}
    few = pathlib.Path(folder) / "few.json"
    pages = []
    for more in (0, 1e-3):
        kept["cells"]["machine-2 scan 1048576"]["mpich"]["warm"] = [time * (1 + more) for time in kept["cells"]["machine-2 scan 1048576"]["mpich"]["warm"]]
        few.write_text(json.dumps(kept))
        pages.append(peers("--page", few)[0].splitlines())
    changed = [(one, other) for one, other in zip(*pages) if one != other]
    assert len(pages[0]) == len(pages[1]) and len(changed) == 1 and "digest" in changed[0][0], changed


def page(build, runs, folder):
    now, _ = peers("--build", build, "--page", runs, "--whole", pathlib.Path(build) / "tests/bench")
    if now != (pathlib.Path(folder) / "peers.md").read_text():
        sys.exit(f"peers.md in {folder}: old; peers.py --page {runs} >{folder}/peers.md writes it anew")
    with tempfile.TemporaryDirectory() as changes:
        sees_changes(runs, changes)
    print("peers.md is what peers.py prints")


def main():
    if sys.argv[1] == "page":
        page(*sys.argv[2:])
        return
    with tempfile.TemporaryDirectory() as folder:
        refusals(pathlib.Path(folder))
        sample(sys.argv[2], pathlib.Path(folder))


if __name__ == "__main__":
    main()
