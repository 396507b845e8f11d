// Encodes and decodes programs and selections as protobuf bytes, with nanopb.

#include <pb_decode.h>
#include <pb_encode.h>

#include "collectives/schedule/selection.h"

namespace espalier {
namespace {

bool is_same_text(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

// Returns the status for nanopb's error, which is available only as an English text.
Status decode_error(const pb_istream_t& stream) {
  const char* text = PB_GET_ERROR(&stream);
  const bool full = is_same_text(text, "array overflow") || is_same_text(text, "string overflow") ||
                    is_same_text(text, "integer too large");
  return full ? Status::kTooLarge : Status::kTruncated;
}

// Whether the table is inside the descriptor. If the field with that number has another wire type,
// nanopb passes a copy to the callback.
bool is_table_inside(const Program& program, const std::uint8_t* bytes, std::size_t size) {
  if (program.table.bytes == nullptr) return true;
  const auto table = reinterpret_cast<std::uintptr_t>(program.table.bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes);
  return table >= begin && program.table.size <= size && table - begin <= size - program.table.size;
}

Status decode_into(const std::uint8_t* bytes, std::size_t size, std::uint64_t topology_digest,
                   std::uint32_t node, DecodedProgram& program) {
  pb_istream_t stream = pb_istream_from_buffer(bytes, size);
  if (!pb_decode(&stream, espalier_Program_fields, &program)) {
    // A later version may have larger tables: report the version first if it was decoded.
    const bool other = program.format_version != 0 && program.format_version != kFormatVersion;
    return other ? Status::kBadVersion : decode_error(stream);
  }
  if (!is_table_inside(program, bytes, size)) return Status::kTruncated;
  const Status status = check_program(program);
  if (status != Status::kOk) return status;
  if (topology_digest != kAnyTopology && program.topology_digest != topology_digest) {
    return Status::kWrongTopology;
  }
  if (node != kAnyNode && program.node != node) return Status::kWrongNode;
  return Status::kOk;
}

#if ESPALIER_MAX_SELECTIONS > 0
Status decode_table(const std::uint8_t* bytes, std::size_t size, std::uint64_t topology_digest,
                    SelectionTable& table) {
  pb_istream_t stream = pb_istream_from_buffer(bytes, size);
  if (!pb_decode(&stream, espalier_Selection_fields, &table)) {
    const bool other = table.format_version != 0 && table.format_version != kSelectionVersion;
    return other ? Status::kBadVersion : decode_error(stream);
  }
  const Status status = check_selection_table(table);
  if (status != Status::kOk) return status;
  const bool fits = topology_digest == kAnyTopology || topology_digest == table.topology_digest;
  return fits ? Status::kOk : Status::kWrongTopology;
}
#endif

}  // namespace

Status decode_program(const std::uint8_t* bytes, std::size_t size, std::uint64_t topology_digest,
                      std::uint32_t node, DecodedProgram& program) {
  program.clear();
  if (bytes == nullptr || size == 0) return Status::kTruncated;
  const Status status = decode_into(bytes, size, topology_digest, node, program);
  if (status != Status::kOk) program.clear();
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

#if ESPALIER_MAX_SELECTIONS > 0
Status decode_selection(const std::uint8_t* bytes, std::size_t size, std::uint64_t topology_digest,
                        Selected& out) {
  std::memset(&out.table, 0, sizeof out.table);
  out.digest = 0;
  if (bytes == nullptr || size == 0) return Status::kTruncated;
  const Status status = decode_table(bytes, size, topology_digest, out.table);
  if (status == Status::kOk) {
    out.digest = selection_digest(bytes, size);
  } else {
    std::memset(&out.table, 0, sizeof out.table);
  }
  return status;
}

Status encode_selection(const SelectionTable& table, std::uint8_t* bytes, std::size_t capacity,
                        std::size_t& written) {
  written = 0;
  const Status status = check_selection_table(table);
  if (status != Status::kOk) return status;
  pb_ostream_t stream = pb_ostream_from_buffer(bytes, capacity);
  if (!pb_encode(&stream, espalier_Selection_fields, &table)) return Status::kTooLarge;
  written = stream.bytes_written;
  return Status::kOk;
}
#endif

}  // namespace espalier

// nanopb's callback for Program.table (proto/schedule.options): reads it as a pointer into the
// descriptor, and writes the bytes at that pointer. The state of a stream over memory is the
// address of its next byte.
extern "C" bool espalier_program_table(pb_istream_t* istream, pb_ostream_t* ostream,
                                       const pb_field_t* field) {
  using Table = decltype(espalier::Program::table);
  auto* table = static_cast<Table*>(field->pData);
  if (istream != nullptr) {
    table->bytes = static_cast<const std::uint8_t*>(istream->state);
    table->size = static_cast<std::uint32_t>(istream->bytes_left);
    return pb_read(istream, nullptr, istream->bytes_left);
  }
  if (ostream == nullptr || table->size == 0) return true;
  return pb_encode_tag_for_field(ostream, field) &&
         pb_encode_string(ostream, table->bytes, table->size);
}
