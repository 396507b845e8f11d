#pragma once
// For tests and benchmarks: several connected endpoints in one process.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

// Returns `config` for node `node`, whose links lead to `peers`. config.lanes is empty or has one
// entry, which applies to every link from the viewpoint of the lower of its two nodes. If
// config.lane_addresses has an entry, e.g. "127.2", lane k of node v binds 127.2.v.(k + 1).
[[nodiscard]] inline FixedConfig for_node(FixedConfig config, std::uint32_t node,
                                          const std::vector<std::uint32_t>& peers) {
  config.node = node;
  config.peers = peers;
  if (config.lanes.empty()) return config;
  const FixedConfig::Lanes lower = config.lanes.front();
  config.lanes.clear();
  for (const std::uint32_t peer : peers) {
    config.lanes.push_back(node < peer ? lower : FixedConfig::Lanes{lower.in, lower.out});
  }
  if (config.lane_addresses.empty()) return config;
  const std::string prefix = config.lane_addresses.front() + "." + std::to_string(node) + ".";
  config.lane_addresses.clear();
  const std::size_t lanes = peers.size() * std::max(lower.in, lower.out);
  for (std::size_t k = 1; k <= lanes; ++k) {
    config.lane_addresses.push_back(prefix + std::to_string(k));
  }
  return config;
}

// Returns the cables from a node to each of its peers on another host: `example.number` of them,
// each with example.lanes lanes. Lane k of node v binds example.local_address.v.(k + 1).
[[nodiscard]] inline std::vector<AddedConfig::Cable> cables_of(
    std::uint32_t node, const std::vector<std::uint32_t>& peers, const std::string& hosts,
    const AddedConfig::Cable& example) {
  std::vector<AddedConfig::Cable> cables;
  for (const std::uint32_t peer : peers) {
    const bool is_near = !hosts.empty() && hosts[peer % hosts.size()] == hosts[node % hosts.size()];
    for (std::uint32_t i = 0; i < example.number && !is_near && peer != node; ++i) {
      const std::uint32_t pair = 100 * std::min(node, peer) + std::max(node, peer);
      const std::string last = std::to_string(cables.size() + 1);
      cables.push_back(
          {.number = 10 * pair + i,
           .node = peer,
           .local_address = example.local_address + "." + std::to_string(node) + "." + last,
           .lanes = example.lanes});
    }
  }
  return cables;
}

// The same for links that are added later, whatever `peers`. Each letter of config.host names a
// host, and the nodes are on these in turn; without letters, on the host of this process. If
// config.cables has an entry, it is the example of cables_of(): to the peers, or if there are none,
// to all nodes below example.node.
[[nodiscard]] inline AddedConfig for_node(AddedConfig config, std::uint32_t node,
                                          std::vector<std::uint32_t> peers = {}) {
  config.node = node;
  if (!config.cables.empty()) {
    const AddedConfig::Cable example = config.cables.front();
    if (peers.empty()) {
      for (std::uint32_t v = 0; v < example.node; ++v) peers.push_back(v);
    }
    config.cables = cables_of(node, peers, config.host, example);
    config.is_without_cables = config.cables.empty();
  }
  // As if each node were a process.
  if (config.fabric != nullptr) config.fabric = make_shared_fabric();
  if (!config.host.empty()) config.host = config.host[node % config.host.size()];
  return config;
}

// The addresses that each of the nodes needs to connect, by lane.
[[nodiscard]] inline std::vector<std::vector<std::string>> addresses_for(
    const std::vector<std::unique_ptr<FixedLinks>>& nodes) {
  std::vector<std::vector<std::uint32_t>> lanes;
  for (const auto& node : nodes) lanes.push_back(node->lane_peers());
  std::vector<std::vector<std::string>> addresses(nodes.size());
  for (std::uint32_t v = 0; v < nodes.size(); ++v) {
    for (std::uint32_t l = 0; l < lanes[v].size(); ++l) {
      addresses[v].push_back(nodes[lanes[v][l]]->addresses()[other_end(lanes, v, l)]);
    }
  }
  return addresses;
}

// AnyConfig: FixedConfig or AddedConfig.
template <class AnyConfig>
struct LocalEndpoints {
  static constexpr bool kIsFixed = std::is_same_v<AnyConfig, FixedConfig>;
  using Links = std::conditional_t<kIsFixed, FixedLinks, AddedLinks>;

  std::vector<std::unique_ptr<Links>> nodes;
  std::string error;  // empty if all endpoints are connected

  // peers[v]: the node at the other end of each link of node v.
  LocalEndpoints(const AnyConfig& config, const std::vector<std::vector<std::uint32_t>>& peers) {
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      auto opened = Links::open(for_node(config, v, peers[v]));
      if (!opened) {
        error = opened.error().message;
        return;
      }
      nodes.push_back(*std::move(opened));
    }
    if constexpr (kIsFixed) {
      connect_fixed();
    } else {
      connect_added(peers);
    }
  }
  [[nodiscard]] Endpoint& operator[](std::size_t v) { return nodes[v]->endpoint(); }

 private:
  void connect_fixed() {
    const std::vector<std::vector<std::string>> addresses = addresses_for(nodes);
    std::vector<std::string> errors(nodes.size());
    std::vector<std::thread> threads;
    for (std::uint32_t v = 0; v < nodes.size(); ++v) {
      threads.emplace_back([&, v] {
        const auto connected = nodes[v]->connect(addresses[v]);
        if (!connected) errors[v] = connected.error().message;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& e : errors) {
      if (!e.empty()) error = e;
    }
  }
  // Adds the links in the order of `peers` before any is connected: their numbers are known then.
  void connect_added(const std::vector<std::vector<std::uint32_t>>& peers) {
    std::vector<std::string> addresses;
    for (const auto& node : nodes) addresses.push_back(node->address());
    for (const auto& node : nodes) {
      if (auto set = node->set_addresses(addresses); !set) error = set.error().message;
    }
    std::vector<std::vector<std::uint32_t>> links(peers.size());
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      for (const std::uint32_t peer : peers[v]) {
        const auto link = nodes[v]->add_link(peer);
        if (!link) error = link.error().message;
        links[v].push_back(link.value_or(0));
      }
    }
    for (bool all = false; !all && error.empty();) {
      all = true;
      for (std::uint32_t v = 0; v < peers.size(); ++v) {
        const auto connected = nodes[v]->connect_links(links[v]);
        if (!connected) error = connected.error().message;
        all = connected.value_or(false) && all;
      }
    }
  }
};

}  // namespace espalier::ofi
