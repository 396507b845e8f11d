#pragma once
// Jobs over cables whose processes are threads of one process, for tests. Their cables are not
// real; the communicator may add links along them only.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/cables/job_graph.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/testing/local_job.h"

namespace espalier::communicator::testing {

// Hosts and the ends of their cables, as tests/cables/lab.py names them.
struct CabledShape {
  const char* name;
  std::uint32_t hosts;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;
};
[[nodiscard]] const std::vector<CabledShape>& cabled_shapes();
// Requires a shape of this name.
[[nodiscard]] const CabledShape& cabled_shape(const std::string& name);

// Returns the graph of a shape with so many ranks on each host: rank r on host r / of_host, or with
// `scattered` on host r % hosts. All cables are of 1000 Mbit/s.
[[nodiscard]] std::shared_ptr<cables::JobGraph> cabled_graph(const CabledShape& shape,
                                                             std::uint32_t of_host,
                                                             bool scattered = false);

// The graph of all its ranks.
[[nodiscard]] std::shared_ptr<const RankGraph> rank_graph(const cables::JobGraph& job);

// Returns the change to a job of that graph, over mem+tcp.
[[nodiscard]] Change over_cables(std::shared_ptr<const cables::JobGraph> graph);

}  // namespace espalier::communicator::testing
