"""What no program of bare metal may have."""
import re

import toolchain

# The heap, exceptions, guarded statics, functions at exit.
FORBIDDEN = re.compile(
    r"^(_?malloc(_r)?|_?calloc(_r)?|_?realloc(_r)?|_?free(_r)?|_sbrk|_Zn[wa]\w*|_Zd[la]P\w*|__cxa_(throw|rethrow|allocate_exception|"
    r"begin_catch|end_catch|atexit|guard_\w+)|__gxx_personality_v0|_Unwind_\w+|__aeabi_atexit|atexit)$")
SECTIONS = {".data": "initialised memory", ".init_array": "code before main", ".fini_array": "code at exit"}
# The symbols that a board must provide, besides libgcc.
PROVIDED = {"memcpy", "memmove", "memset", "memcmp", "__cxa_pure_virtual"}


def in_program(elf):
    """Complaints about a linked program."""
    sizes = toolchain.sections(elf)
    return [f"section: {name} is {sizes[name]} bytes, and must be 0: {what}" for name, what in SECTIONS.items() if sizes.get(name, 0)] + \
           [f"symbol: {name} is in the linked program" for name, _, _, _ in toolchain.symbols(elf) if FORBIDDEN.match(name)]


def in_objects(objects, libraries):
    """Complaints about objects, linked or not; what they leave undefined must be in one of them, in `libraries` or PROVIDED."""
    symbols = [(name, kind) for item in objects for name, kind, _, _ in toolchain.symbols(item)]
    undefined = {name for name, kind in symbols if kind in "Uw"} - toolchain.defined_in([*objects, *libraries]) - PROVIDED
    return [f"symbol: {name} is in an object, and must not be there" for name in sorted({name for name, _ in symbols}) if FORBIDDEN.match(name)] + \
           [f"symbol: {name} is undefined; a board brings {', '.join(sorted(PROVIDED))} and libgcc"
            for name in sorted(undefined) if not FORBIDDEN.match(name)]
