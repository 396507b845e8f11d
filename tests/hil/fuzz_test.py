#!/usr/bin/python3
"""Changed rigs and test lists: each is refused with one line and exit status 2, or its cases are listed.

fuzz_test.py [--first SEED] [--seeds N]: the mutants of these seeds; by default 4000 from 1 on. A seed gives the same mutant each
time.
"""
import argparse
import contextlib
import functools
import io
import pathlib
import random
import re
import sys
import tempfile

import hil
import rig as rigs

HERE = pathlib.Path(__file__).resolve().parent
RIGS = [HERE / "default.textproto", HERE / "x86-64.textproto", HERE / "aarch64.textproto", HERE / "spares.textproto"]
LISTS = [HERE / "sample.textproto", HERE / "ranks-8.textproto", HERE / "spares-9.textproto"]
WORDS = re.findall(r"^\s*(?:repeated )?\w+ (\w+) = [0-9]+;", (rigs.ROOT / "proto/rig.proto").read_text(), re.M)
VALUES = ["0", "1", "-1", "4294967295", "4294967296", "1e9", "nan", "inf", "-0.0", "true", '""', '"a"', "'\\000'", "'\\377'", '"../x"',
          '"a/b"', '"%s%r"', '"\\033[2J"', '"' + "x" * 300 + '"', "{", "}", "[", "]", ":", "<", ">", ",", ";", "#", "\n"]
TOKEN = re.compile(r"\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*|[0-9.]+|\s+|.", re.S)


def change(text, dice):
    """Returns the text with one token, line or byte changed."""
    tokens = TOKEN.findall(text) or [""]
    at, other = dice.randrange(len(tokens)), dice.randrange(len(tokens))
    match dice.randrange(7):
        case 0:
            tokens[at] = dice.choice(VALUES)
        case 1:
            tokens[at] = dice.choice(WORDS)
        case 2:
            tokens[at] = ""
        case 3:
            tokens[at] = tokens[other]
        case 4:
            tokens[at] += tokens[other] + " "
        case 5:
            tokens[at] += f" {dice.choice(WORDS)}: {dice.choice(VALUES)} "
        case 6:
            tokens[at:at + 1] = tokens[min(at, other):max(at, other)]
    return "".join(tokens)


def mutant(seed):
    """Returns the bytes of a rig and of a test list."""
    dice = random.Random(seed)
    texts = [dice.choice(RIGS).read_text(), dice.choice(LISTS).read_text()]
    texts[0] = re.sub(r'(?m)^tests: .*$', 'tests: "list"', texts[0])
    for _ in range(dice.choice((1, 1, 2, 4))):
        which = dice.randrange(2)
        texts[which] = change(texts[which], dice)
    mutants = [text.encode() for text in texts]
    if dice.randrange(8) == 0:
        which = dice.randrange(2)
        content = bytearray(mutants[which] or b"x")
        content[dice.randrange(len(content))] = dice.randrange(256)
        mutants[which] = bytes(content)
    return mutants


def judge(folder, seed):
    """Returns the exit status of `hil.py --list`, and what is wrong with its output; "": nothing."""
    for name, content in zip(("rig", "list"), mutant(seed)):
        (folder / name).write_bytes(content)
    said, failed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(failed):
        try:
            status = hil.main([str(folder / "rig"), "--list"])
        except Exception as error:  # every one is a finding
            return None, f"{type(error).__name__}: {error}"
    line = failed.getvalue()
    if status == 0:
        return status, "" if said.getvalue() and not line else f"it lists no case, and says {line!r}"
    if status != 2 or said.getvalue():
        return status, f"status {status}, and it prints {said.getvalue()!r}"
    good = line.startswith("hil: ") and line.endswith("\n") and line[:-1].isprintable()
    return status, "" if good else f"it says {line!r}; expected one line"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=4000)
    options = parser.parse_args()
    rigs.schema = functools.lru_cache(None)(rigs.schema)  # it starts protoc
    wrong, listed = [], 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(options.first, options.first + options.seeds):
            status, why = judge(pathlib.Path(name), seed)
            listed += status == 0
            if why:
                wrong.append(f"seed {seed}: {why}")
    print(f"{options.seeds} mutants: {options.seeds - listed - len(wrong)} refused, {listed} listed, {len(wrong)} wrong")
    if not 0 < listed < options.seeds:
        wrong.append("the mutants are of one kind only; expected that some are refused and others are not")
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
