"""Follows docs/firmware_in_c.md to the letter. Runs the commands of "From a schedule to a sum" after the library was built,
in a folder that has nothing but links to the sources and builds. Both boards must print the same sums; one is ended, and the other must
say what the page shows."""
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def commands(text):
    lines = [line[4:] for line in text.replace("\\\n", " ").splitlines() if line.startswith("    ")]
    return [" ".join(line.split()) for line in lines if not line.startswith(("ninja ", "rank "))]


def follow(root):
    """Returns the complaints."""
    section = (root / "docs/firmware_in_c.md").read_text().split("## From a schedule to a sum\n")[1].split("\n## ")[0]
    found = commands(section)
    boards = [line for line in found if line.startswith("qemu-system-arm ")]
    assert len(boards) == 2 and len(found) >= 6, found
    shown = re.search(r"    (rank 0: dead link: .*)", section)[1]
    with tempfile.TemporaryDirectory() as name:
        tree = pathlib.Path(name)
        for item in ("boards", "build", "build-m3", "examples", "include", "proto"):
            (tree / item).symlink_to(root / item)
        for line in (line for line in found if line not in boards):
            done = subprocess.run(line, shell=True, cwd=tree, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"page: {line}\n{done.stdout}{done.stderr}")
        consoles, processes = [tree / "0", tree / "1"], []

        def sums(board):
            return re.findall(r"sum (\d+): digest (\d+)", consoles[board].read_text())
        try:
            for number, line in enumerate(boards):
                processes.append(subprocess.Popen(f"exec {line}", shell=True, cwd=tree, stdin=subprocess.DEVNULL,
                                                  stdout=consoles[number].open("wb"), stderr=subprocess.STDOUT))
                while number == 0 and not (tree / "try/cable").exists() and processes[0].poll() is None:
                    time.sleep(0.05)
            while min(len(sums(0)), len(sums(1))) < 3:
                if any(process.poll() is not None for process in processes):
                    sys.exit("page: a board ended: " + "".join(path.read_text() for path in consoles))
                time.sleep(0.05)
            processes[1].kill()
            while not consoles[0].read_text().endswith("to rank 1\n") and processes[0].poll() is None:
                time.sleep(0.1)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        text = consoles[0].read_text()
        same = sums(0)[:3] == sums(1)[:3]
        said = re.sub(r"step \d+", "step 1", text.splitlines()[-1]) if text else ""
        print(f"page: {len(sums(0))} sums, then: {text.splitlines()[-1]}")
        if not same:
            return ["page: the boards have different sums"]
        return [] if said == shown else [f"page: it shows {shown}, and the board printed {text}"]
