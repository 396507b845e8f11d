#!/usr/bin/python3
"""archive_test.py ROOT ARCHIVE PREFIX [--allow PATTERN]...: libespalier_node.a needs nothing but a C compiler.

PREFIX: of the binary utilities, '' on a host. --allow: undefined symbols of C libraries that the archive of a host may have. Fails on
 * a symbol of the heap, of exceptions, of guarded statics, of atexit, of the C++ run-time or, unless the archive defines it, its library;
 * an undefined symbol other than the four memory functions and the compiler's own;
 * code before main, or initialised memory;
 * a header that a C99 compiler does not take, pedantically.
Then shows that it can fail: with each file of tests/size/rejected in it, the archive must be refused for its own reason.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "size"))
import forbidden  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from processes import output_of  # noqa: E402

MEMORY = {"memcpy", "memmove", "memset", "memcmp"}
# Integer and floating-point arithmetic that a compiler calls, position independence, stack protection, the processor's kind.
COMPILER = re.compile(r"^(__aeabi_\w+|__gnu_\w+|__\w+[sdtq]i[234]|__\w+[sdt]f[234]?|__\w+vfp|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__cpu_\w+)$")
CXX = re.compile(r"^(_ZS[tabsiod]\w*|_ZNK?S[tabsiod]\w*|_ZT[VIS]N?S[tabsiod]\w*|_ZTVN10__cxxabi\w*|__cxa_(?!pure_virtual)\w+|__dynamic_cast)$")
# Functions of its headers, which the archive may define: GCC 14 does not inline a std::copy() of the machine that GCC 12 inlines.
HEADERS = re.compile(r"^(_ZS[tabsiod]|_ZNK?S[tabsiod])")
SECTIONS = re.compile(r"^\.(init_array|fini_array|ctors|dtors|preinit_array|data(?!\.rel\.ro))\b")
REASONS = {"heap": "_Znwj|_Znwm", "array": "_Zda", "guard": "__cxa_guard_acquire", "data": r"\.data", "constructor": r"\.init_array", "libc": "printf"}


def complaints_about(archive, args):
    defined, undefined = set(), set()
    for line in output_of([f"{args.prefix}nm", "-P", archive]).splitlines():
        parts = line.split()
        if len(parts) >= 2 and not line.endswith(":"):
            (undefined if parts[1] in "Uw" else defined).add(parts[0])
    found = [f"symbol: {name} is in the archive" for name in sorted(defined | undefined)
             if forbidden.FORBIDDEN.match(name) or CXX.match(name) and not (name in defined and HEADERS.match(name))]
    for name in sorted(undefined - defined - MEMORY):
        if not COMPILER.match(name) and not any(re.fullmatch(pattern, name) for pattern in args.allow):
            found.append(f"symbol: {name} is undefined")
    member = "?"
    for line in output_of([f"{args.prefix}size", "-A", archive]).splitlines():
        parts = line.split()
        if "(ex " in line or line.endswith(":"):
            member = parts[0]
        elif len(parts) == 3 and SECTIONS.match(parts[0]) and int(parts[1]) > 0:
            found.append(f"section: {member}: {parts[0]} has {parts[1]} bytes")
    return found, len(defined)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("prefix")
    parser.add_argument("--allow", action="append", default=[])
    args = parser.parse_args()
    found, count = complaints_about(args.archive, args)
    if count < 100:
        found.append(f"{args.archive} has {count} symbols, expected a whole node")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        source = work / "header.c"
        source.write_text('#include "espalier/espalier_node.h"\nint main(void) { return espalier_node_init(0, 0, 0, 0) == ESPALIER_OK; }\n')
        output_of([f"{args.prefix}gcc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{args.root / 'include'}", source])
        for name, reason in REASONS.items():
            item, spoilt = work / f"{name}.o", work / f"{name}.a"
            output_of([f"{args.prefix}g++", "-std=c++20", "-Os", "-w", "-fno-exceptions", "-fno-rtti", f"-I{args.root / 'include'}",
                 "-fthreadsafe-statics" if name == "guard" else "-fno-threadsafe-statics", "-c",
                 args.root / f"tests/size/rejected/{name}.cc", "-o", item])
            shutil.copy(args.archive, spoilt)
            output_of([f"{args.prefix}ar", "q", spoilt, item])
            if not any(re.search(reason, line) for line in complaints_about(spoilt, args)[0]):
                found.append(f"with {name}.cc in it the archive was not refused for '{reason}'")
    print("\n".join(found) or f"{count} symbols, none of a C++ run-time; each of {len(REASONS)} spoilt archives is refused for its own reason")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
