#pragma once
// From an MSCCL algorithm to a schedule. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/topology/topology.h"
#include "tools/formats/msccl_file.h"

namespace espalier::tools::formats {

struct ImportedMsccl {
  std::vector<std::uint8_t> bytes;  // of a schedule file
  std::string proven_for;           // "every N"
  std::int64_t messages = 0;        // per round of blocks
};

struct ImportOptions {
  std::int64_t root = -1;  // of a rooted collective; -1: the one rank that its chunks allow
  bool for_hosts = false;  // programs may be larger than boards have room for
};

// Makes the algorithm of `file`, which was read from `path`, into a proven schedule.
//
// The algorithm is executed symbolically, in an order that thread blocks, waits and messages allow.
// A chunk that a step makes is a value. A value that stays in the output is written there; all
// others are in scratch. Messages keep the order of their thread blocks, one per step, and become a
// schedule with N blocks per chunk.
//
// Throws Failure:
//  * bad input: the root is not clear, or a node has no room for its program
//  * negative: steps that wait for each other, messages without a partner, two uses of a chunk that
//    nothing orders, a read before any write, chunks of different numbers combined, an output that
//    is not written or has another chunk; or the verifier's counterexample
[[nodiscard]] ImportedMsccl import_msccl(const std::string& path, const MscclFile& file,
                                         const topology::Topology& topology,
                                         const ImportOptions& options);

}  // namespace espalier::tools::formats
