#!/usr/bin/python3
"""The ABI of the C library, libespalier.so. SYMBOLS, a symbols file of Debian, is the one list of what it exports: lines
" NAME@VERSION_NODE FIRST_VERSION" below the line of the library.

abi.py script SYMBOLS                  prints the linker's version script: these names, and nothing else
abi.py check SYMBOLS LIBRARY HEADER    compares the list with what LIBRARY exports and with the functions that HEADER declares
"""
import pathlib
import re
import subprocess
import sys


def fail(text):
    print(f"abi.py: {text}", file=sys.stderr)
    sys.exit(2)


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot read '{path}': {error}")


def listed(path):
    """Returns {name: version node}, in the order of the file."""
    names = {}
    for number, line in enumerate(read(path).splitlines()[1:], 1):
        match = re.fullmatch(r" (\w+)@(\w+) \S+", line)
        if not match:
            fail(f"{path}:{number + 1}: expected ' NAME@VERSION_NODE FIRST_VERSION'")
        if match[1] in names:
            fail(f"{path}:{number + 1}: {match[1]} is listed twice")
        names[match[1]] = match[2]
    # dpkg-gensymbols lists each node as a symbol of its own.
    return {name: node for name, node in names.items() if name != node}


def script(path):
    nodes = {}
    for name, node in listed(path).items():
        nodes.setdefault(node, []).append(name)
    before = ""
    for index, (node, names) in enumerate(sorted(nodes.items())):
        print(f"{node} {{\n  global:")
        for name in names:
            print(f"    {name};")
        print(("  local: *;\n" if index == 0 else "") + f"}}{before};")
        before = f" {node}"


def exported(library):
    run = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True, text=True)
    if run.returncode:
        fail(run.stderr.strip())
    # A: a version node itself. Lower case: a local symbol, which no program can use.
    symbols = [re.sub("@@?", "@", name) for _, kind, name in (line.split() for line in run.stdout.splitlines())
               if kind != "A" and (kind.isupper() or kind in "uvw")]
    return {name: node for name, _, node in (symbol.partition("@") for symbol in symbols)}


def declared(header):
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", read(header), flags=re.S | re.M)
    text = re.sub(r"\btypedef\b[^;{]*;", "", text)  # types of functions
    return set(re.findall(r"\b(espalier_\w+)\s*\([^;{}]*\)\s*;", text))


def check(path, library, header):
    names, there, functions = listed(path), exported(library), declared(header)
    findings = [f"{name}@{node} is exported and not listed: list it if it is part of the interface, hide it otherwise"
                for name, node in there.items() if name not in names]
    findings += [f"{name}@{node} is listed and not exported: programs that use it would not start any more"
                 for name, node in names.items() if there.get(name) != node]
    findings += [f"{name} is declared and not listed" for name in sorted(functions - names.keys())]
    findings += [f"{name} is listed and not declared" for name in names if name not in functions]
    for finding in findings:
        print(f"{path}: {finding}")
    print(f"{len(names)} symbols")
    return 1 if findings else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["script"] and len(sys.argv) == 3:
        script(sys.argv[2])
    elif sys.argv[1:2] == ["check"] and len(sys.argv) == 5:
        sys.exit(check(*sys.argv[2:]))
    else:
        fail("expected script SYMBOLS, or check SYMBOLS LIBRARY HEADER")
