#!/usr/bin/python3
"""copied_board_test.py ROOT: copies boards/mps2-an385 to a throw-away bare-metal board by the steps of boards/README.md, over its
UART and without signatures; builds its firmware, boots an image for it, and runs a collective on it. Only its folder is new."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NAME = "throw-away"


def call(words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def replace(path, pattern, text):
    found = path.read_text()
    assert re.search(pattern, found), f"{path} has no {pattern}"
    path.write_text(re.sub(pattern, text, found))


def copy_board(root, tree):
    """The sources unchanged, except boards/, which has one more board."""
    for source in root.iterdir():
        if source.name != "boards" and not source.name.startswith((".", "build")):
            (tree / source.name).symlink_to(source)
    (tree / "build").symlink_to(root / "build")  # what ./setup.sh fetched
    shutil.copytree(root / "boards", tree / "boards")
    board = tree / "boards" / NAME
    shutil.copytree(root / "boards/mps2-an385", board)
    replace(board / "board.textproto", r'name: "mps2-an385"', f'name: "{NAME}"')
    replace(board / "board.textproto", r'carrier: "ethernet"', 'carrier: "uart" baud: 115200')
    replace(board / "board.textproto", r"signature: ED25519", "signature: UNSIGNED")
    replace(board / "board.textproto", r"limits \{", "limits { serial_mac: true")
    replace(board / "cross.ini", r"board = 'mps2-an385'", f"board = '{NAME}'")
    return board


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    for name in ("espalier", "session"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    missing = [name for name in ("arm-none-eabi-g++", "qemu-system-arm") if not shutil.which(name)]
    missing += [f"build/{name}" for name in ("nanopb", "mbedtls") if not (args.root / "build" / name / ".complete").exists()]
    if missing:
        print(f"skipped: no {', '.join(missing)}; ./setup.sh fetches them")
        return 77
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name)
        board = copy_board(args.root, tree)
        call(["meson", "setup", "b", "--cross-file", board / "cross.ini"], cwd=tree)
        call(["ninja", "-C", "b", "firmware/bare/espalier-bare.elf"], cwd=tree)
        call([args.espalier, "compile", "--topology", "complete:1", "--collective", "barrier", "--algorithm", "dissemination",
              "-o", tree / "one.esp"])
        call([args.espalier, "image", "build", tree / "one.esp", "--board", board, "--node", "0", "--release", "1.0.0", "-o",
              tree / "0.img"])
        call([args.espalier, "image", "install", tree / "0.img", "--board", board, "--flash", tree / "flash", "--unsigned"])
        (tree / "key").write_bytes(os.urandom(16))
        (tree / "key").chmod(0o600)
        session = subprocess.Popen([args.session, "--device", f"stream:{tree / 'uart'}", "--link-key", tree / "key", "--run"],
                                   stdout=subprocess.PIPE, text=True)
        while not (tree / "uart").exists():
            assert session.poll() is None, "the session did not begin"
        console = tree / "console"
        node = subprocess.Popen(["qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-monitor", "none", "-serial",
                                 f"file:{console}", "-serial", f"unix:{tree / 'uart'}", "-semihosting-config",
                                 f"enable=on,target=native,arg=node,arg={tree / 'flash'},arg=-,arg=-,arg={tree / 'key'}", "-kernel",
                                 tree / "b/firmware/bare/espalier-bare.elf"])
        said = session.communicate()[0]
        node.kill()
        node.wait()
        said += console.read_text()
    for line in (f"hello: {NAME}, boot ok, slot 0, release 0, trial 1", "report: ok, 1 complete, confirmation ok",
                 "SIGNATURE NOT CHECKED", "boots, for the first time"):
        assert line in said, f"no '{line}' in:\n{said}"
    print(said.splitlines()[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
