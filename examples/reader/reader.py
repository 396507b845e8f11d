#!/usr/bin/python3
"""Checks the checksums and digests of schedule files, descriptors and selections, by docs/descriptor.md alone.
reader.py FILE [SPECIFICATION]    FILE: .esp, or .binpb (a descriptor, or a selection); SPECIFICATION: of its topology"""
import sys
import zlib
def need(condition, what):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {what}")

def fnv(data, seed=0xcbf29ce484222325):
    for byte in data:
        seed = (seed ^ byte) * 0x100000001b3 % 2**64
    return seed

def number(data, at, size):
    need(0 <= at <= len(data) - size, "truncated")
    return int.from_bytes(data[at:at + size], "little")

def varint(data, at):
    for length in range(1, 11):
        if number(data, at + length - 1, 1) < 128:
            return sum((data[at + k] & 127) << 7 * k for k in range(length)), at + length
    sys.exit("a varint of more than 10 bytes")

def fields(data):
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        need(kind in (0, 1, 2) and key >> 3, "not protobuf")
        value, at = varint(data, at) if kind != 1 else (number(data, at, 8), at + 8)
        need(kind != 2 or at + value <= len(data), "truncated")
        value, at = (data[at:at + value], at + value) if kind == 2 else (value, at)
        found.setdefault(key >> 3, []).append(value)
    return found

def descriptor(data, spec, node=None):
    message = fields(data)
    need(message.get(1) == [1], "unknown format version")
    need(spec is None or message[3 if 7 in message and isinstance(message[7][0], bytes) else 2] == [fnv(spec) or 1], "wrong topology")
    need(node is None or message.get(8, [0]) == [node], "wrong node")
    return message

def schedule(data, selection=None):
    need(data[:8] == b"ESPALIER" and number(data, 8, 4) == 1 and number(data, 32, 8) == len(data), "not a schedule file, or truncated")
    nodes, size = number(data, 16, 4), number(data, 40, 4)
    table = (44 + size + 7) // 8 * 8
    need(table + 16 * nodes <= len(data) and zlib.crc32(data[16:table + 16 * nodes]) == number(data, 12, 4), "corrupt")
    spec, place, digests = data[44:44 + size], table + 16 * nodes, set()
    need(number(data, 24, 8) == (fnv(spec) or 1), "the topology digest is not that of the specification")
    for node in range(nodes):
        at, length = number(data, table + 16 * node, 8), number(data, table + 16 * node + 8, 4)
        need(at == place and zlib.crc32(data[at:at + length]) == number(data, table + 16 * node + 12, 4), f"corrupt: node {node}")
        digests.add(descriptor(data[at:at + length], spec, node)[3][0])
        need(len(digests) == 1, f"node {node} has another schedule digest")
        place = at + length
    need(place == len(data), "bytes after the last descriptor")
    need(selection is None or digests == {fnv(selection[1].to_bytes(8, "little"), selection[0])}, "not the schedule that the selection names")
    return f"{nodes} descriptors of {spec.decode()}, schedule digest {digests.pop():016x}"

def selection(data):
    count, size = number(data, 16, 4), number(data, 20, 4)
    table = (32 + size + 7) // 8 * 8
    need(number(data, 24, 8) == len(data) and zlib.crc32(data[16:table + 16 * count]) == number(data, 12, 4), "corrupt or truncated")
    packed = descriptor(data[32:32 + size], None)[7]
    place, alone = table + 16 * count, [number(part, at, 8) for part in packed for at in range(0, len(part), 8)]
    need(len(alone) == count, "another number of schedules")
    for k, digest in enumerate(alone):
        at, length = number(data, table + 16 * k, 8), number(data, table + 16 * k + 8, 8)
        need(at == place, "corrupt")
        print(schedule(data[at:at + length], (fnv(data[32:32 + size]) or 1, digest)))
        place = at + length
    need(place == len(data), "bytes after the last schedule")
    return f"a selection of {count} schedules"

content = open(sys.argv[1], "rb").read()
if content[:8] != b"ESPALIER":
    print(f"{len(descriptor(content, sys.argv[2].encode() if len(sys.argv) > 2 else None))} fields")
else:
    print(selection(content) if number(content, 8, 4) == 2 else schedule(content))
