#pragma once
// Test helper: one node's memory on a simulated network, and the times of its completions.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "espalier/hal/sim/network.h"

namespace espalier::sim {

// 1 ms, and 1 us per byte.
inline Model slow() { return {.alpha = 1e-3, .beta = 1e-6, .eager_bytes = 100}; }

struct Watcher {
  explicit Watcher(Network& the_network, std::uint32_t node)
      : network(the_network), endpoint(the_network.endpoint(node)), bytes(100'000) {
    const Region region = {bytes.data(), bytes.size()};
    EXPECT_EQ(endpoint.prepare(&region, 1), Status::kOk);
  }
  void send(std::uint32_t link, std::uint64_t size) {
    EXPECT_EQ(endpoint.post_send(link, {bytes.data(), size, 0, 0, 0}), Status::kOk);
  }
  void receive(std::uint32_t link, std::uint64_t size) {
    EXPECT_EQ(endpoint.post_receive(link, {bytes.data(), size, 0, 0}), Status::kOk);
  }
  void look() {
    Completion c;
    while (endpoint.poll(c)) {
      const std::uint64_t us = network.now_ns() / 1000;
      if (c.kind == Completion::Kind::kSent) sent.push_back(us);
      if (c.kind == Completion::Kind::kReceived) received.push_back(us);
      if (c.kind == Completion::Kind::kUnexpected) early.push_back(us);
      if (c.kind == Completion::Kind::kControl) control.push_back(us);
    }
  }
  Network& network;
  Endpoint& endpoint;
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> sent, received, early, control;  // us
};

// A network, and a watcher of each node.
struct Watched {
  Watched(const Model& model, std::uint32_t nodes) : Watched(model, complete_links(nodes)) {}
  Watched(const Model& model, const std::vector<std::vector<std::uint32_t>>& links)
      : network(model, links) {
    for (std::uint32_t node = 0; node < links.size(); ++node) watchers.emplace_back(network, node);
  }
  // Runs until no event is left.
  void settle() {
    do {
      for (Watcher& watcher : watchers) watcher.look();
    } while (network.advance(UINT64_MAX));
  }

  Network network;
  std::deque<Watcher> watchers;
};

using Times = std::vector<std::uint64_t>;  // us

}  // namespace espalier::sim
