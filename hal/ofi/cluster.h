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

  // peers[v]: the node at the other end of each link of node v.
  Cluster(Config config, const std::vector<std::vector<std::uint32_t>>& peers) {
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      config.node = v;
      config.peers = peers[v];
      nodes.push_back(OfiEndpoint::open(config, error));
      if (nodes.back() == nullptr) return;
    }
    std::vector<std::string> errors(peers.size());
    std::vector<std::thread> threads;
    for (std::uint32_t v = 0; v < peers.size(); ++v) {
      threads.emplace_back([&, v] {
        std::vector<std::string> addresses;
        for (const std::uint32_t peer : peers[v]) addresses.push_back(nodes[peer]->address());
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
