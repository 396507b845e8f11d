#!/usr/bin/python3
"""Compares the configurations of features: those of include/espalier/internal/base/limits.h, of boards/limits.py and of docs/boards.md.

configurations_test.py ROOT CXX...    CXX: the C++ compiler

Fails if there are more than six, if limits.h accepts another one or a feature alone, if the board of build-m3 has none of them, whose test
`configurations-built` builds all others that boards without an operating system can have, and if one of these has no row in
tests/size/budgets.toml (option.NAME). Prints the table of docs/boards.md, with the boards of each.
"""
import pathlib
import re
import subprocess
import sys
import tomllib

MACROS = {"rotated_scratch": "ESPALIER_ROTATED_SCRATCH", "serial_mac": "ESPALIER_SERIAL_MAC", "spares": "ESPALIER_SPARES",
          "updates": "ESPALIER_UPDATES"}
BUILT = "mps2-an385"  # whose build runs builds_test.py
HOST_MACROS = ("ESPALIER_WITHOUT_DATA", "ESPALIER_UNEQUAL_COUNTS", "ESPALIER_SHORT_COLLECTIVES", "ESPALIER_PROGRAM_HOOKS")


class Compiler:
    def __init__(self, root, words):
        self.root, self.words = root, words

    def features(self, *options):
        """The values of all features with these options, or None: limits.h refuses them."""
        names = (*MACROS.values(), *HOST_MACROS)
        text = '#include "espalier/internal/base/limits.h"\nvalues ' + " ".join(names) + "\n"
        done = subprocess.run([*self.words, *options, "-I", self.root / "include", "-E", "-P", "-x", "c++", "-"], input=text,
                              capture_output=True, text=True)
        if done.returncode != 0:
            assert "#error" in done.stderr, done.stderr
            return None
        return dict(zip(names, re.search(r"^values (.*)$", done.stdout, re.M).group(1).split()))


def boards_by_configuration(root, limits):
    """Number of a configuration -> the boards whose description has it."""
    found = {}
    for file in sorted((root / "boards").glob("*/board.textproto")):
        board = limits.read_board(file, root / "proto")
        given = {field.name: value for field, value in board.limits.ListFields()}
        number = next((int(value) for name, value in limits.macros(board, given) if name == "CONFIGURATION"), 1)
        found.setdefault(number, []).append(board.name)
    return found


def table(known, boards):
    rows = ["| configuration | " + " | ".join(f"`{name}`" for name in MACROS) + " | what only hosts have | boards |",
            "| --- |" + " --- |" * (len(MACROS) + 2)]
    for name, (number, features) in known.items():
        rows.append(f"| {name} | " + " | ".join("yes" if feature in features else "" for feature in MACROS) +
                    (" | yes | " if name == "host" else " | | ") + ", ".join(boards.get(number, [])) + " |")
    return "\n".join(rows)


def main():
    root, words = pathlib.Path(sys.argv[1]), sys.argv[2:]
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / "boards"))
    import limits
    known = {"host": (1, tuple(MACROS)), **limits.CONFIGURATIONS}
    compiler = Compiler(root, words)
    wrong = []
    if len(known) > 6 or sorted(number for number, _ in known.values()) != list(range(1, len(known) + 1)):
        wrong.append(f"{len(known)} configurations; expected at most six, numbered from 1")
    for name, (number, features) in known.items():
        expected = {**{macro: str(int(feature in features)) for feature, macro in MACROS.items()},
                    **{macro: str(int(name == "host")) for macro in HOST_MACROS}}
        found = compiler.features(f"-DESPALIER_CONFIGURATION={number}")
        if found != expected:
            wrong.append(f"{name}: limits.h has {found}; expected {expected}")
    for options in ("ESPALIER_CONFIGURATION=0", f"ESPALIER_CONFIGURATION={len(known) + 1}", *(f"{macro}=1" for macro in MACROS.values())):
        if compiler.features("-D" + options) is not None:
            wrong.append(f"limits.h takes -D{options}; expected an #error")
    if compiler.features() != compiler.features("-DESPALIER_CONFIGURATION=1"):
        wrong.append("the default of this compiler is not the host's configuration")
    if compiler.features("-ffreestanding") != compiler.features("-DESPALIER_CONFIGURATION=2"):
        wrong.append("the default without a library is not the small board's configuration")
    budgets = tomllib.loads((root / "tests/size/budgets.toml").read_text())
    built = {entry["macro"] for entry in budgets["option"].values()}
    wrong += [f"{name}: no option of tests/size/budgets.toml builds it" for name, (number, _) in known.items()
              if number > 2 and f"ESPALIER_CONFIGURATION={number}" not in built]
    boards = boards_by_configuration(root, limits)
    if not any(BUILT in names for number, names in boards.items() if number > 1):
        wrong.append(f"{BUILT} has no configuration of a board without an operating system")
    print(table(known, boards))
    if table(known, boards) not in (root / "docs/boards.md").read_text():
        wrong.append("docs/boards.md: expected the table above")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
