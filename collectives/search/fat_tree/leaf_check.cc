#include "collectives/search/fat_tree/leaf_check.h"

#include <string>
#include <vector>

#include "collectives/search/streams.h"
#include "espalier/internal/base/limits.h"

namespace espalier::searched {

Result<void> check_leaves(const topology::Topology& topology,
                          const CollectiveParameters& parameters, const char* algorithm,
                          std::uint32_t max_leaves) {
  if (auto known = check_parameters(topology, parameters); !known) return known;
  bool fits = topology.shape().height > 0 && topology.ranks() <= max_leaves;
  if (fits) {
    std::vector<std::uint32_t> links(topology.nodes());
    for (const topology::Link& link : topology.links()) {
      fits = ++links[link.from] <= kMaxLinks && fits;
    }
  }
  if (fits) return {};
  return fail(std::string(algorithm) + " on " + topology.spec() +
              ": expected fattree:k=K,h=H,c=C of at most " + std::to_string(max_leaves) +
              " leaves, and at most " + std::to_string(kMaxLinks) + " links per router");
}

}  // namespace espalier::searched
