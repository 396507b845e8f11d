#pragma once
// From an MSCCL algorithm to a schedule. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/topology/topology.h"
#include "tools/formats/msccl_file.h"

namespace espalier::tools::formats {

// The bytes of a schedule file for the algorithm that `file`, read from `path`, describes, and for
// which N it is proven. `root`: of a rooted collective; -1: the one rank that its chunks allow.
//
// The algorithm is executed in thought, in an order that thread blocks, waits and messages allow.
// Each chunk that a step makes is a value; a value that stays in the output is written there, all
// others are in scratch. Messages and combines keep their order, one step after the other, and
// become a schedule with N blocks per chunk.
//
// Throws Failure:
//  * bad input: the root is not clear, or a node has no room for its program
//  * negative: steps that wait for each other, messages without a partner, two uses of a chunk that
//    nothing orders, a read before any write, chunks of different numbers combined, an output that
//    is not written or has another chunk; or the verifier's counterexample
struct ImportedMsccl {
  std::vector<std::uint8_t> bytes;
  std::string proven_for;
  std::int64_t messages = 0;
};
[[nodiscard]] ImportedMsccl import_msccl(const std::string& path, const MscclFile& file,
                                         const topology::Topology& topology, std::int64_t root);

}  // namespace espalier::tools::formats
