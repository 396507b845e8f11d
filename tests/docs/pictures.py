#!/usr/bin/python3
"""Draws the pictures of docs/algorithms and docs/results by the commands that their pages give, and those of docs/pictures.

pictures.py BUILD ROOT          draws them into BUILD/docs/pictures, with index.html, which has each below its caption, page and command
pictures.py --check BUILD ROOT  draws twice: a sample, or all with ESPALIER_WHOLE=1

Exit status 1: wrong() finds something. A page has the line "Picture: CAPTION: `COMMAND`", or "`COMMAND` draws:" above a list of
"- `FILE.svg`: CAPTION"; pictures.toml has the commands for docs/pictures."""
import concurrent.futures
import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

MAX_BYTES = 40_000
STRIDE = 8  # of a sample of the commands that begin with espalier
PAPERS = "build/tests/papers/papers"  # takes 30 s, and the test papers compares its pictures: in no sample
PICTURES = re.compile(r"^(?:Picture: (.+): `([^`\n]* ([\w-]+\.svg)\b[^`\n]*)`$|`([^`\n]+)` draws:\n\n((?:- `[\w-]+\.svg`: .+\n)+))", re.M)


def named(root, kept):
    """{command: {file: (caption, page)}}; `kept`: that of pictures.toml."""
    found = {command: {f"{name}.svg": (name, "docs/pictures")} for name, command in kept.items()}
    for path in sorted(path for folder in ("algorithms", "results") for path in (root / "docs" / folder).glob("*.md")):
        for caption, command, file, other, items in PICTURES.findall(path.read_text()):
            for file, caption in re.findall(r"`(.+\.svg)`: (.+)", items) or [(file, caption)]:
                found.setdefault(command or other, {}).setdefault(file, (caption, str(path.relative_to(root))))
    return found


def drawn(command, build, root):
    """{file: bytes} of the pictures that a command draws in a new folder, which is its build/docs/pictures."""
    places = {"build": build, "examples": root / "examples", "tests": root / "tests", "build/docs/pictures": "."}
    here = re.sub(r"(?<![\w/.-])(build/docs/pictures|build|examples|tests)(?![\w-])", lambda found: str(places[found[1]]), command)
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(here, shell=True, cwd=folder, env={**os.environ, "PATH": f"{build}/tools:{os.environ['PATH']}"},
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if ran.returncode != 0:
            sys.exit(f"pictures.py: {command}: exit status {ran.returncode}: {ran.stderr.strip()}")
        return {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("*.svg")}


def wrong(command, expected, pictures, again, kept):
    """What is wrong with the pictures that a command has drawn, and drawn again; `kept`: the folder docs/pictures."""
    for file in sorted({*expected, *pictures, *again}):
        data = pictures.get(file)
        if data is None or file not in expected:
            yield f"{file}: " + (f"`{command}` does not draw it" if data is None else f"no page names it, and `{command}` draws it")
        elif (kept / file).exists() and {(kept / file).read_bytes()} != {data, again.get(file)}:
            yield f"docs/pictures/{file} is not what `{command}` draws"
        elif not (kept / file).exists() and (not data.startswith(b"<svg ") or len(data) > MAX_BYTES or data != again.get(file)):
            yield f"{file}: {len(data)} bytes; expected `{command}` to draw a picture of at most {MAX_BYTES}, each time the same"


def main(build, root, checks):
    listed, kept = tomllib.loads((root / "tests/docs/pictures.toml").read_text()), root / "docs/pictures"
    found = named(root, listed)
    commands, plain = list(found), [command for command in found if command.startswith("espalier ") and command not in listed.values()]
    if checks and os.environ.get("ESPALIER_WHOLE", "0") == "0":
        commands = [command for command in found if command not in plain and not command.startswith(PAPERS)] + plain[::STRIDE]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as executor:
        first, *again = (list(executor.map(lambda command: drawn(command, build, root), commands)) for _ in range(1 + checks))
    bad = [line for command, *both in zip(commands, first, *again or [first]) for line in wrong(command, found[command], *both, kept)]
    bad += [f"docs/pictures/{path.name}: no command draws it" for path in kept.glob("*.svg") if not any(path.name in files for files in found.values())]
    shown = "" if checks else f"; {build}/docs/pictures/index.html shows them"
    print("\n".join(bad) or f"{sum(map(len, first))} of {sum(map(len, found.values()))} pictures drawn{shown}")
    if not checks:
        text = "<!DOCTYPE html>\n<meta charset=utf-8>\n<title>Pictures</title>\n"
        (build / "docs/pictures").mkdir(parents=True, exist_ok=True)
        for command, pictures in zip(commands, first):
            for file, data in pictures.items():
                (build / "docs/pictures" / file).write_bytes(data)
                words = [html.escape(word) for word in (*found[command].get(file, ("", "")), command)]
                text += "<h2>{}</h2>\n<p>{}: <code>{}</code></p>\n<img src={}>\n".format(*words, file)
        (build / "docs/pictures/index.html").write_text(text)
    return 1 if bad else 0


if __name__ == "__main__":
    check = sys.argv[1:2] == ["--check"]
    if len(sys.argv) != 3 + check:
        sys.exit(__doc__)
    sys.exit(main(*(pathlib.Path(path).resolve() for path in sys.argv[1 + check:]), check))
