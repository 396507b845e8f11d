#!/usr/bin/python3
"""size_test.py BUILD ELF [--update] [--page]: what a node in a C firmware takes on a board, against tests/embedded/budgets.toml.

ELF: the linked tests/embedded/probe.c      --update: writes what is measured as the board's budgets
                                            --page: writes the board's row into docs/firmware_in_c.md
Fails on a number above its budget, a budget or a row that is missing or another, a byte of .data, code before main, a symbol of the heap,
and a stack without bound.
"""
import argparse
import pathlib
import re
import sys
import tomllib

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "size"))
import firmware  # noqa: E402
import forbidden  # noqa: E402
import stack  # noqa: E402
import toolchain  # noqa: E402

BUDGETS, PAGE = HERE / "budgets.toml", HERE.parents[1] / "docs/firmware_in_c.md"
TABLE = "| --- |" + " ---: |" * 9 + "\n"
TYPES = {"node": "espalier_node", "program": "espalier::DecodedProgram",
         "link": "char[sizeof(espalier::SerialWire) + sizeof(espalier::embedded::CallerCarrier)]"}
STACKS = {"init": r"espalier_node_init", "start": r"espalier_node_start", "poll": r"espalier_node_poll",
          "next_deadline": r"espalier_node_next_deadline"}


def measure(build, complaints):
    target = build.work / "probe.elf"
    rows = firmware.read_map(build.link(target), build.commands)
    calls = firmware.CallGraph(build.compile_linked(rows), target, complaints)
    complaints += forbidden.in_program(target)
    own = [size for kind, _, size, item in rows if kind in ("text", "rodata") and "probe" in item]
    found = {"flash": sum(size for kind, _, size, _ in rows if kind in ("text", "rodata")) - sum(own),
             "bss": sum(size for kind, _, size, item in rows if kind == "bss" and "probe" not in item)}
    sizes = build.sizes(["firmware/embedded/node.cc"], list(TYPES.values()), "embedded")
    found |= {f"memory_{name}": size for name, size in zip(TYPES, sizes)}
    for name, pattern in STACKS.items():
        root = next(symbol for symbol, label in calls.graph.label.items() if re.search(rf"\b{pattern}\b", label))
        found[f"stack_{name}"] = stack.deepest(calls.graph, root, complaints)[0]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("elf", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    build, complaints = firmware.Build(args.build.resolve(), args.elf, args.build.resolve() / "tests/embedded/work"), []
    board = build.board()
    found = measure(build, complaints)
    budgets = tomllib.loads(BUDGETS.read_text())
    if args.update:
        budgets[board] = found
        head = BUDGETS.read_text().partition("\n[")[0].rstrip() + "\n"
        BUDGETS.write_text(head + "".join(f"\n[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in budgets[name].items())
                                          for name in sorted(budgets)))
    for name, value in found.items():
        limit = budgets.get(board, {}).get(name, -1)
        if value > toolchain.allowed(limit):
            complaints.append(f"budget: {name} of {board} is {value} bytes, and may be {limit}: make it smaller, or raise it in "
                              "tests/embedded/budgets.toml in the same change")
    row = f"| {board} | " + " | ".join(map(str, found.values())) + " |"
    print(row)
    text = PAGE.read_text()
    head, _, rest = text.partition(TABLE)
    rows, _, after = rest.partition("\n\n")
    present = {line.split("|")[1].strip(): line for line in rows.splitlines() if line}
    if args.page:
        present[board] = row
        PAGE.write_text(head + TABLE + "\n".join(present[name] for name in sorted(present)) + "\n\n" + after)
    elif present.get(board) != row and (board not in present or toolchain.is_budget_compiler()):
        complaints.append(f"page: docs/firmware_in_c.md has another row of {board}; write it with --page")
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
