#include "tools/formats/chakra.h"

namespace espalier::tools::formats {
namespace {

// A message in protobuf's encoding (et_def.proto of Chakra). Fields of value 0 are absent, as
// proto3 has it, except in a oneof.
class WireMessage {
 public:
  WireMessage& number(std::uint32_t field, std::uint64_t value) {
    if (value != 0) put_number(field, value);
    return *this;
  }
  // A member of a oneof.
  WireMessage& put_number(std::uint32_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  WireMessage& text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  WireMessage& packed(std::uint32_t field, const std::vector<std::uint32_t>& values) {
    if (values.empty()) return *this;
    WireMessage list;
    for (const std::uint32_t value : values) list.varint(value);
    return text(field, list.bytes_);
  }
  WireMessage& message(std::uint32_t field, const WireMessage& value) {
    return text(field, value.bytes_);
  }
  [[nodiscard]] std::string with_length() const {
    WireMessage length;
    length.varint(bytes_.size());
    return length.bytes_ + bytes_;
  }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

// Fields of AttributeProto, Node and GlobalMetadata, and values of NodeType.
enum Attribute : std::uint8_t { kAttributeName = 1, kInt32 = 7, kInt64 = 9, kString = 29 };
enum NodeField : std::uint8_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kDataDeps = 5,
  kDuration = 7,
  kNodeAttribute = 10
};
enum MetadataField : std::uint8_t { kVersion = 1, kMetadataAttribute = 2 };
enum NodeType : std::uint8_t { kCompute = 4, kCommSend = 5, kCommReceive = 6 };

WireMessage number_attribute(std::string_view name, Attribute type, std::uint64_t value) {
  return WireMessage().text(kAttributeName, name).put_number(type, value);
}
WireMessage text_attribute(std::string_view name, std::string_view value) {
  return WireMessage().text(kAttributeName, name).text(kString, value);
}

WireMessage trace_node(const Operation& operation, std::uint32_t rank, std::uint64_t id,
                       std::uint64_t bytes, std::uint64_t duration_ns) {
  WireMessage node;
  node.number(kId, id);
  const bool sends = operation.kind == ActionKind::kSend;
  if (!sends && operation.kind != ActionKind::kReceive) {
    const bool combines = operation.kind == ActionKind::kCombine;
    node.text(kName, (combines ? "COMBINE_" : "COPY_") + std::to_string(id))
        .number(kType, kCompute)
        .packed(kDataDeps, operation.after)
        .number(kDuration, (duration_ns + 999) / 1000);
    return node;
  }
  const NodeType type = sends ? kCommSend : kCommReceive;
  node.text(kName, (sends ? "COMM_SEND_" : "COMM_RECV_") + std::to_string(id))
      .number(kType, type)
      .packed(kDataDeps, operation.after)
      .message(kNodeAttribute, number_attribute("comm_type", kInt64, type))
      .message(kNodeAttribute, number_attribute("comm_size", kInt64, bytes))
      .message(kNodeAttribute, number_attribute("comm_src", kInt32, sends ? rank : operation.peer))
      .message(kNodeAttribute, number_attribute("comm_dst", kInt32, sends ? operation.peer : rank))
      .message(kNodeAttribute, number_attribute("comm_tag", kInt32, operation.number));
  return node;
}

}  // namespace

std::string write_chakra(const SizedOperations& sized, std::uint32_t node,
                         std::string_view collective) {
  std::string file =
      WireMessage()
          .text(kVersion, "0.0.4")
          .message(kMetadataAttribute, text_attribute("schema", "1.0.2-chakra.0.0.4"))
          .message(kMetadataAttribute, text_attribute("collective", collective))
          .with_length();
  const std::vector<Operation>& operations = sized.expanded.nodes[node].operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    file += trace_node(operations[i], node, i, sized.bytes[node][i], sized.duration_ns[node][i])
                .with_length();
  }
  return file;
}

}  // namespace espalier::tools::formats
