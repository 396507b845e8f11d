#include "tools/cluster/link_tables.h"

#include <algorithm>
#include <map>

namespace espalier::tools {

std::vector<LinkTable> link_tables(const topology::Topology& topology, std::uint32_t nodes) {
  std::vector<std::map<std::uint32_t, NodeLink>> found(nodes);
  for (const topology::Link& link : topology.links()) {
    if (link.from >= nodes || link.to >= nodes) continue;
    found[link.from][link.to].out = link.capacity;
    found[link.to][link.from].in = link.capacity;
  }
  std::vector<LinkTable> tables(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    for (const auto& [peer, lanes] : found[node]) {
      tables[node].push_back({peer, lanes.out, lanes.in});
    }
  }
  return tables;
}

std::uint64_t endpoints(const LinkTable& table) {
  std::uint64_t count = 0;
  for (const NodeLink& link : table) count += std::max(link.out, link.in);
  return count;
}

std::string to_text(const LinkTable& table) {
  std::string text;
  for (const NodeLink& link : table) {
    text += (text.empty() ? "" : ",") + std::to_string(link.peer) + ":" + std::to_string(link.out) +
            ":" + std::to_string(link.in);
    for (const std::string& interface : link.interfaces) text += ":" + interface;
  }
  return text;
}

}  // namespace espalier::tools
