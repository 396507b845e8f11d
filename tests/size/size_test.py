#!/usr/bin/python3
"""Links the freestanding part for Cortex-M3, prints its size, and fails on anything that bare metal cannot have.

size_test.py --work DIR --generated DIR [--include DIR] --proto FILE --root DIR --module NAME SOURCE... [--module ...]
             --library NAME;FOLDER;FLAG;...;SOURCE;... [--library ...]

Fails on:
 * a symbol of the heap, of exceptions, of guarded statics or of atexit;
 * an undefined symbol other than the four memory functions, __cxa_pure_virtual and the symbols of libgcc;
 * a byte of .data;
 * code before main;
 * a stack without bound;
 * a boot that needs more stack than BOOT_STACK, not counting the signature library;
 * a build with an option of OPTIONS that takes more than budgets.toml allows (option.NAME); see toolchain.allowed().
Then shows that it can fail: each file of rejected/ must be rejected for its own reason.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stack  # noqa: E402
import toolchain  # noqa: E402

HERE = pathlib.Path(__file__).parent
LIMITS = {"ESPALIER_MAX_LINKS": 8, "ESPALIER_MAX_WINDOW": 2}
BOOT_STACK = 2048  # bytes
COMPONENT = {"nanopb": "nanopb", "mbedtls": "sha256", "sodium": "signature"}  # of the libraries of firmware/bare/libraries
FOREIGN = {"mbedtls", "sodium"}  # libraries of which not all functions are linked
# What a board may have more, as budgets.toml has it (option.NAME), and the modules whose code it changes.
OPTIONS = {"rotated_scratch": {"schedule", "machine"}, "selections": {"schedule", "image", "boot"}, "spares": {"machine", "image"},
           "full": {"schedule", "machine", "image", "boot", "update"}}
# The symbols that a board must provide, besides libgcc.
PROVIDED = {"memcpy", "memmove", "memset", "memcmp", "__cxa_pure_virtual"}
FORBIDDEN = re.compile(
    r"^(_?malloc(_r)?|_?calloc(_r)?|_?realloc(_r)?|_?free(_r)?|_sbrk|_Zn[wa]\w*|_Zd[la]P\w*|__cxa_(throw|rethrow|allocate_exception|"
    r"begin_catch|end_catch|atexit|guard_\w+)|__gxx_personality_v0|_Unwind_\w+|__aeabi_atexit|atexit)$")
# The reason for which each file of rejected/ must be refused.
REASONS = {
    "heap": "_Znwj", "array": "_ZdaPv", "guard": "__cxa_guard_acquire", "data": ".data is 4", "constructor": ".init_array",
    "libc": "printf", "recursion": "nothing bounds the recursion", "indirect": "calls through a pointer",
    "frame": "no bound at compile time",
}


class Library:
    """One of firmware/bare/libraries: NAME;FOLDER;FLAG;...;SOURCE;... as meson gives it. Includes and macros are for its users
    too, flags with one more '-' for its own sources alone."""

    def __init__(self, text):
        self.name, folder, *words = text.split(";")
        self.folder = pathlib.Path(folder)
        self.use = [word for word in words if word.startswith("-") and not word.startswith("--")]
        self.flags = [word[1:] for word in words if word.startswith("--")]
        self.sources = [self.folder / word for word in words if not word.startswith("-")]


def message_depth(proto):
    """How deep messages nest in the schema: Program > Action > Place is 3."""
    fields = {}
    for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", proto.read_text(), re.M | re.S):
        fields[name] = set(re.findall(r"^\s*(?:repeated\s+)?(\w+)\s+\w+\s*=", body, re.M))

    def depth(name, above):
        if name in above:
            raise SystemExit(f"size: message {name} contains itself: nothing bounds the decoder's stack")
        return 1 + max((depth(field, above | {name}) for field in fields[name] if field in fields), default=0)

    return max(depth(name, frozenset()) for name in fields)


def defined_in(files):
    """Names of global symbols that these objects or archives define."""
    return {name for item in files for name, kind, _, _ in toolchain.symbols(item) if kind.isupper() and kind != "U"}


def symbol_complaints(objects, own):
    """`own`: objects of the board itself, which provide what the library may leave undefined."""
    libgcc = defined_in([toolchain.library("libgcc.a")])
    defined, undefined = set(), set()
    for item in objects:
        foreign = item.parent.name in FOREIGN  # most of it is not linked: the linked program shows the needed symbols
        for name, kind, _, _ in toolchain.symbols(item):
            if foreign and kind in "Uw":
                continue
            (undefined if kind in "Uw" else defined).add(name)
    complaints = [f"symbol: {name} is {'undefined' if name in undefined else 'defined'}, and must not be there"
                  for name in sorted(defined | undefined) if FORBIDDEN.match(name)]
    board = defined_in(own)
    for name in sorted(undefined - defined - libgcc - PROVIDED - board):
        if not FORBIDDEN.match(name):
            complaints.append(f"symbol: {name} is undefined; a board brings {', '.join(sorted(PROVIDED))} and libgcc")
    return complaints


def call_graph(objects, elf, complaints):
    graph = stack.Graph([item.with_suffix(".ci") for item in objects])
    stack.resolve_indirect(graph, toolchain.addresses_taken(objects), complaints)
    stack.add_unknown_frames(graph, elf)
    return graph


def named(graph, pattern):
    """The one function of the linked program with such a name."""
    found = [name for name, label in graph.label.items() if re.search(pattern, label) and not re.search(r"\.(part|constprop)", name)]
    if len(found) != 1:
        raise SystemExit(f"size: {len(found)} functions are called {pattern}")
    return found[0]


def boot_stack(objects, elf, depth, complaints):
    """[(what, bytes, path)]: booting without the signature library, and that library alone."""
    graph = call_graph(objects, elf, [])
    verify = named(graph, r"::verify\(")
    found = [("signature library", *stack.deepest(graph, verify, depth, complaints))]
    for callees in graph.calls.values():
        callees.discard(verify)
    for what in ("boot", "finish", "confirm"):
        found.append((what, *stack.deepest(graph, named(graph, rf"espalier::Slots::{what}\("), depth, complaints)))
    for what, size, _ in found[1:]:
        if size > BOOT_STACK:
            complaints.append(f"stack: {what} needs {size} bytes without the signature library, and may need {BOOT_STACK}")
    return [(what, size, [(graph.label.get(name, name), times) for name, times in path]) for what, size, path in found]


def inspect(objects, own, elf, depth, root):
    """(complaints, stack bytes, path, sections) of a linked program."""
    complaints = symbol_complaints(objects, own)
    sizes = toolchain.sections(elf)
    for name, what in ((".data", "initialised memory"), (".init_array", "code before main"), (".fini_array", "code at exit")):
        if sizes.get(name, 0):
            complaints.append(f"section: {name} is {sizes[name]} bytes, and must be 0: {what}")
    for name, kind, _, _ in toolchain.symbols(elf):
        if FORBIDDEN.match(name):
            complaints.append(f"symbol: {name} is in the linked program")
    graph = call_graph(objects + own, elf, complaints)
    size, path = stack.deepest(graph, root, depth, complaints)
    return complaints, size, [(graph.label.get(name, name), times) for name, times in path], sizes


def module_sizes(modules, elf):
    """Module -> bytes of flash, by the sizes of the symbols that its objects define."""
    owner = {name: module for module, objects in modules.items() for item in objects
             for name, kind, _, _ in toolchain.symbols(item) if kind != "U"}
    total = {}
    for name, kind, size, _ in toolchain.symbols(elf):
        if kind in "TtRrWwVv":
            module = owner.get(name, "libgcc")
            total[module] = total.get(module, 0) + size
    return total


def report(modules, elf, size, path, sizes):
    flash = module_sizes(modules, elf)
    ram = {name.split("12_GLOBAL__N_1")[-1].lstrip("0123456789L_ZN").rstrip("E"): bytes_ for name, kind, bytes_, _
           in toolchain.symbols(elf) if kind in "Bb" and bytes_ >= 64}
    limits = ", ".join(f"{name}={value}" for name, value in LIMITS.items())
    print(f"bare metal: Cortex-M3, -Os, {limits}")
    print(f"  text  {sizes.get('.text', 0):6} bytes  " + ", ".join(f"{name} {flash[name]}" for name in sorted(flash)))
    print(f"  data  {sizes.get('.data', 0):6} bytes")
    print(f"  bss   {sizes.get('.bss', 0):6} bytes  " + ", ".join(f"{name} {ram[name]}" for name in sorted(ram)))
    print(f"  stack {size:6} bytes at worst (interrupts not counted): {path_text(path)}")


def report_boot(found, flash):
    """Prints the size of image check and boot, and apart from them of the signature library."""
    parts = {name: flash.get(name, 0) for name in ("image", "boot", "sha256")}
    print(f"image check and boot: text and rodata {sum(parts.values())} bytes (" +
          ", ".join(f"{name} {size}" for name, size in parts.items()) + f"); the signature library apart: {flash['signature']}")
    for what, size, path in found:
        print(f"  stack {size:6} bytes at worst, {what}: {path_text(path)}")


def path_text(path):
    return " > ".join(short(label) + (f" x{times}" if times > 1 else "") for label, times in path)


def short(label):
    """A function's name without its types."""
    return re.sub(r"\(.*$", "", re.sub(r"\(anonymous namespace\)|\{anonymous\}", "", label)).split(" ")[-1].removeprefix("::")


def check_rejections(objects, own, options, depth, work):
    """Each file of rejected/ is linked into the program; inspect() must complain, for the file's own reason."""
    bad = []
    provided = defined_in([*objects, *own, toolchain.library("libgcc.a")])
    for source in sorted((HERE / "rejected").glob("*.cc")):
        extra = ["-fthreadsafe-statics"] if source.stem == "guard" else []
        item = toolchain.compile_all([(source, extra)], options, work)[0]
        elf = work / f"{source.stem}.elf"
        # The missing functions are at address 0. With --unresolved-symbols=ignore-all instead, the linker of binutils 2.44 refuses a jump to
        # one of them ("Unknown destination type"); that of 2.40 does not.
        missing = sorted(name for name, kind, _, _ in toolchain.symbols(item) if kind == "U" and name not in provided)
        toolchain.link(objects + own + [item], HERE / "cortex_m3.ld", elf,
                       ["-Wl,-u,rejected", *(f"-Wl,--defsym={name}=0" for name in missing)])
        complaints = inspect(objects + [item], own, elf, depth, "rejected")[0]
        if not any(REASONS[source.stem] in line for line in complaints):
            bad.append(f"rejected/{source.name} was not rejected for '{REASONS[source.stem]}'; found: {complaints}")
    return bad


def check_option(option, sizes, link_with):
    """What a board takes more with one of OPTIONS, against budgets.toml. `sizes`: without."""
    budget = tomllib.loads((HERE / "budgets.toml").read_text())["option"][option]
    with_it = toolchain.sections(link_with(option, ["-D" + budget["macro"]], OPTIONS[option]))
    more = {name: with_it.get(f".{name}", 0) - sizes.get(f".{name}", 0) for name in ("text", "bss")}
    print(f"{budget['macro']}: {more['text']} bytes more text, {more['bss']} more bss")
    return [f"option: {option}.{name} is {more[name]}, and may be {budget[name]}" for name in more if more[name] > toolchain.allowed(budget[name])] + \
           ([f"option: {option} has no text: it is not compiled"] if more["text"] <= 0 else [])


def main():
    parser = argparse.ArgumentParser()
    for name in ("work", "generated", "proto", "root"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--include", type=pathlib.Path, action="append", default=[])  # looked at after --generated
    parser.add_argument("--module", nargs="+", action="append", required=True)
    parser.add_argument("--library", dest="libraries", action="append", type=Library, required=True)
    args = parser.parse_args()
    for library in args.libraries:
        if not (library.folder / ".complete").exists():
            print(f"no sources in {library.folder}: run ./setup.sh")
            return 77
    if not shutil.which("arm-none-eabi-g++"):
        print("no arm-none-eabi-g++: run ./setup.sh")
        return 77
    shutil.rmtree(args.work, ignore_errors=True)
    options = [f"-D{name}={value}" for name, value in LIMITS.items()]
    options += [f"-I{folder}" for folder in (args.root, args.root / "include", args.generated, *args.include)]
    options += [flag for library in args.libraries for flag in library.use]
    modules = {}
    for name, *sources in args.module:
        modules[name] = toolchain.compile_all([(source, []) for source in sources], options, args.work)
    for library in args.libraries:
        sources = [(source, ["-w", "-Wno-error", *library.flags]) for source in library.sources]
        modules.setdefault(COMPONENT[library.name], []).extend(toolchain.compile_all(sources, options, args.work / library.name))
    modules["nanopb"] += toolchain.compile_all([(args.generated / "espalier/internal/proto/schedule.pb.c", ["-Wno-error"])], options, args.work)
    board = [HERE / "board.cc", args.root / "firmware/bare/memory.cc"]
    own = toolchain.compile_all([(source, ["-fno-builtin"]) for source in board], options, args.work)
    objects = [item for group in modules.values() for item in group]
    elf = args.work / "board.elf"
    toolchain.link(objects + own, HERE / "cortex_m3.ld", elf)
    depth = message_depth(args.proto)
    complaints, size, path, sizes = inspect(objects, own, elf, depth, "reset")
    report({**modules, "board": own}, elf, size, path, sizes)
    report_boot(boot_stack(objects + own, elf, depth, complaints), module_sizes(modules, elf))

    def link_with(option, flags, changed):
        folder = args.work / option
        sources = [(source, []) for name, *sources in args.module for source in sources if name in changed]
        items = toolchain.compile_all(sources, options + flags, folder)
        items += [item for group in modules.values() for item in group if item.name not in {one.name for one in items}]
        items += toolchain.compile_all([(source, ["-fno-builtin"]) for source in board], options + flags, folder)
        toolchain.link(items, HERE / "cortex_m3.ld", folder / "board.elf")
        return folder / "board.elf"

    for option in OPTIONS:
        complaints += check_option(option, sizes, link_with)
    complaints += check_rejections(objects, own, options, depth, args.work / "rejected")
    for line in complaints:
        print(line)
    if not complaints:
        print(f"  and each of the {len(REASONS)} files of tests/size/rejected is rejected for its own reason")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
