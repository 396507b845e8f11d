#pragma once
// Test helper: a schedule file. The program must link with gtest.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/digest.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::communicator::testing {

// Writes the broadcast down a chain of all ranks, from rank 0.
inline void write_chain(const std::string& path, std::uint32_t ranks) {
  const std::string topology = "complete:" + std::to_string(ranks);
  const std::uint64_t digest = digest_bytes(kDigestSeed, topology.data(), topology.size());
  ScheduleFileWriter writer(topology, digest, ranks, ranks);
  const auto program = std::make_unique<Program>();
  const Algorithm& chain = *find_algorithm(Collective::kBroadcast, "chain");
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(chain.generate({.ranks = ranks, .topology_digest = digest}, rank, *program),
              Status::kOk);
    ASSERT_EQ(writer.add(*program), Status::kOk);
  }
  std::vector<std::uint8_t> file;
  ASSERT_EQ(writer.finish(file), Status::kOk);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
}

}  // namespace espalier::communicator::testing
