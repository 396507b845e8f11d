#pragma once
// The schedule file: the descriptors of all nodes of one schedule, each loadable alone. The reader
// is freestanding.
//
//   0  8  magic "ESPALIER"          16  4  nodes
//   8  4  file version (1)          20  4  ranks
//  12  4  CRC-32 of bytes 16 ..     24  8  topology digest
//         end of the table          32  8  length of the whole file
//                                   40  4  bytes of the topology's canonical specification
//
//  44     the specification, then zeros up to a multiple of 8
//         the table, one row per node: 8 offset, 4 length, 4 CRC-32 of the descriptor
//         the descriptors in node order, up to the end of the file
//
// All numbers are little-endian. Any flipped or missing bit is an error: kMalformed in the magic,
// kBadVersion in the version, otherwise kCorrupt or kTruncated.

#include <cstddef>
#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// The first fields of the header: kScheduleMagic and kScheduleFileVersion.
inline constexpr char kScheduleMagic[8] = {'E', 'S', 'P', 'A', 'L', 'I', 'E', 'R'};
inline constexpr std::uint32_t kScheduleFileVersion = 1;

// A schedule file in memory (mapped or in flash). Checks the header and table once.
class ScheduleFile {
 public:
  // Opens the file in `bytes`, which must outlive this object. Errors: kTruncated, kCorrupt,
  // kMalformed (not a schedule file), kBadVersion.
  [[nodiscard]] Status open(const std::uint8_t* bytes, std::size_t size);
  // The next functions return fields of the header; 0 and null before open(). nodes(): the nodes
  // with a descriptor, which are ranks() ranks and then routers. topology_digest(): the digest of
  // the topology that the schedule was made for.
  [[nodiscard]] std::uint32_t nodes() const { return nodes_; }
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint64_t topology_digest() const { return topology_digest_; }
  // The topology's canonical specification: spec_size() characters, not terminated.
  [[nodiscard]] const char* spec() const { return spec_; }
  [[nodiscard]] std::uint32_t spec_size() const { return spec_size_; }
  // Finds the bytes of the node's descriptor. kBadArgument: the file has no such node. kCorrupt:
  // the checksum does not match.
  [[nodiscard]] Status descriptor(std::uint32_t node, const std::uint8_t*& bytes,
                                  std::size_t& size) const;
  // Decodes and checks the node's program, which points into the file's bytes: they must outlive
  // it. Errors: those of descriptor() and decode_program(), and kMalformed if the program has
  // another number of ranks or nodes than the file. On error `out` is cleared.
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
