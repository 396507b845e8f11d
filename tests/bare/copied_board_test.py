#!/usr/bin/python3
"""copied_board_test.py ROOT [--board NAME]...: copies boards by the steps of docs/boards.md, builds each copy's firmware, boots an image for it, and
runs a collective on it. Only its folder is new. The boards NAME, or a sample, which is printed; with ESPALIER_WHOLE=1 all bare-metal ones.
A copy of a board of the family mps2 runs over its UART, with a link key and without signatures; one of another board by the commands of
its README.md."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from processes import output_of  # noqa: E402

NAME = "throw-away"
SAMPLE = ["template"]


def replace(path, pattern, text):
    found = path.read_text()
    assert re.search(pattern, found), f"{path} has no {pattern}"
    path.write_text(re.sub(pattern, text, found))


def commands_of(text):
    """The commands of the indented blocks of a page, one per line; a backslash continues one."""
    lines = [line[4:] for line in text.replace("\\\n", " ").splitlines() if line.startswith("    ")]
    return [" ".join(line.split()) for line in lines if line.strip()]


def copy_tree(root, tree):
    """The sources unchanged, except boards/, which is a copy."""
    for source in root.iterdir():
        if source.name != "boards" and not source.name.startswith((".", "build")):
            (tree / source.name).symlink_to(source)
    (tree / "build").symlink_to(root / "build")  # what ./setup.sh fetched
    shutil.copytree(root / "boards", tree / "boards")


class Copy:
    """A copy of a board, called NAME."""

    def __init__(self, args, tree, board):
        self.args, self.tree = args, tree
        steps = (tree / "docs/boards.md").read_text().split("## Adding one\n")[1].split("\n## ")[0]
        for step in re.findall(r"`((?:cp|grep) [^`]*)`", steps):
            self.shell(" ".join(step.split()).replace("BOARD", board))
        self.folder = tree / "boards" / NAME
        self.console = tree / "console"
        self.build = [line.replace("NAME", NAME) for line in commands_of(steps)]
        assert [line.split()[0] for line in self.build] == ["meson", "ninja"], self.build

    def shell(self, line):
        line = re.sub(r"^espalier ", f"{shlex.quote(str(self.args.espalier))} ", line)
        output_of(["sh", "-c", line.replace("NAME", NAME)], cwd=self.tree)

    def image(self):
        output_of([self.args.espalier, "compile", "--topology", "complete:1", "--collective", "barrier", "--algorithm", "dissemination",
              "-o", "b.esp"], cwd=self.tree)

    def run(self, socket, emulator, *more):
        """A session with the copy at the other end of the socket; returns what both say."""
        session = subprocess.Popen([self.args.session, "--device", f"stream:{socket}", *more, "--run"], stdout=subprocess.PIPE,
                                   text=True, cwd=self.tree)
        while not (self.tree / socket).exists():
            assert session.poll() is None, "the session did not begin"
        node = subprocess.Popen(emulator, cwd=self.tree, stdout=self.console.open("w"))
        said = session.communicate()[0]
        node.kill()
        node.wait()
        return said + self.console.read_text()


def of_readme(copy):
    """Follows the copy's README.md."""
    lines = commands_of((copy.folder / "README.md").read_text())
    assert lines[:2] == copy.build, lines
    for line in copy.build:
        copy.shell(line)
    prefix = re.search(r"(\S+)-g\+\+'", (copy.folder / "cross.ini").read_text()).group(1).lstrip("'")
    words = output_of([f"{prefix}-nm", "-C", f"build-{NAME}/firmware/bare/espalier-bare.elf"], cwd=copy.tree)
    words += output_of([f"{prefix}-objdump", "-d", f"build-{NAME}/firmware/bare/espalier-bare.elf"], cwd=copy.tree)
    for part in ("Lan9118", "semihost", "bkpt"):
        assert part not in words, f"the copy has {part}"
    copy.image()
    *before, emulator = lines[2:]
    for line in before:
        copy.shell(line)
    for _ in range(2):  # the second time the flash is that of the first
        said = copy.run("cable.sock", shlex.split(emulator))
    return said, ["trial 0"]


def of_family(copy):
    replace(copy.folder / "board.textproto", r'carrier: "ethernet"', 'carrier: "uart" baud: 115200')
    replace(copy.folder / "board.textproto", r"signature: ED25519", "signature: UNSIGNED")
    replace(copy.folder / "board.textproto", r"limits \{", "limits { serial_mac: true")
    for line in copy.build:
        copy.shell(line)
    copy.image()
    copy.shell(f"espalier image build b.esp --board boards/{NAME} --node 0 --release 1.0.0 -o 0.img")
    copy.shell(f"espalier image install 0.img --board boards/{NAME} --flash flash --unsigned")
    key = copy.tree / "key"
    key.write_bytes(os.urandom(16))
    key.chmod(0o600)
    machine = re.search(r"'-M', '([^']*)'", (copy.folder / "cross.ini").read_text()).group(1)
    emulator = ["qemu-system-arm", "-M", machine, "-display", "none", "-monitor", "none", "-serial", "stdio", "-serial", "unix:uart",
                "-semihosting-config", "enable=on,target=native,arg=node,arg=flash,arg=-,arg=-,arg=key", "-kernel",
                f"build-{NAME}/firmware/bare/espalier-bare.elf"]
    return copy.run("uart", emulator, "--link-key", key), ["trial 1", "SIGNATURE NOT CHECKED", "boots, for the first time"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    for name in ("espalier", "session"):
        parser.add_argument(f"--{name}", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--board", action="append", default=[])
    args = parser.parse_args()
    missing = [name for name in ("arm-none-eabi-g++", "qemu-system-arm", "riscv64-unknown-elf-g++", "qemu-system-riscv32") if not shutil.which(name)]
    missing += [f"build/{name}" for name in ("nanopb", "mbedtls") if not (args.root / "build" / name / ".complete").exists()]
    if missing:
        print(f"skipped: no {', '.join(missing)}; ./setup.sh fetches them")
        return 77
    boards = sorted(file.parent.name for file in args.root.glob("boards/*/link.ld"))
    sample = boards if os.environ.get("ESPALIER_WHOLE") else args.board or SAMPLE
    print(f"boards: {', '.join(sample)}; of {len(boards)}")
    for board in sample:
        with tempfile.TemporaryDirectory() as name:
            copy_tree(args.root, pathlib.Path(name))
            copy = Copy(args, pathlib.Path(name), board)
            said, more = (of_family if board.startswith("mps2-") else of_readme)(copy)
            more += ["SIGNATURE NOT CHECKED", "boots, confirmed"] if board == "template" else []
        for line in [f"hello: {NAME}, boot ok, slot 0, release 0", "report: ok, 1 complete, confirmation ok", *more]:
            assert line in said, f"{board}: no '{line}' in:\n{said}"
        print(f"{board}: " + said.splitlines()[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
