#!/usr/bin/python3
"""Objects that were compiled with different macros of include/espalier/internal/base/limits.h do not link, if a public class has another layout.

mixture_test.py LIMITS INCLUDE... -- COMPILER...
Compiles functions that take the public classes once, and their caller once with the same macros, which links, and then with another
value of each macro: wherever the size of a class differs its function is not found. Each macro of LIMITS has its row below.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Other values than that of hosts, and whether public classes have another layout with each.
MACROS = {
    "CONFIGURATION": ((2, 3, 4, 5, 6), True), "MAX_LINKS": ((64,), True), "MAX_WINDOW": ((8,), True), "MAX_PROGRAMS": ((8,), False),
    "MAX_SELECTIONS": ((2,), False), "MAX_CURSORS": ((32,), True), "COMPACT_OPERATORS": ((1,), False),
}
HEADERS = ["collectives/machine/machine.h", "collectives/schedule/file.h", "hal/mem/mem_endpoint.h", "hal/serial/serial_endpoint.h",
           "hal/sim/network.h"]
CLASSES = ["Buffers", "DecodedProgram", "Layout", "EventLog", "FailureDetector", "InstanceScheduler", "LinkSet", "Machine", "Machine::Prepared",
           "MachineConfig", "MessageRing", "ScheduleFile", "SerialConfig", "SerialEndpoint", "SerialLink", "SerialLinks", "SerialPort",
           "SerialPortConfig", "StallReport", "mem::MemConfig", "mem::MemEndpoint", "mem::MemLink", "sim::Network"]


def fail(line):
    print(f"mixture_test.py: {line}", file=sys.stderr)
    sys.exit(1)


def source(is_caller):
    lines = [f'#include "espalier/{header}"' for header in HEADERS]
    for name in CLASSES:
        if is_caller:
            word = name.replace(":", "_")
            lines += [f"void take(const espalier::{name}&);", f'extern "C" {{ extern const char size_{word}[sizeof(espalier::{name})]; '
                      f"const char size_{word}[sizeof(espalier::{name})] = {{1}}; }}"]
        else:
            lines.append(f"void take(const espalier::{name}&) {{}}")
    if is_caller:
        lines.append("int main() {")
        lines += [f"  take(*static_cast<espalier::{name}*>(nullptr));" for name in CLASSES] + ["}"]
    return "\n".join(lines) + "\n"


class Build:
    def __init__(self, folder, compiler, includes):
        self.folder = pathlib.Path(folder)
        self.command = [*compiler, "-std=c++20", "-w", *includes]
        for name in ("functions", "caller"):
            (self.folder / f"{name}.cc").write_text(source(name == "caller"))

    def compile(self, name, *macros):
        subprocess.run([*self.command, "-c", f"{name}.cc", "-o", f"{name}.o", *macros], cwd=self.folder, check=True)

    def link(self):
        """Returns the classes whose functions are not found."""
        result = subprocess.run([*self.command, "functions.o", "caller.o", "-o", "program"], cwd=self.folder, capture_output=True, text=True)
        found = {match.group(1) for match in re.finditer(r"undefined reference to `take\(espalier::([\w:]+) const&\)'", result.stderr)}
        if bool(result.returncode) != bool(found):
            fail(f"the linker said: {result.stderr}")
        return {re.sub(r"build_\w+::", "", name) for name in found}

    def sizes(self):
        lines = subprocess.run(["nm", "-S", "caller.o"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        return {match.group(2): int(match.group(1), 16) for match in re.finditer(r"^\w+ (\w+) \w size_(\w+)$", lines, re.M)}


def main():
    limits, *includes = sys.argv[1:sys.argv.index("--")]
    compiler = sys.argv[sys.argv.index("--") + 1:]
    macros = set(re.findall(r"^#ifndef ESPALIER_(\w+)$", pathlib.Path(limits).read_text(), re.M))
    if macros != set(MACROS):
        fail(f"MACROS and {limits} differ: {', '.join(sorted(macros ^ set(MACROS)))}; give each macro its row")
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, compiler, includes)
        build.compile("functions")
        build.compile("caller")
        if missing := build.link():
            fail(f"with the same macros these do not link: {', '.join(sorted(missing))}")
        sizes = build.sizes()
        if len(sizes) != len(CLASSES):
            fail(f"{len(sizes)} sizes were found, expected {len(CLASSES)}")
        for name, value, has_layout in ((name, value, has_layout) for name, (values, has_layout) in MACROS.items() for value in values):
            build.compile("caller", f"-DESPALIER_{name}={value}")
            missing, other = build.link(), build.sizes()
            differ = {c for c in CLASSES if sizes[c.replace(":", "_")] != other[c.replace(":", "_")]}
            print(f"{name}={value}: {len(differ)} sizes differ, {len(missing)} functions are not found")
            if silent := differ - missing:
                fail(f"{name}={value} changes the layout of {', '.join(sorted(silent))}, and a mixture links; put it into a namespace of {limits}")
            if bool(missing) != has_layout:
                fail(f"{name}={value}: {len(missing)} functions are not found, which MACROS does not say")


if __name__ == "__main__":
    main()
