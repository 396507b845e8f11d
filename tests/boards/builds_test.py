#!/usr/bin/python3
"""Builds the freestanding code of nodes in each configuration of features that its board does not have.

builds_test.py BUILD ELF      BUILD: a build directory of a bare-metal board; ELF: its firmware, in the folder BUILD

Compiles every library of the build, and links the firmware of them. The sources of a library are compiled together, and by -O1, which takes
half the time: this finds code that does not compile or link; tests/size finds code that takes too much. Libraries of others know no
configuration: the build's own are linked. Fails on a warning, too. Prints what was built in each configuration.

Then shows that it can fail: no source may compile in a configuration that does not exist, and a machine of another configuration must not
link.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

FOREIGN = "firmware/bare/libraries/"
ARCHIVE = re.compile(r"^(.*\.a)\.p/")  # of an object: its library
MACRO = "ESPALIER_CONFIGURATION"
MACHINE = "collectives/machine/libespalier-machine.a"


class Failed(Exception):
    pass


class Build:
    """A configured and built directory."""

    def __init__(self, folder, elf, work):
        self.folder, self.elf, self.work = folder, elf.resolve().relative_to(folder), work
        self.link_words = shlex.split(self.run(["ninja", "-t", "commands", str(self.elf)]).strip().splitlines()[-1])
        self.owners = {}  # library, or an object of the firmware itself -> suffix -> its entries of compile_commands.json
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            archive = ARCHIVE.match(entry["output"])
            owner = archive.group(1) if archive else entry["output"]
            # What ninja's `all` has not is only of other programs: the generators.
            is_of_nodes = (folder / owner).is_file() if archive else owner in self.link_words
            if not owner.startswith(FOREIGN) and is_of_nodes:
                self.owners.setdefault(owner, {}).setdefault(pathlib.Path(entry["file"]).suffix, []).append(entry)
        unknown = [word for word in self.link_words if word.endswith((".a", ".o")) and word not in self.owners and not word.startswith(FOREIGN)]
        if unknown:
            raise Failed(f"no sources are known of {', '.join(unknown)}")

    def run(self, words):
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder)
        if done.returncode != 0:
            raise Failed(f"{shlex.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def configuration(self):
        """The number of the configuration of the build itself."""
        found = set(re.findall(rf"-D{MACRO}=(\d+)", (self.folder / "compile_commands.json").read_text()))
        if len(found) != 1:
            raise Failed(f"{self.folder}: {len(found)} configurations; expected one")
        return int(found.pop())

    def compile(self, owner, suffix, number):
        """Compiles the sources of one owner and language together, in this configuration. Returns the object."""
        entries = self.owners[owner][suffix]
        words = shlex.split(entries[0]["command"])
        target = self.work / str(number) / (re.sub(r"[/.]+", "_", owner + suffix) + ".o")
        source = target.with_suffix(suffix)
        source.write_text("".join(f'#include "{(self.folder / entry["file"]).resolve()}"\n' for entry in entries))
        for option, value in (("-o", target), ("-MF", f"{target}.d"), ("-MQ", target), ("-c", source)):
            words[words.index(option) + 1] = str(value)
        self.run([*words, f"-U{MACRO}", f"-D{MACRO}={number}", "-O1"])
        return target

    def compile_all(self, number, pool):
        """Returns the objects of all owners in this configuration: owner -> paths."""
        (self.work / str(number)).mkdir(parents=True)
        tasks = [(owner, pool.submit(self.compile, owner, suffix, number)) for owner, suffixes in self.owners.items() for suffix in suffixes]
        objects = {}
        for owner, task in tasks:
            objects.setdefault(owner, []).append(task.result())
        return objects

    def link(self, objects):
        """Links the firmware of `objects`, in the place of the build's own."""
        words = []
        for word in self.link_words:
            if not word.startswith("-Wl,-Map"):
                words += map(str, objects.get(word, [word]))
        words[words.index("-o") + 1] = str(self.work / self.elf.name)
        self.run(words)


def check_refusals(board, built, number):
    """`built`: number of a configuration -> its objects. `number`: that of no configuration."""
    def refused(what, says, function, *arguments):
        try:
            function(*arguments)
        except Failed as failed:
            if says in str(failed):
                return
            raise
        raise Failed(f"{what}: it was built; expected an error")

    (board.work / str(number)).mkdir()
    refused(f"configuration {number}", f"no such {MACRO}", board.compile, MACHINE, ".cc", number)
    first, last = min(built), max(built)
    refused(f"a firmware of configuration {last} with a machine of configuration {first}", "undefined reference", board.link,
            {**built[last], MACHINE: built[first][MACHINE]})


def main():
    folder, elf = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "boards"))
    import limits
    work = folder / "tests/boards/work"
    shutil.rmtree(work, ignore_errors=True)
    try:
        board = Build(folder, elf, work)
        own = board.configuration()
        sources = sum(len(entries) for suffixes in board.owners.values() for entries in suffixes.values())
        built = {}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, (number, _) in limits.CONFIGURATIONS.items():
                if number == own:
                    print(f"{name}: {folder.name} itself")
                    continue
                built[number] = board.compile_all(number, pool)
                board.link(built[number])
                print(f"{name}: {sources} sources, and {board.elf.name}")
        check_refusals(board, built, 1 + max(number for number, _ in limits.CONFIGURATIONS.values()))
    except Failed as failed:
        print(failed)
        return 1
    print("and what must not compile or link does not")
    return 0


if __name__ == "__main__":
    sys.exit(main())
