#!/usr/bin/python3
"""power_test.py --espalier PROGRAM --session PROGRAM (--hosted PROGRAM | --elf FILE [--board NAME]) [--rounds N]: kills a
bare-metal node (SIGKILL; its emulator, if it runs in one) at a random moment while it writes its flash: an update, or an update's
confirmation. After each kill the node must boot either the image that it ran before or the complete new one. The micro:bit's flash is
its emulator's own: the emulator is stopped at that moment, and the next one gets the bytes that the flash then had."""
import argparse
import base64
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from processes import output_of  # noqa: E402

ON_A_UART = ("microbit", "virt-rv32")
HANG_S = 60  # so long after the emulator's end a session ends only if it hangs


def uart_of(emulator, gateway):
    """Returns the emulator's words for a UART that is the session's socket, which is there only later. QEMU 9.2 calls the time between two
    attempts reconnect-ms, and 11 no longer knows the old name."""
    said = subprocess.run([emulator, "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(map(int, re.search(r"version (\d+)\.(\d+)", said).groups()))
    again = "reconnect-ms=1000" if version >= (9, 2) else "reconnect=1"
    return ["-chardev", f"socket,id=cable,path={gateway},{again}", "-serial", "chardev:cable"]


class Microbit:
    """An emulated micro:bit with the contents of the file `flash` in its flash. It lives as long as the process `pid`; wait() stops it
    after that process, and writes the flash back."""
    SLOTS, KEY, BYTES = 0x20000, 0x1fc00, 131072

    def __init__(self, node):
        self.node, self.control = node, node.folder / "control.sock"
        key = node.folder / "key.bin"
        pem = (node.folder / "key.pub").read_text().split("-----")[2]
        key.write_bytes(base64.b64decode("".join(pem.split()))[-32:])
        self.life = subprocess.Popen(["sleep", "infinity"])
        self.pid = self.life.pid
        self.emulator = subprocess.Popen(
            ["qemu-system-arm", "-M", "microbit", "-display", "none", "-monitor", "none", "-qmp", f"unix:{self.control},server=on,wait=off",
             *uart_of("qemu-system-arm", node.gateway), "-device", f"loader,file={node.flash},addr={self.SLOTS:#x},force-raw=on",
             "-device", f"loader,file={key},addr={self.KEY:#x},force-raw=on", "-kernel", node.args.elf],
            stdout=node.console.open("wb"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def kill(self):
        self.life.kill()

    def poll(self):
        return self.emulator.poll()

    def wait(self):
        self.life.wait()
        flash = self.node.folder / "flash.new"
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.control))
            answers = control.makefile("r")
            answers.readline()
            for command, arguments in (("qmp_capabilities", {}), ("stop", {}),
                                       ("memsave", {"val": self.SLOTS, "size": self.BYTES, "filename": str(flash)}), ("quit", {})):
                control.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
                answer = next(answer for answer in map(json.loads, answers) if "event" not in answer)
                if "return" not in answer:
                    sys.exit(f"power: {command}: {answer}")
        self.emulator.wait()
        flash.replace(self.node.flash)


def start_riscv(node):
    """An emulated virt-rv32, whose flash is the file: with the public key, and with the length that the emulator expects."""
    key, bytes_of_flash = 8 * 262144, 32 << 20
    if node.flash.stat().st_size < bytes_of_flash:
        pem = (node.folder / "key.pub").read_text().split("-----")[2]
        with node.flash.open("r+b") as flash:
            flash.seek(key)
            flash.write(base64.b64decode("".join(pem.split()))[-32:])
            flash.truncate(bytes_of_flash)
    return subprocess.Popen(
        ["qemu-system-riscv32", "-M", "virt", "-display", "none", "-monitor", "none", *uart_of("qemu-system-riscv32", node.gateway),
         "-drive", f"if=pflash,unit=1,format=raw,file={node.flash}", "-bios", node.args.elf],
        stdout=node.console.open("wb"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


class Node:
    """A board with its flash; its console goes to a file."""

    def __init__(self, args, folder, otp=None, link_key=None):
        self.args, self.folder, self.otp, self.link_key = args, folder, otp, link_key
        self.flash, self.console = folder / "flash", folder / "console"
        self.board, self.gateway = folder / "board.sock", folder / "gateway.sock"

    def start(self):
        if self.args.board == "microbit":
            return Microbit(self)
        if self.args.board == "virt-rv32":
            return start_riscv(self)
        if self.args.hosted:
            words = [self.args.hosted, "--device", f"unix:{self.board},{self.gateway}", "--flash", self.flash,
                     "--public-key", self.folder / "key.pub", *(["--otp", self.otp] if self.otp else []),
                     *(["--link-key", self.link_key] if self.link_key else [])]
        else:
            self.board.unlink(missing_ok=True)
            words = ["qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-monitor", "none", "-serial", "stdio",
                     "-semihosting-config", f"enable=on,target=native,arg=node,arg={self.flash},arg={self.folder / 'key.pub'}"
                                            + (f",arg={self.otp}" if self.otp else ""),
                     "-netdev", f"dgram,id=wire,local.type=unix,local.path={self.board},remote.type=unix,"
                                f"remote.path={self.gateway}",
                     "-net", "nic,netdev=wire", "-kernel", self.args.elf]
        return subprocess.Popen(words, stdout=self.console.open("wb"), stdin=subprocess.DEVNULL)

    def session_words(self, link_key):
        device = f"stream:{self.gateway}" if self.args.board in ON_A_UART else f"unix:{self.gateway},{self.board}"
        return [self.args.session, "--device", device, *(["--link-key", link_key] if link_key else [])]

    def session(self, emulator, *words):
        with subprocess.Popen([*self.session_words(self.link_key), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as session:
            seconds = 0
            while True:
                try:
                    said, complaint = session.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    seconds += emulator.poll() is not None
                    if seconds == HANG_S:
                        session.kill()
        if session.returncode != 0:
            sys.exit(f"power: {' '.join(map(str, words))}: {said}{complaint}{self.console.read_text()}")
        return said

    def says(self, *words):
        """Starts the node for one session; returns the output of bare-session."""
        node = self.start()
        try:
            return self.session(node, *words)
        finally:
            node.kill()
            node.wait()

    def killed(self, after_us, *words):
        """Starts the node for one session, which kills it `after_us` after it began; returns the output of bare-session."""
        process = self.start()
        try:
            return self.session(process, *words, "--kill", f"{process.pid}@{after_us}")
        except SystemExit:
            process.kill()
            raise
        finally:
            process.wait()


def build(args, folder, release):
    path = folder / f"{release}.img"
    output_of([args.espalier, "image", "build", folder / "one.esp", "--board", ROOT / "boards" / args.board, "--node", 0, "--release",
               f"1.0.{release}", "--counter", release, "--key", folder / "key", "-o", path])
    return path


def booted(said):
    """Returns (release, trial) from the hello of a session."""
    found = re.search(r"boot ok, slot \d, release (\d+), trial (\d)", said)
    if not found:
        sys.exit(f"power: the node did not boot: {said}")
    return int(found.group(1)), found.group(2) == "1"


def took(said, what):
    """Returns the microseconds that the session's last line reports."""
    found = re.search(what + r", after (\d+) us\s*\Z", said)
    if not found:
        sys.exit(f"power: '{what}' is not what this ends with: {said}")
    return max(int(found.group(1)), 10)


@contextlib.contextmanager
def life():
    """Yields the arguments, and a folder with a schedule and keys. Ends the program where the board cannot run."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser()
    for name in ("espalier", "session"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--hosted")
    parser.add_argument("--elf", type=pathlib.Path)
    parser.add_argument("--board", default="mps2-an385")
    parser.add_argument("--rounds", type=int, default=12)
    args = parser.parse_args()
    emulator = "qemu-system-riscv32" if args.board == "virt-rv32" else "qemu-system-arm"
    if args.elf and not (args.elf.exists() and shutil.which(emulator)):
        print(f"skipped: no {args.elf} (./setup.sh configures its folder), or no {emulator}")
        sys.exit(77)
    if os.environ.get("ESPALIER_WHOLE"):
        args.rounds = max(args.rounds, 50)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        output_of([args.espalier, "compile", "--topology", "complete:1", "--collective", "barrier", "--algorithm", "dissemination", "-o",
                   folder / "one.esp"])
        output_of([args.espalier, "image", "keygen", "-o", folder / "key"])
        yield args, folder


def expect(holds, what, node):
    if not holds:
        sys.exit(f"{what}\n{node.console.read_text()}")


def install(args, image, flash, folder):
    """Writes the image to the flash's file, confirmed, as a factory does."""
    output_of([args.espalier, "image", "install", image, "--board", ROOT / "boards" / args.board, "--flash", flash, "--public-key",
               folder / "key.pub", "--confirmed"])


def main():
    with life() as (args, folder):
        node = Node(args, folder)
        install(args, build(args, folder, 1), node.flash, folder)
        dice = random.Random(1)
        # How long an update and a confirmation take without interruption.
        release = 2
        installing = took(node.says("--install", build(args, folder, release)), r"install: ok")
        confirming = took(node.says("--run"), r"confirmation ok")
        old, new, confirmed = 0, 0, 0
        for _ in range(args.rounds):
            # An interrupted update.
            release += 1
            image = build(args, folder, release)
            was, trial = booted(node.says("--run"))  # this confirms it if necessary
            node.killed(dice.randrange(2 * installing), "--install", image)
            # The release that boots now, and its interrupted confirmation.
            said = node.killed(dice.randrange(2 * confirming), "--run")
            now, trial = booted(said)
            if now not in (was, release) or trial != (now != was):
                sys.exit(f"power: {was} was to become {release}, and {now} booted{' for the first time' * trial}")
            old, new = old + (now == was), new + (now != was)
            after, trial = booted(node.says())
            if after not in (was, now) or trial:
                sys.exit(f"power: {now} ran, and then {after} booted{' for the first time' * trial}")
            confirmed += after == now != was
        print(f"an update takes {installing} us, a confirmation {confirming} us; {args.rounds} updates cut off: {old} times the old image booted, "
              f"{new} times the new one, which {confirmed} times was confirmed when its own plug was pulled")


if __name__ == "__main__":
    main()
