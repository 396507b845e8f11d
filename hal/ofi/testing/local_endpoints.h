#pragma once
// For tests and benchmarks: several connected endpoints in one process.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

// Returns `config` for node `node`, whose links lead to `peers`, unless links are added later
// (config.max_links). config.lanes is empty or has one entry, which applies to every link from the
// viewpoint of the lower of its two nodes. Each letter of config.host names a host, and the nodes
// are on these in turn; without letters, on the host of this process.
[[nodiscard]] inline Config for_node(Config config, std::uint32_t node,
                                     const std::vector<std::uint32_t>& peers) {
  config.node = node;
  // As if each node were a process.
  if (config.fabric != nullptr) config.fabric = make_shared_fabric();
  if (!config.host.empty()) config.host = config.host[node % config.host.size()];
  if (config.max_links != 0) return config;
  config.peers = peers;
  if (config.lanes.empty()) return config;
  const Config::Lanes lower = config.lanes.front();
  config.lanes.clear();
  for (const std::uint32_t peer : peers) {
    config.lanes.push_back(node < peer ? lower : Config::Lanes{lower.in, lower.out});
  }
  return config;
}

struct LocalEndpoints {
  std::vector<std::unique_ptr<OfiEndpoint>> nodes;
  std::string error;  // empty if all endpoints are connected

  // peers[v]: the node at the other end of each link of node v.
  LocalEndpoints(const Config& config, const std::vector<std::vector<std::uint32_t>>& peers) {
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      auto opened = OfiEndpoint::open(for_node(config, v, peers[v]));
      if (!opened) {
        error = opened.error().message;
        return;
      }
      nodes.push_back(*std::move(opened));
    }
    if (config.max_links != 0) {
      connect_added(peers);
      return;
    }
    std::vector<std::vector<std::uint32_t>> lanes;
    for (const auto& node : nodes) lanes.push_back(node->lane_peers());
    std::vector<std::string> errors(peers.size());
    std::vector<std::thread> threads;
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      threads.emplace_back([&, v] {
        std::vector<std::string> addresses;
        for (std::uint32_t l = 0; l < lanes[v].size(); ++l) {
          addresses.push_back(nodes[lanes[v][l]]->addresses()[other_end(lanes, v, l)]);
        }
        const auto connected = nodes[v]->connect(addresses);
        if (!connected) errors[v] = connected.error().message;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& e : errors) {
      if (!e.empty()) error = e;
    }
  }
  // Gives all endpoints their addresses, with config.max_links.
  void set_addresses() {
    std::vector<std::string> addresses;
    for (const auto& node : nodes) addresses.push_back(node->address());
    for (const auto& node : nodes) {
      if (auto set = node->set_addresses(addresses); !set) error = set.error().message;
    }
  }
  [[nodiscard]] Endpoint& operator[](std::size_t v) { return nodes[v]->endpoint(); }

 private:
  // Adds the links in the order of `peers` before any is connected: their numbers are known then.
  void connect_added(const std::vector<std::vector<std::uint32_t>>& peers) {
    set_addresses();
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
