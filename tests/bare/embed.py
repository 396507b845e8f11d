#!/usr/bin/python3
"""embed.py FILE...: prints C++ arrays of the files' bytes, each named like its file up to the first '.', with '_' for '-'."""
import pathlib
import sys

print("#pragma once\n#include <cstdint>\nnamespace espalier::golden {")
for path in map(pathlib.Path, sys.argv[1:]):
    name = path.name.split(".")[0].replace("-", "_")
    print(f"alignas(8) inline constexpr std::uint8_t {name}[] = {{{','.join(map(str, path.read_bytes()))}}};")
print("}")
