#include <algorithm>
#include <unordered_map>

#include "collectives/embed/placement.h"

namespace espalier::embed {

Routes::Routes(const topology::Topology& topology) : ranks_(topology.ranks()) {
  ESPALIER_ASSERT(ranks_ <= kMaxPlaced);
  const auto key = [](std::uint32_t from, std::uint32_t to) {
    return (std::uint64_t{from} << 32) | to;
  };
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (const topology::Link& link : topology.links()) {
    numbers[key(link.from, link.to)] = static_cast<std::uint32_t>(capacities_.size());
    capacities_.push_back(link.capacity);
  }
  starts_.push_back(0);
  for (std::uint32_t from = 0; from < ranks_; ++from) {
    for (std::uint32_t to = 0; to < ranks_; ++to) {
      const std::vector<std::uint32_t> nodes = topology.route(from, to);
      for (std::size_t hop = 1; hop < nodes.size(); ++hop) {
        links_.push_back(numbers.at(key(nodes[hop - 1], nodes[hop])));
      }
      starts_.push_back(static_cast<std::uint32_t>(links_.size()));
    }
  }
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::size_t begin = near_.size();
    for (std::uint32_t other = 0; other < ranks_; ++other) {
      if (other != rank) near_.push_back(other);
    }
    std::stable_sort(near_.begin() + static_cast<std::ptrdiff_t>(begin), near_.end(),
                     [&](std::uint32_t a, std::uint32_t b) {
                       return links(rank, a).size() < links(rank, b).size();
                     });
  }
}

Loads::Loads(const Routes& routes, const std::vector<std::uint32_t>& widths)
    : routes_(routes), stride_(routes.capacities().size()), loads_(stride_ * widths.size(), 0) {
  for (const std::uint32_t width : widths) {
    for (const std::uint32_t lanes : routes.capacities()) most_.push_back(lanes * width);
  }
}

}  // namespace espalier::embed
