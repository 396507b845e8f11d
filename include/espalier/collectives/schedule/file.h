#pragma once
// The schedule file: all nodes' descriptors of one schedule, each loadable alone. Freestanding to
// read.
//
//   0  8  magic "ESPALIER"          16  4  nodes
//   8  4  file version (1)          20  4  ranks
//  12  4  CRC-32 of bytes 16 ..     24  8  topology digest
//         end of the table          32  8  length of the whole file
//                                   40  4  bytes of the topology's canonical spec, then the spec,
//                                   padded to 8 with zeros
//   then the table, a row a node: 8 offset, 4 length, 4 CRC-32 of the descriptor; then the
//   descriptors, one after the other in node order, to the end of the file.
// All numbers little-endian. Any flipped or missing bit is an error: kCorrupt or kTruncated
// (kMalformed in the magic, kBadVersion in the version).

#include <cstddef>
#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

inline constexpr char kScheduleMagic[8] = {'E', 'S', 'P', 'A', 'L', 'I', 'E', 'R'};
inline constexpr std::uint32_t kScheduleFileVersion = 1;

// A schedule file in memory (mapped or in flash). Checks the header and table once.
class ScheduleFile {
 public:
  // kTruncated, kCorrupt, kMalformed (no schedule file at all), kBadVersion.
  [[nodiscard]] Status open(const std::uint8_t* bytes, std::size_t size);
  [[nodiscard]] std::uint32_t nodes() const { return nodes_; }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint64_t topology_digest() const { return topology_digest_; }
  // Not terminated; spec_size() characters.
  [[nodiscard]] const char* spec() const { return spec_; }
  [[nodiscard]] std::uint32_t spec_size() const { return spec_size_; }
  // The bytes of node's descriptor; kCorrupt if their checksum does not match, kBadArgument if
  // there is no such node.
  [[nodiscard]] Status descriptor(std::uint32_t node, const std::uint8_t*& bytes,
                                  std::size_t& size) const;
  // Decodes and checks node's program (decode_program's errors too). The file's bytes must outlive
  // it: it points into them.
  [[nodiscard]] Status program(std::uint32_t node, DecodedProgram& out) const;

 private:
  [[nodiscard]] Status check_table();

  const std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
  const std::uint8_t* table_ = nullptr;
  const char* spec_ = nullptr;
  std::uint32_t spec_size_ = 0;
  std::uint32_t nodes_ = 0;
  std::uint32_t ranks_ = 0;
  std::uint64_t topology_digest_ = 0;
};

}  // namespace espalier
