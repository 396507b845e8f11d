#!/usr/bin/python3
"""Gate: which folder may include which. arrows.txt is the table of the allowed arrows, and docs/architecture.md shows it.

arrows.py ROOT                every #include "..." follows an arrow of the table; the table names folders that exist, from the
                              ground up; no folders include each other, at any depth; docs/architecture.md shows this table
arrows.py ROOT --freestanding COMMANDS
                              all that freestanding sources include, directly or not, is freestanding. COMMANDS is the build's
                              compile_commands.json: the freestanding sources are those compiled with -fno-exceptions
arrows.py ROOT --print        prints the table as docs/architecture.md shows it
arrows.py ROOT --write        writes it there, between the two marks
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

TABLE = "tests/gates/arrows.txt"
PAGE = "docs/architecture.md"
BEGIN = "<!-- arrows: printed by tests/gates/arrows.py --write -->"
END = "<!-- end of arrows -->"
PUBLIC = "include/espalier/"
INTERNAL = "internal/"  # in PUBLIC: headers that public ones include
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>|(\w+))')
TEST_FOLDERS = {"conformance", "simulated", "testing"}
# The standard headers without heap, exceptions, files, threads or locales.
FREESTANDING = set("""algorithm array atomic bit cfloat climits cmath compare concepts cstdarg cstddef cstdint cstring functional
    initializer_list iterator limits new numeric optional span stdalign.h stdbool.h stddef.h stdint.h string.h string_view tuple
    type_traits utility""".split())
# Of the compiler itself: the processor's instructions.
FREESTANDING |= {"arm_neon.h", "cpuid.h", "immintrin.h"}
# Headers of libraries that are also compiled for bare metal.
FREESTANDING_LIBRARIES = ("pb.h", "pb_", "sodium", "mbedtls/")


class Table:
    """The folders with their arrows, and the errors in the table itself."""

    def __init__(self, root):
        self.below, self.lines, self.reach, self.errors = {}, {}, {}, []
        for number, line in enumerate(tree.read(root, TABLE).splitlines(), 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            folder, below = words[0], words[1:]
            where = f"{TABLE}:{number}"
            self.errors += [f"{where}: '{name}' has no line above this one" for name in below if name not in self.below]
            if folder in self.below:
                self.errors.append(f"{where}: '{folder}' has a line above")
            is_header = (pathlib.Path(root) / PUBLIC / f"{folder}.h").is_file()
            if not is_header and not any((pathlib.Path(root) / start / folder).is_dir() for start in ("", PUBLIC)):
                self.errors.append(f"{where}: there is no folder '{folder}'")
            below = [name for name in below if name in self.below]
            self.below[folder], self.lines[folder] = below, number
            self.reach[folder] = {folder}.union(*(self.reach[name] for name in below))

    def owner(self, file):
        """Returns the folder of the table that a file belongs to; None if there is none."""
        path = named(file)
        if file.startswith(PUBLIC) and str(path.with_suffix("")) in self.below:
            return str(path.with_suffix(""))  # the one public header of a folder, named after it
        if is_test(file):
            return "tests" if "tests" in self.below else None
        for parent in path.parents:
            if str(parent) in self.below:
                return str(parent)
        return None


def includes(root, file):
    """Yields (line, name, whether it may be of this tree: in quotes, or espalier/... as a user writes it) of each #include."""
    for number, line in enumerate(tree.read(root, file).splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            name = match.group(1) or match.group(2) or match.group(3)
            yield number, name, match.group(2) is None or name.startswith("espalier/")


def resolve(file, name, present):
    """Returns the tree's file that `#include "name"` in `file` means; for a header that the build makes, a name in its folder."""
    beside = os.path.normpath(pathlib.PurePath(file).parent / name)
    for candidate in (beside, name, PUBLIC + name.removeprefix("espalier/")):  # internal/ is part of the name
        for source in (candidate, candidate + ".in"):  # the build makes a header of its .in
            if source in present:
                return source
    return "proto/" + name if name.endswith(".pb.h") else None


def named(file):
    """Returns the path of a file, of an installed header without PUBLIC and INTERNAL."""
    return pathlib.PurePath(file.removeprefix(PUBLIC).removeprefix(INTERNAL) if file.startswith(PUBLIC) else file)


def is_test(file):
    path = pathlib.PurePath(file)
    return path.stem.endswith(("_test", "_bench")) or bool(TEST_FOLDERS.intersection(path.parts))


def folder_of(file):
    """Returns the folder that a file counts as: of an installed header, the one of its sources."""
    path = named(file)
    return str(path.with_suffix("") if file.startswith(PUBLIC) and len(path.parts) == 1 else path.parent)


def find_circles(edges):
    """Returns the sets of folders of which each reaches each other. `edges`: folder -> folders that it includes."""
    reach = {folder: set(below) for folder, below in edges.items()}
    for middle in edges:
        for folder in edges:
            if middle in reach[folder]:
                reach[folder] |= reach[middle]
    inside = [folder for folder in edges if folder in reach[folder]]
    return {tuple(sorted(other for other in inside if folder in reach[other] and other in reach[folder])) for folder in inside}


def check_circles(root, sources):
    """Finds folders that include each other, at any depth."""
    present = set(sources)
    edges, evidence = {}, {}
    for file in sources:
        for number, name, quoted in includes(root, file):
            target = resolve(file, name, present) if quoted and not is_test(file) else None
            if target not in present or folder_of(target) == folder_of(file):
                continue
            edges.setdefault(folder_of(file), set()).add(folder_of(target))
            edges.setdefault(folder_of(target), set())
            evidence.setdefault((folder_of(file), folder_of(target)), f'{file}:{number}: includes "{name}"')
    return [f"{line}: of a circle of folders: {', '.join(circle)}" for circle in sorted(find_circles(edges))
            for (folder, to), line in sorted(evidence.items()) if folder in circle and to in circle]


def check_arrows(root):
    table = Table(root)
    findings = list(table.errors)
    sources = tree.files(root, ".h", ".cc", ".c")
    present = set(sources)
    arrows = 0
    for file in sources:
        owner = table.owner(file)
        if owner is None:
            findings.append(f"{file}:1: {TABLE} has no line for this file's folder")
            continue
        for number, name, quoted in includes(root, file):
            target = resolve(file, name, present) if quoted else None
            if quoted and name.isidentifier():
                findings.append(f"{file}:{number}: includes the macro {name}, which this gate cannot follow")
            if target is None:
                continue  # a library's header, or made by the build from this folder's files
            arrows += 1
            to = table.owner(target)
            if to is not None and to not in table.reach[owner]:
                findings.append(f'{file}:{number}: {owner} must not include {to} ("{name}")')
    print(f"{len(sources)} files, {arrows} includes of {len(table.below)} folders")
    return findings + check_circles(root, sources)


def check_freestanding(root, commands):
    present = set(tree.files(root, ".h", ".h.in", ".cc", ".c"))
    todo = {source for source, arguments in tree.compiled(root, commands) if "-fno-exceptions" in arguments} & present
    first = {file: file for file in todo}  # file -> a source that includes it, directly or not
    findings = [] if todo else [f"{commands}: no source is compiled with -fno-exceptions; expected the freestanding ones"]
    while todo:
        file = todo.pop()
        for number, name, quoted in includes(root, file):
            target = resolve(file, name, present) if quoted else None
            if target in present and target not in first:
                first[target] = first[file]
                todo.add(target)
            elif target is None and not (name in FREESTANDING or name.startswith(FREESTANDING_LIBRARIES)):
                findings.append(f"{file}:{number}: <{name}> is not freestanding, but {first[file]} must be and includes it")
    print(f"{len(first)} freestanding files")
    return sorted(findings)


def page_table(root):
    table = Table(root)
    level = {}
    for folder, below in table.below.items():
        level[folder] = 1 + max((level.get(name, 0) for name in below), default=-1)
    lines = ["| level | folder | includes, besides what those include |", "| ---: | --- | --- |"]
    for folder in sorted(table.below, key=lambda name: (level[name], table.lines[name])):
        lines.append(f"| {level[folder]} | `{folder}` | {', '.join(f'`{name}`' for name in table.below[folder]) or 'nothing'} |")
    return "\n".join(lines)


def check_page(root, write):
    text = tree.read(root, PAGE)
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        return [f"{PAGE}:1: expected the marks '{BEGIN}' and '{END}', once each"]
    before, rest = text.split(BEGIN)
    shown, after = rest.split(END)
    if write:
        (pathlib.Path(root) / PAGE).write_text(f"{before}{BEGIN}\n\n{page_table(root)}\n\n{END}{after}", encoding="utf-8")
    elif shown.strip() != page_table(root):
        return [f"{PAGE}:{before.count(chr(10)) + 1}: not the table of {TABLE}: run tests/gates/arrows.py . --write"]
    return []


def main(root, mode=None, commands=None):
    if mode == "--print":
        print(page_table(root))
        return 0
    if mode == "--write":
        return tree.report(check_page(root, True), "add the marks")
    if mode == "--freestanding":
        return tree.report(check_freestanding(root, commands), "keep what needs a host in headers of its own")
    return tree.report(check_arrows(root) + check_page(root, False),
                       f"move what is shared to a folder below both, or turn the dependency round; {TABLE} has the arrows")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
