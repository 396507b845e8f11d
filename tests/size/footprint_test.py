#!/usr/bin/python3
"""Checks a board's firmware, part by part, against tests/size/budgets.toml; and that it uses no forbidden symbol.

footprint_test.py BUILD ELF [--generators ELF] [--update] [--page FILE]     BUILD: a build directory of a bare-metal board
                  --generators: the program of generators.cc, which has no budget
                  --update: writes what was measured as the budgets      --page: writes the tables, as docs/results/bare_metal.md

budgets.toml has the budgets of each part of mps2-an385, budgets/NAME.toml the totals and stacks of another board, which has a row of the
last table. Without a budget, a board is only measured and checked for what is forbidden.

Fails on:
 * a part that grew beyond its budget, with another compiler than that of the budgets beyond a tenth more (toolchain.allowed());
 * a build with an option (option.NAME of budgets.toml) that takes more than its budget, or no text;
 * a symbol of the heap, of exceptions, of guarded statics or of atexit;
 * in the freestanding libraries, an undefined symbol other than forbidden.PROVIDED and the symbols of libgcc;
 * a byte of .data;
 * code before main;
 * a stack without bound.
Says where a budget is more than a tenth too large. Then shows that it can fail: each file of rejected/ must be rejected for its
own reason.
"""
import argparse
import pathlib
import re
import sys
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import firmware  # noqa: E402
import forbidden  # noqa: E402
import stack  # noqa: E402
import toolchain  # noqa: E402

HERE = pathlib.Path(__file__).parent
BUDGETS = HERE / "budgets.toml"
BASE = "mps2-an385"
ROWS = """## Every board

The same numbers of the firmware of each board, in bytes, with the limits of its description. Each row is written by the command above with its
build directory, and compared by the test `footprint` there.

"""
KINDS = ("text", "rodata", "data", "bss", "stack")
# The reason for which each file of rejected/ must be rejected.
REASONS = {
    "text": "board.text is", "bss": "ram.bytes is", "heap": "_Znwj", "array": "_ZdaPv", "guard": "__cxa_guard_acquire", "data": ".data is 4",
    "constructor": ".init_array is", "libc": "printf is undefined", "recursion": "nothing bounds the recursion",
    "indirect": "calls through a pointer", "frame": "no bound at compile time",
}
PAGE = """# What a bare-metal node takes

Written by `tests/size/footprint_test.py build-m3 build-m3/firmware/bare/espalier-bare.elf --page docs/results/bare_metal.md`. The
budgets that hold it there are in `tests/size/budgets.toml`.

"""


class Measured:
    """One linked program. `rejected`: an object of rejected/ in it."""

    def __init__(self, build, budgets, target, extra_words=(), rejected=None):
        self.build, self.budgets, self.complaints = build, budgets, []
        self.rows = firmware.read_map(build.link(target, extra_words), build.commands)
        compiled = build.compile_linked(self.rows) | ({str(rejected): rejected} if rejected else {})
        self.calls = firmware.CallGraph(compiled, target, self.complaints)
        self.sections = toolchain.sections(target)
        self.complaints += forbidden.in_program(target)
        if rejected:
            stack.deepest(self.calls.graph, "rejected", self.complaints)
        self.components = {name: dict.fromkeys(KINDS, 0) for name in budgets["component"]}
        self.buffers, self.variables, self.stacks = {}, {}, {}
        self.measure_memory()
        self.measure_stacks()
        self.totals = {name: {"bytes": self.total(name, entry)} for name, entry in budgets["total"].items()}

    def component(self, item):
        source = self.build.commands[item]["file"] if item in self.build.commands else item
        if str(self.build.work) in source:
            return "board"  # of rejected/
        for name, entry in self.budgets["component"].items():
            if any(part in source for part in entry["sources"]):
                return name
        raise SystemExit(f"size: {source} is of no component of {BUDGETS}")

    def measure_memory(self):
        for kind, section, size, item in self.rows:
            if kind == "other":
                continue
            name, part = variable(section), self.component(item)
            if kind == "bss" and name in self.budgets["caller"]["buffers"]:
                self.buffers[name] = self.buffers.get(name, 0) + size
                continue
            self.components[part][kind] += size
            if kind == "bss":
                self.variables[name] = (part, size)

    def measure_stacks(self):
        graph = self.calls.graph
        entries = {name: self.calls.named(entry["function"]) for name, entry in self.budgets["stack"].items()}
        apart = {name for name, entry in self.budgets["stack"].items() if entry.get("apart")}
        found = {name: stack.deepest(graph, entries[name], self.complaints) for name in apart}
        for callees in graph.calls.values():
            callees -= {entries[name] for name in apart}
        best = stack.all_deepest(graph, "reset", self.complaints)
        found |= {name: best[entries[name]] for name in entries if name not in apart}
        for name, (size, _) in best.items():
            part = self.component(self.calls.owner.get(name, "libgcc"))
            self.components[part]["stack"] = max(self.components[part]["stack"], size)
        self.stacks = {name: {"bytes": found[name][0], "path": found[name][1]} for name in entries}

    def total(self, name, entry):
        if name == "program":
            return self.buffers["programs"] // self.build.limit("PROGRAMS")
        if "objects" in entry:
            self.objects = {of: times * size for (of, times), size in
                            zip(entry["objects"].items(), self.build.sizes(entry["headers"], entry["objects"], name))}
            return sum(self.objects.values())
        return sum(self.components[part][kind] for part in entry["components"] for kind in entry["kinds"])


def variable(section):
    """A variable's name from the name of its section: the last part of .bss._ZN8espalier4bare12_GLOBAL__N_15linksE."""
    name = section.removeprefix(".bss.")
    for at in re.finditer(r"\d+", name):
        for cut in range(len(at.group())):  # in N_15links the 1 is not part of the length
            length = int(at.group()[cut:])
            if length > 0 and re.fullmatch(r"E*", name[at.end() + length:]) and len(name) >= at.end() + length:
                return name[at.end():at.end() + length]
    return name


def compare(measured, budgets, notes):
    """One line for each number that is above its budget; to `notes` those far below."""
    complaints = []
    # ld of binutils 2.44 and 2.47 names one object for all strings that it merged: of parts only the sum has a budget.
    is_merged = not toolchain.is_budget_compiler()
    if is_merged:
        value = sum(values["rodata"] for values in measured.components.values())
        budget = sum(budgets["component"][name].get("rodata", 0) for name in measured.components)
        if value > toolchain.allowed(budget):
            complaints.append(f"budget: rodata of all parts is {value} bytes, {value - budget} above their budgets of {budget} in "
                              "tests/size/budgets.toml")
    for group, found in (("component", measured.components), ("total", measured.totals), ("stack", measured.stacks)):
        for name, values in found.items():
            for kind in (kind for kind in values if kind != "path"):
                value, budget, target = values[kind], budgets[group][name].get(kind), budgets[group][name].get("target")
                place = f"{kind} of [{group}.{name}] in tests/size/budgets.toml"
                if budget is None:
                    complaints.append(f"budget: {name}.{kind} is {value} bytes and has none: say {place}")
                elif kind == "bytes" and target is not None and budget <= target < value:  # of every compiler
                    complaints.append(f"budget: {name} is {value} bytes, {value - target} above its target of {target}: make it smaller")
                elif is_merged and group == "component" and kind == "rodata":
                    continue
                elif value > toolchain.allowed(budget):
                    complaints.append(f"budget: {name}.{kind} is {value} bytes, {value - budget} above its budget of {budget}: make it "
                                      f"smaller, or raise {place} in the same change")
                elif budget > 32 and value * 1.1 < budget:
                    notes.append(f"budget: {name}.{kind} is {value} bytes, its budget {budget}: lower {place}")
    return complaints


def tables(measured, budgets, limits):
    """The tables that the page and the test print."""
    lines = [f"The program of `meson setup build-m3 --cross-file boards/mps2-an385/cross.ini` ({limits}), in bytes. Stack is that of",
             "the deepest chain of calls that begins in the part, the signature library's apart.", "",
             "| part | text | rodata | data | bss | stack |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, values in measured.components.items():
        lines.append(f"| {name} | " + " | ".join(str(values[kind]) for kind in KINDS) + " |")
    lines.append("| together | " + " | ".join(str(sum(part[kind] for part in measured.components.values())) for kind in KINDS[:4]) + " | |")
    lines += ["", "| what | measured | target | |", "| --- | ---: | ---: | --- |"]
    for group, found in (("total", measured.totals), ("stack", measured.stacks)):
        for name, values in found.items():
            target = budgets[group][name].get("target")
            verdict = "" if target is None else "met" if values["bytes"] <= target else f"{values['bytes'] - target} above"
            lines.append(f"| {budgets[group][name]['what']} | {values['bytes']} | {'' if target is None else target} | {verdict} |")
    lines += ["", f"Of the {measured.totals['objects']['bytes']} bytes of {budgets['total']['objects']['what']}: " +
              ", ".join(f"{name.split('::')[-1]} {size}" for name, size in measured.objects.items()) + "."]
    lines += ["", "Memory that the node's owner chooses: " +
              ", ".join(f"{name} {size}" for name, size in sorted(measured.buffers.items())) + ".", "",
              "The largest variables of the node: " + ", ".join(
                  f"{name} ({part}) {size}" for name, (part, size) in sorted(measured.variables.items(), key=lambda item: -item[1][1])
                  if size >= 64) + ".", "", "The deepest chains of calls:", ""]
    for name, values in measured.stacks.items():
        lines.append(f"- {name}: {measured.calls.path_text(values['path'])}")
    return lines


def row_of(board, measured):
    """The board's row of the table of all boards."""
    numbers = [measured.totals[name]["bytes"] for name in ROW_TOTALS] + [values["bytes"] for values in measured.stacks.values()]
    return f"| {board} | " + " | ".join(map(str, numbers)) + " |"


ROW_TOTALS = ("flash", "firmware", "signature", "ram", "objects", "program")


def rows_of(page):
    """Board -> row, from the page's text."""
    table = page.partition(ROWS)[2]
    return {line.split("|")[1].strip(): line for line in table.splitlines()[2:] if line.startswith("|")}


def table_of(rows, budgets):
    whats = [budgets["total"][name]["short"] for name in ROW_TOTALS] + [f"stack: {name}" for name in budgets["stack"]]
    return (ROWS + "| board | " + " | ".join(whats) + " |\n| --- |" + " ---: |" * len(whats) + "\n" +
            "".join(f"{rows[name]}\n" for name in sorted(rows)))


def own_budgets(board):
    """The file of a board's budgets, and its numbers by name."""
    path = HERE / "budgets" / f"{board}.toml"
    return path, tomllib.loads(path.read_text()) if path.exists() else {}


def compare_totals(board, measured, write):
    """Complaints about the totals and stacks of a board that is not the base."""
    path, numbers = own_budgets(board)
    found = {"total": {name: values["bytes"] for name, values in measured.totals.items()},
             "stack": {name: values["bytes"] for name, values in measured.stacks.items()}}
    if write:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# What the firmware of {board} may take, in bytes; the names are those of ../budgets.toml.\n" + "".join(
            f"\n[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items()) for group, values in found.items()))
        return []
    if not numbers:
        print(f"{board} has no budgets: {path.relative_to(HERE.parent.parent)}")
    return [f"budget: {name} is {value} bytes, above its budget of {numbers[group].get(name, 0)}: make it smaller, or raise {name} in {path.name} "
            "in the same change" for group, values in found.items() if numbers for name, value in values.items()
            if value > toolchain.allowed(numbers[group].get(name, 0))]


def other_board(board, build, measured, args, budgets):
    """The whole test of a board that is not the base."""
    complaints = measured.complaints + compare_totals(board, measured, args.update)
    row, page = row_of(board, measured), HERE.parent.parent / "docs/results/bare_metal.md"
    rows = rows_of(page.read_text())
    print(row)
    for name, values in measured.stacks.items():
        print(f"- {name}: {measured.calls.path_text(values['path'])}")
    if args.page:
        args.page.write_text(args.page.read_text().partition(ROWS)[0] + table_of({**rows, board: row}, budgets))
    elif board in rows and rows[board] != row and toolchain.is_budget_compiler():
        complaints.append(f"page: docs/results/bare_metal.md has '{rows[board]}'; write it again with --page")
    elif own_budgets(board)[1] and board not in rows:
        complaints.append("page: docs/results/bare_metal.md has no row of this board; write it with --page")
    complaints += check_startup(build)
    print("\n".join(complaints))
    return 1 if complaints else 0


def check_startup(build):
    """A program that is compiled for a floating-point unit must not link with start-up code that does not enable one."""
    if not any("-mfpu=" in entry["command"] for entry in build.commands.values()):
        return []
    words = list(build.link_words)
    at = next(index for index, word in enumerate(words) if word.endswith("libespalier-board.a"))
    spoilt = build.work / "libespalier-board.a"
    spoilt.unlink(missing_ok=True)
    members = [item for item in build.commands if item.startswith(f"{words[at]}.p/")]
    objects = [build.compile(item, build.work / f"spoilt_{number}.o", extra=["-Denable_fpu=enable_nothing"])
               for number, item in enumerate(members)]
    firmware.run(["arm-none-eabi-ar", "rcs", str(spoilt), *map(str, objects)], build.folder)
    words[at], words[words.index("-o") + 1] = str(spoilt), str(build.work / "spoilt.elf")
    try:
        firmware.run(words, build.folder)
    except SystemExit as refusal:
        if "enable_fpu" in str(refusal):
            print("start-up code that does not enable the floating-point unit is refused by the linker")
            return []
    return ["startup: start-up code that does not enable the floating-point unit was linked"]


def update(found):
    """Writes these numbers, by group, name and kind, over the budgets' own; the rest of the file stays."""
    group, lines = None, []
    for line in BUDGETS.read_text().splitlines():
        head = re.match(r"^\[(\w+)\.?(\w*)\]$", line)
        number = re.match(r"^(\w+) = (-?\d+|\[[\d, ]+\])$", line)
        if head:
            group = found.get(head.group(1), {}).get(head.group(2))
        elif number and group and number.group(1) in group:
            line = f"{number.group(1)} = {group[number.group(1)]}"
        lines.append(line)
    BUDGETS.write_text("\n".join(lines) + "\n")


def measure_option(build, name, entry, without):
    """What the program takes more if `sources` are compiled with the option's macro, by kind."""
    macro = entry["macro"]
    changed = [item for item in build.inputs if any(part in build.commands[item]["file"] for part in entry["sources"])]
    objects = [build.compile(item, build.work / (name + re.sub(r"[/.]+", "_", item) + ".o"), extra=["-U" + macro.split("=")[0], "-D" + macro]) for item in changed]
    target = build.work / f"{name}.elf"
    # The first definition of a symbol is taken; --gc-sections drops the others.
    build.link(target, first=["-Wl,--allow-multiple-definition", *objects])
    sections = toolchain.sections(target)
    return {kind: sections.get(f".{kind}", 0) - without.get(f".{kind}", 0) for kind in ("text", "bss")}


def measure_separate(build, name, entry):
    """A part that the program does not have: text with rodata, and the bytes of its objects."""
    like = next(item for item, command in build.commands.items() if command["file"].endswith("collectives/machine/machine.cc"))
    item = build.compile(like, build.work / f"separate_{name}.o", (HERE.parent.parent / entry["source"]).resolve())
    text = sum(size for section, size in toolchain.sections(item).items() if section.startswith((".text", ".rodata")))
    return {"text": text, "bytes": build.sizes(entry["headers"], list(entry["objects"].values()), name)}


def check_separate(found, budgets):
    """Lines for the page, and complaints."""
    lines, complaints = [], []
    for name, entry in budgets["separate"].items():
        text, sizes = found[name]["text"], found[name]["bytes"]
        lines.append(f"Not in this program: {entry['what']}, {text} bytes of text and rodata. In memory: " + ", ".join(f"each {of} {size}" for of, size in zip(entry["objects"], sizes)) + ".")
        for of, size, budget in zip(["text", *entry["objects"]], [text, *sizes], [entry["text"], *entry["bytes"]]):
            if size > toolchain.allowed(budget):
                complaints.append(f"separate: {name}, {of}, is {size} bytes, above its budget of {budget} in tests/size/budgets.toml")
    return lines, complaints


def check_options(found, budgets):
    """The options, against their budgets."""
    complaints = []
    for name, entry in budgets["option"].items():
        more = found[name]
        print(f"\n{entry['macro']}: {more['text']} bytes more text and rodata, {more['bss']} more bss")
        complaints += [f"option: {name}.{kind} is {more[kind]} bytes, above its budget of {entry[kind]} in tests/size/budgets.toml"
                       for kind in more if more[kind] > toolchain.allowed(entry[kind])]
        if more["text"] <= 0:
            complaints.append(f"option: {name} has no text: it is not compiled")
    return complaints


def freestanding(build):
    """(our objects that are the same on every board, linked or not; objects and archives that define the other symbols that these use)."""
    others = [item for item in build.inputs if re.search(r"/libraries/|/libespalier-board\.a", item)]
    return ([build.folder / item for item in build.inputs if item not in others],
            [*(build.folder / item for item in others), build.libgcc()])


def check_generators(build):
    """Complaints about the program of generators.cc."""
    target, complaints = build.work / "generators.elf", []
    compiled = build.compile_linked(firmware.read_map(build.link(target), build.commands))
    stack.deepest(firmware.CallGraph(compiled, target, complaints).graph, "reset", complaints)
    return complaints + forbidden.in_program(target) + forbidden.in_objects(*freestanding(build))


def check_rejections(build, budgets):
    """Each file of rejected/, compiled as the board's start-up code and linked in, must be rejected for its own reason."""
    bad = []
    like = next(item for item, entry in build.commands.items() if entry["file"].endswith("startup.cc"))
    objects, libraries = freestanding(build)
    provided = toolchain.defined_in([*objects, *libraries])
    for source in sorted((HERE / "rejected").glob("*.cc")):
        extra = ["-fthreadsafe-statics"] if source.stem == "guard" else []
        item = build.compile(like, build.work / f"rejected_{source.stem}.o", source.resolve(), extra)
        # The missing functions are at address 0. With --unresolved-symbols=ignore-all instead, the linker of binutils 2.44 refuses a jump to
        # one of them ("Unknown destination type"); that of 2.40 does not.
        missing = sorted(name for name, kind, _, _ in toolchain.symbols(item) if kind == "U" and name not in provided)
        words = [item, "-Wl,-u,rejected", *(f"-Wl,--defsym={name}=0" for name in missing), "-Wl,--noinhibit-exec"]
        measured = Measured(build, budgets, build.work / f"rejected_{source.stem}.elf", words, item)
        complaints = measured.complaints + forbidden.in_objects([item, *objects], libraries) + compare(measured, budgets, [])
        if not any(REASONS[source.stem] in line for line in complaints):
            bad.append(f"rejected/{source.name} was not rejected for '{REASONS[source.stem]}'; found: {complaints}")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("elf", type=pathlib.Path)
    parser.add_argument("--generators", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    args = parser.parse_args()
    budgets = tomllib.loads(BUDGETS.read_text())
    build = firmware.Build(args.build.resolve(), args.elf, args.build.resolve() / "tests/size/work")
    measured = Measured(build, budgets, build.work / "firmware.elf")
    measured.complaints += forbidden.in_objects(*freestanding(build))
    board = build.board()
    if board != BASE:
        return other_board(board, build, measured, args, budgets)
    separate = {name: measure_separate(build, name, entry) for name, entry in budgets["separate"].items()}
    options = {name: measure_option(build, name, entry, measured.sections) for name, entry in budgets["option"].items()}
    if args.update:
        update({"component": measured.components, "total": measured.totals, "stack": measured.stacks, "separate": separate, "option": options})
        budgets = tomllib.loads(BUDGETS.read_text())
    notes = []
    complaints = measured.complaints + compare(measured, budgets, notes)
    limits = ", ".join(f"{build.limit(name)} {name.lower()}" for name in ("LINKS", "PROGRAMS")) + f", window {build.limit('WINDOW')}"
    separate_lines, above = check_separate(separate, budgets)
    complaints += above
    lines = tables(measured, budgets, limits) + ["", *separate_lines]
    print("\n".join(lines + notes))
    if args.page:
        rows = {**(rows_of(args.page.read_text()) if args.page.exists() else {}), board: row_of(board, measured)}
        args.page.write_text(PAGE + "\n".join(lines) + "\n\n" + table_of(rows, budgets))
    complaints += check_options(options, budgets)
    complaints += check_rejections(build, budgets)
    complaints += check_generators(firmware.Build(build.folder, args.generators, build.work, build.compiled))
    for line in complaints:
        print(line)
    if not complaints:
        print(f"and each of the {len(REASONS)} files of tests/size/rejected is rejected for its own reason")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
