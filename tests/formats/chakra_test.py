#!/usr/bin/python3
"""Every algorithm, exported to Chakra execution traces and read by protobuf: order, sizes and dependencies are those of the
schedule, and the traces run to their end."""
import unittest

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import expected
import exports
import goal_test
import schedules

INTEGER = descriptor_pb2.FieldDescriptorProto
NODE_TYPES = {4: "local", 5: "send", 6: "receive"}


def messages():
    """GlobalMetadata and Node of Chakra's et_def.proto, as far as traces of point-to-point messages have them."""
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")

    def add(name, fields):
        message = file.message_type.add(name=name)
        for number, (field, kind, repeated) in fields.items():
            made = message.field.add(name=field, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                made.type, made.type_name = INTEGER.TYPE_MESSAGE, f".ChakraProtoMsg.{kind}"
            else:
                made.type = kind
        return message

    attribute = add("AttributeProto", {1: ("name", INTEGER.TYPE_STRING, False), 2: ("doc_string", INTEGER.TYPE_STRING, False),
                                       7: ("int32_val", INTEGER.TYPE_INT32, False), 9: ("int64_val", INTEGER.TYPE_INT64, False),
                                       29: ("string_val", INTEGER.TYPE_STRING, False)})
    attribute.oneof_decl.add(name="value")
    for field in attribute.field[2:]:
        field.oneof_index = 0
    add("GlobalMetadata", {1: ("version", INTEGER.TYPE_STRING, False), 2: ("attr", "AttributeProto", True)})
    add("Node", {1: ("id", INTEGER.TYPE_UINT64, False), 2: ("name", INTEGER.TYPE_STRING, False), 3: ("type", INTEGER.TYPE_INT32, False),
                 4: ("ctrl_deps", INTEGER.TYPE_UINT64, True), 5: ("data_deps", INTEGER.TYPE_UINT64, True),
                 6: ("start_time_micros", INTEGER.TYPE_UINT64, False), 7: ("duration_micros", INTEGER.TYPE_UINT64, False),
                 10: ("attr", "AttributeProto", True)})
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    make = message_factory.MessageFactory(pool).GetPrototype
    return (make(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}")) for name in ("GlobalMetadata", "Node"))


METADATA, NODE = messages()


def parts(data):
    """The messages of a file, each with its length before it."""
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        assert 0 < length <= len(data) - at
        yield data[at:at + length]
        at += length


def values(attributes):
    return {one.name: (one.WhichOneof("value"), getattr(one, one.WhichOneof("value"))) for one in attributes}


def read(path):
    """(the collective, [kind, peer, tag, bytes, dependencies, duration] of each node of the trace)."""
    first, *rest = parts(path.read_bytes())
    metadata = METADATA.FromString(first)
    facts = values(metadata.attr)
    assert metadata.version and facts["schema"] == ("string_val", "1.0.2-chakra.0.0.4")
    rows, rank = [], int(path.suffixes[-2][1:])
    for number, part in enumerate(rest):
        node = NODE.FromString(part)
        assert node.SerializeToString() == part and not node.UnknownFields()
        assert node.id == number and not node.ctrl_deps and node.name
        kind, facts_of_node = NODE_TYPES[node.type], values(node.attr)
        if kind == "local":
            assert not facts_of_node
            rows.append((kind, None, None, None, set(node.data_deps), node.duration_micros))
            continue
        peer, own = ("comm_dst", "comm_src") if kind == "send" else ("comm_src", "comm_dst")
        assert {name: of for name, (of, _) in facts_of_node.items()} == {
            "comm_type": "int64_val", "comm_size": "int64_val", peer: "int32_val", own: "int32_val", "comm_tag": "int32_val"}
        assert facts_of_node[own][1] == rank
        assert facts_of_node["comm_type"][1] == node.type
        rows.append((kind, facts_of_node[peer][1], facts_of_node["comm_tag"][1], facts_of_node["comm_size"][1], set(node.data_deps), None))
    return facts["collective"][1], rows


class Chakra(exports.Exports):
    def test_every_algorithm(self):
        def judge(case, prefix):
            right = expected.Expected(case.file, 0 if case.collective == "barrier" else goal_test.Goal.SIZES[case.wanted])
            traces = [read(prefix.with_name(f"{prefix.name}.{node}.et")) for node in range(right.facts["nodes"])]
            for node, (collective, rows) in zip(right.nodes, traces):
                self.assertEqual(collective, case.collective)
                self.assertEqual([(kind, peer, number, size, after) if kind in ("send", "receive") else ("local", None, None, None, after)
                                  for kind, peer, number, size, after in node], [row[:5] for row in rows])
            self.assertEqual(expected.play([[(kind, peer, tag, after) for kind, peer, tag, _, after, _ in rows] for _, rows in traces]), [])

        self.export_all("chakra", "Chakra", judge, never=(), options=goal_test.Goal.size.__get__(self))

    SIZES = goal_test.Goal.SIZES

    def test_times(self):
        file, out, model = self.path / "s.esp", self.path / "t", self.path / "m.textproto"
        self.assertIsNone(schedules.compile(file, "complete:4", "allreduce", "chain"))
        model.write_text("link { line { alpha_ps: 1000000 beta_fs_per_byte: 1000 } }\ngamma_fs_per_byte: 2000000\n")
        self.assertIsNone(schedules.refusal("export", "chakra", file, "-o", out, "--bytes", "1001", "--model", model))
        durations = {row[5] for node in range(4) for row in read(self.path / f"t.{node}.et")[1] if row[0] == "local"}
        self.assertEqual(durations, {3})  # 2.002 us

    def test_all_files_or_none(self):
        file = self.path / "s.esp"
        self.assertIsNone(schedules.compile(file, "complete:4", "allreduce", "chain"))
        (self.path / "u.2.et").mkdir()
        self.assertIn("u.2.et': Is a directory", schedules.refusal("export", "chakra", file, "-o", self.path / "u", "--bytes", "1001"))
        self.assertEqual([path.name for path in self.path.glob("u*")], ["u.2.et"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
