#!/usr/bin/python3
"""digests.py SCHEDULE...: prints the 64-bit FNV-1a digests of the results (rank-R.bin) and of the logs (node-V.events) of all
nodes, one after the other. Simulation left them beside each schedule, in the folder of the schedule's name."""
import pathlib
import sys


def digest(paths):
    value = 0xCBF29CE484222325
    for byte in b"".join(path.read_bytes() for path in paths):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


print("""#pragma once
// What simulation says of the programs in node-R.img. Made by make.sh.

#include <cstdint>

namespace espalier::golden {
struct Digests {
  std::uint64_t results, events;
};
inline constexpr Digests kDigests[] = {""")
for schedule in map(pathlib.Path, sys.argv[1:]):
    folder = schedule.with_suffix("")
    results, events = (digest(sorted(folder.glob(pattern))) for pattern in ("rank-*.bin", "node-*.events"))
    print(f"    {{0x{results:016x}, 0x{events:016x}}},  // {schedule.stem}")
print("""};
}  // namespace espalier::golden""")
