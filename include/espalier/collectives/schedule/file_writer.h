#pragma once
// Writing schedule files. Host only. file.h has the format.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/collectives/schedule/file.h"

namespace espalier {

// Gathers the descriptors of one schedule in node order; finish() gives the file's bytes.
class ScheduleFileWriter {
 public:
  // spec: the topology's canonical specification; digest: its digest.
  ScheduleFileWriter(std::string_view spec, std::uint64_t topology_digest, std::uint32_t ranks,
                     std::uint32_t nodes);
  // Adds the next node's program. kBadArgument: all are there, or it is not the next node's, or of
  // another topology or number of ranks or nodes; encode_program's errors. On error nothing was
  // added.
  [[nodiscard]] Status add(const Program& program);
  // The whole file; kBadArgument while nodes are missing.
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
