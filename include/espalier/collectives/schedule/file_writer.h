#pragma once
// Writes schedule files. Host only. The format: file.h.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/collectives/schedule/file.h"

namespace espalier {

// Collects the descriptors of one schedule in node order; finish() returns the file's bytes.
class ScheduleFileWriter {
 public:
  // spec: the topology's canonical specification; digest: its digest.
  ScheduleFileWriter(std::string_view spec, std::uint64_t topology_digest, std::uint32_t ranks,
                     std::uint32_t nodes);
  // Adds the next node's program. On error nothing was added:
  //   kBadArgument  all nodes have been added; or the program is for another node than the next,
  //                 for another topology, or for another number of ranks or nodes
  //   and encode_program's errors
  [[nodiscard]] Status add(const Program& program);
  // Writes the whole file to `file`. kBadArgument: nodes are missing.
  [[nodiscard]] Status finish(std::vector<std::uint8_t>& file) const;

 private:
  std::string spec_;
  std::uint64_t topology_digest_;
  std::uint32_t ranks_;
  std::uint32_t nodes_;
  std::vector<std::uint8_t> descriptors_;
  std::vector<std::uint32_t> lengths_;
};

}  // namespace espalier
