"""A linked program of a bare-metal build: the memory of each of its objects, and its call graph. Reads the build directory's
compile_commands.json and ninja's link command, so that the examined code was compiled as the firmware was."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stack  # noqa: E402
import toolchain  # noqa: E402


def run(words, folder):
    environment = {**os.environ, "CCACHE_DISABLE": "1"}  # a cache keeps no call graphs
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"size: {shlex.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Build:
    """A configured and built directory."""

    def __init__(self, folder, elf, work, compiled=None):
        self.folder, self.elf, self.work = folder, elf.resolve().relative_to(folder.resolve()), work
        self.commands = {entry["output"]: entry for entry in json.loads((folder / "compile_commands.json").read_text())}
        last = run(["ninja", "-t", "commands", str(self.elf)], folder).strip().splitlines()[-1]
        self.link_words, self.compiled = shlex.split(last), compiled or {}  # and objects with call graphs
        self.inputs = [item for item in self.commands if item.partition(".p/")[0] in self.link_words]  # its objects, and those of its archives
        toolchain.PREFIX = next(word[:-3] for word in self.link_words if word.endswith(("-g++", "-gcc")))
        work.mkdir(parents=True, exist_ok=True)

    def limit(self, name):
        """The value of a -D of include/espalier/internal/base/limits.h."""
        words = {word for entry in self.commands.values() for word in shlex.split(entry["command"])}
        return next(int(word.split("=")[1]) for word in words if word.startswith(f"-DESPALIER_MAX_{name}="))

    def libgcc(self):
        """The archive of the compiler's own functions for this processor."""
        return run([self.link_words[0], *(word for word in self.link_words if word.startswith("-m")), "-print-libgcc-file-name"], self.folder).strip()

    def board(self):
        """The name of the board."""
        words = {word for entry in self.commands.values() for word in shlex.split(entry["command"])}
        return next(word.split("=")[1].strip('"') for word in words if word.startswith("-DESPALIER_BOARD_NAME="))

    def link(self, target, extra=(), first=()):
        """Links as the build does, with `extra` words, and `first` before all others; returns the map's text."""
        words = [self.link_words[0], *map(str, first), *self.link_words[1:]]
        words[words.index("-o") + 1] = str(target)
        run([*words, *map(str, extra), f"-Wl,-Map={target}.map"], self.folder)
        return pathlib.Path(f"{target}.map").read_text()

    def compile(self, like, target, source=None, extra=()):
        """Compiles the source of object `like`, or another one with its options, with a call graph beside `target`."""
        words = shlex.split(self.commands[like]["command"])
        for option, value in (("-o", target), ("-MF", f"{target}.d"), ("-MQ", target), ("-c", source)):
            if value is not None:
                words[words.index(option) + 1] = str(value)
        run([*words, *extra, "-fcallgraph-info=su"], self.folder)
        return target

    def sizes(self, headers, types, name):
        """sizeof of each type, as the bare node's sources are compiled. `name`: one for each call."""
        source = self.work / f"sizes_{name}.cc"
        source.write_text("".join(f'#include "{header}"\n' for header in headers) +
                          "".join(f"extern char size_{at}[sizeof({of})];\nchar size_{at}[sizeof({of})];\n" for at, of in enumerate(types)))
        like = next(item for item, entry in self.commands.items() if entry["file"].endswith("firmware/bare/node.cc"))
        found = {symbol: size for symbol, _, size, _ in toolchain.symbols(self.compile(like, self.work / f"sizes_{name}.o", source))}
        return [found[f"size_{at}"] for at in range(len(types))]

    def compile_linked(self, rows):
        """Each object of these rows of read_map() anew, with its call graph, unless it is compiled: object -> path."""
        def one(item):
            return item, self.compile(item, self.work / (re.sub(r"[/.]+", "_", item) + ".o"))

        objects = sorted({item for _, _, _, item in rows if item in self.commands})
        with concurrent.futures.ThreadPoolExecutor() as pool:
            self.compiled.update(pool.map(one, (item for item in objects if item not in self.compiled)))
        return {item: self.compiled[item] for item in objects}


def read_map(text, commands):
    """[(kind, symbol or section, bytes, object)] of what was linked; kind: text, rodata, data, bss or other. `object` is an
    output of compile_commands.json, or a path."""
    text = re.sub(r"\n (\.[^\s]+)\n\s+(0x)", r"\n \1 \2", text[text.index("Linker script and memory map"):])
    found, output, last_begin = [], None, 0
    for line in text.splitlines():
        head = re.match(r"^(\.\S+|/DISCARD/)", line)
        if head:
            output = head.group(1)
        part = re.match(r"^ (\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", line)
        if part and output != "/DISCARD/" and int(part.group(3), 16) > 0 and not part.group(1).startswith("*"):
            section, begin, size, item = part.group(1), int(part.group(2), 16), int(part.group(3), 16), part.group(4)
            # ld of binutils 2.44 merges strings into the first section of them, and names the others with the sizes that they had.
            if found and last_begin <= begin < last_begin + found[-1][2] and kind(output, section) == found[-1][0] != "other":
                found.pop()
            found.append((kind(output, section), section, size, object_of(item, commands)))
            last_begin = begin
    return found


def kind(output, section):
    if output in (".data", ".bss"):
        return output[1:]
    if output == ".text":
        return "rodata" if section.startswith(".rodata") or section == ".vectors" else "text"
    return "data" if output in (".init_array", ".fini_array") else "other"


def object_of(item, commands):
    member = re.match(r"^(.*)\((.*)\)$", item)
    if not member:
        return item
    return next((name for name in (f"{member.group(1)}.p/{member.group(2)}", member.group(2)) if name in commands), item)


class CallGraph:
    """The calls of a linked program. `owner`: the object that each function is from, as far as it is known."""

    def __init__(self, compiled, elf, complaints):
        self.owner = {}
        for item, path in compiled.items():
            for name in stack.Graph([path.with_suffix(".ci")]).frame:
                self.owner.setdefault(name, item)
        self.graph = stack.Graph([path.with_suffix(".ci") for path in compiled.values()])
        stack.resolve_indirect(self.graph, toolchain.addresses_taken(compiled.values()), complaints)
        stack.add_unknown_frames(self.graph, elf)

    def named(self, pattern):
        """The one function with such a name."""
        found = [name for name, label in self.graph.label.items()
                 if re.search(pattern, label) and not re.search(r"\.(part|constprop|isra)", name)]
        if len(found) != 1:
            raise SystemExit(f"size: {len(found)} functions are called {pattern}")
        return found[0]

    def path_text(self, path):
        return " > ".join(short(self.graph.label.get(name, name)) + (f" x{times}" if times > 1 else "") for name, times in path)


def short(label):
    """A function's name without its types."""
    return re.sub(r"\(.*$", "", re.sub(r"\(anonymous namespace\)|\{anonymous\}", "", label)).split(" ")[-1].removeprefix("::")
