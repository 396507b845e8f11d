#pragma once
// For tests and benchmarks: several endpoints in one process, connected.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

struct Cluster {
  std::vector<std::unique_ptr<OfiEndpoint>> nodes;
  std::string error;  // empty: all are connected

  // peers[v]: the node at the other end of each link of node v. config.lanes: empty, or one entry,
  // which holds for each link.
  Cluster(Config config, const std::vector<std::vector<std::uint32_t>>& peers) {
    const std::vector<Config::Lanes> each = config.lanes;
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      config.node = v;
      config.peers = peers[v];
      if (!each.empty()) config.lanes.assign(peers[v].size(), each.front());
      nodes.push_back(OfiEndpoint::open(config, error));
      if (nodes.back() == nullptr) return;
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
        if (nodes[v]->connect(addresses, errors[v]) != Status::kOk && errors[v].empty()) {
          errors[v] = "connect failed without a word";
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& e : errors) {
      if (!e.empty()) error = e;
    }
  }
  [[nodiscard]] Endpoint& operator[](std::size_t v) { return nodes[v]->endpoint(); }
};

}  // namespace espalier::ofi
