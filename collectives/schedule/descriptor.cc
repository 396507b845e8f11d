// Programs to and from protobuf bytes, by nanopb.

#include <pb_decode.h>
#include <pb_encode.h>

#include <cstring>

#include "collectives/schedule/program.h"

namespace espalier {
namespace {

bool same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

// Why nanopb gave up: it has no codes, only English.
Status decode_error(const pb_istream_t& stream) {
  const char* text = PB_GET_ERROR(&stream);
  const bool full = same_text(text, "array overflow") || same_text(text, "string overflow");
  return full ? Status::kTooLarge : Status::kTruncated;
}

Status decode_into(const std::uint8_t* bytes, std::size_t size, std::uint64_t topology_digest,
                   std::uint32_t node, Program& program) {
  pb_istream_t stream = pb_istream_from_buffer(bytes, size);
  if (!pb_decode(&stream, espalier_Program_fields, &program)) {
    // A later version may have larger tables: say so first if that much was read.
    const bool other = program.format_version != 0 && program.format_version != kFormatVersion;
    return other ? Status::kBadVersion : decode_error(stream);
  }
  const Status status = check_program(program);
  if (status != Status::kOk) return status;
  if (topology_digest != kAnyTopology && program.topology_digest != topology_digest) {
    return Status::kWrongTopology;
  }
  if (node != kAnyNode && program.node != node) return Status::kWrongNode;
  return Status::kOk;
}

}  // namespace

Status decode_program(const std::uint8_t* bytes, std::size_t size, std::uint64_t topology_digest,
                      std::uint32_t node, Program& program) {
  std::memset(&program, 0, sizeof program);
  if (bytes == nullptr || size == 0) return Status::kTruncated;
  const Status status = decode_into(bytes, size, topology_digest, node, program);
  if (status != Status::kOk) std::memset(&program, 0, sizeof program);
  return status;
}

Status encode_program(const Program& program, std::uint8_t* bytes, std::size_t capacity,
                      std::size_t& written) {
  written = 0;
  const Status status = check_program(program);
  if (status != Status::kOk) return status;
  pb_ostream_t stream = pb_ostream_from_buffer(bytes, capacity);
  if (!pb_encode(&stream, espalier_Program_fields, &program)) return Status::kTooLarge;
  written = stream.bytes_written;
  return Status::kOk;
}

}  // namespace espalier
