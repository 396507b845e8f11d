#pragma once
// A whole cluster in one process, for tests: every node's program, machine and memory on one
// simulated network. Supports broadcast, reduce and allreduce of u32 sums.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/simulation/run.h"
#include "espalier/hal/sim/network.h"

namespace espalier::sim {

class Rig {
 public:
  using Wrap = std::function<Endpoint&(std::uint32_t node, Endpoint& inner)>;

  // `wrap` wraps each node's endpoint in another endpoint; null: none.
  Rig(const Algorithm& algorithm, const Group& group, const Model& model,
      const MachineConfig& config, const Wrap& wrap = nullptr)
      : algorithm_(algorithm), group_(group), programs_(group.ranks), nodes_(group.ranks) {
    std::vector<const Program*> programs;
    for (std::uint32_t v = 0; v < group.ranks; ++v) {
      programs_[v] = std::make_unique<Program>();
      status_ = algorithm.generate(group, v, *programs_[v]);
      if (status_ != Status::kOk) return;
      programs.push_back(programs_[v].get());
    }
    network_ = std::make_unique<Network>(model, links_of(programs));
    for (std::uint32_t v = 0; v < group.ranks; ++v) {
      Endpoint& inner = network_->endpoint(v);
      nodes_[v].machine = std::make_unique<Machine>();
      status_ = nodes_[v].machine->init(wrap ? wrap(v, inner) : inner, config);
      if (status_ != Status::kOk) return;
    }
  }

  // The status of building or starting; kOk if both succeeded.
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] Network& network() { return *network_; }
  [[nodiscard]] Machine& machine(std::uint32_t v) { return *nodes_[v].machine; }
  [[nodiscard]] std::uint32_t ranks() const { return group_.ranks; }

  // Starts a collective of `count` elements on every live machine; inputs are new each time.
  void start(std::uint64_t count) {
    count_ = count;
    ++started_;
    const Operator op = {Op::kSum, Type::kU32};
    for (std::uint32_t v = 0; v < group_.ranks; ++v) {
      Node& node = nodes_[v];
      Layout layout;
      status_ = make_layout(*programs_[v], count, 4, layout);
      if (status_ != Status::kOk) return;
      node.input.resize(count);
      for (std::uint64_t i = 0; i < count; ++i) node.input[i] = input(v, i);
      node.output.assign(count, 0xdeadbeef);
      const std::uint64_t scratch = scratch_needed(*programs_[v], layout);
      node.scratch.resize(scratch / 16 + 1);
      const Status status = node.machine->start(
          *programs_[v], {node.input.data(), node.output.data(), node.scratch.data(), scratch}, op,
          count);
      if (status != Status::kOk && network_->alive(v) && status_ == Status::kOk) status_ = status;
    }
  }

  RunResult run() { return sim::run(*network_, machines()); }
  RunResult run_lock_step() {
    const std::uint32_t latency_ticks = std::max<std::uint32_t>(1, programs_[0]->latency_ticks);
    return sim::run_lock_step(*network_, machines(), latency_ticks);
  }

  // Whether node v's output is the correct result of the most recently started collective.
  [[nodiscard]] bool right(std::uint32_t v) const {
    const bool has = algorithm_.collective == Collective::kAllreduce ||
                     (algorithm_.collective == Collective::kReduce) == (v == group_.root);
    if (!has) return true;
    for (std::uint64_t i = 0; i < count_; ++i) {
      std::uint32_t expected = 0;
      if (algorithm_.collective == Collective::kBroadcast) {
        expected = input(group_.root, i);
      } else {
        for (std::uint32_t u = 0; u < group_.ranks; ++u) expected += input(u, i);
      }
      if (nodes_[v].output[i] != expected) return false;
    }
    return true;
  }
  [[nodiscard]] bool all_right() const {
    for (std::uint32_t v = 0; v < group_.ranks; ++v) {
      if (!right(v)) return false;
    }
    return true;
  }

 private:
  struct alignas(16) Sixteen {
    std::uint8_t bytes[16];
  };
  struct Node {
    std::unique_ptr<Machine> machine;
    std::vector<std::uint32_t> input, output;
    std::vector<Sixteen> scratch;
  };

  [[nodiscard]] std::uint32_t input(std::uint32_t v, std::uint64_t i) const {
    return (v + 1) * 0x9e3779b9u + static_cast<std::uint32_t>(i) * 0x85ebca6bu + started_;
  }
  [[nodiscard]] std::vector<Machine*> machines() {
    std::vector<Machine*> list;
    for (Node& node : nodes_) list.push_back(node.machine.get());
    return list;
  }

  const Algorithm& algorithm_;
  Group group_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<Node> nodes_;
  std::unique_ptr<Network> network_;
  Status status_ = Status::kOk;
  std::uint64_t count_ = 0;
  std::uint32_t started_ = 0;
};

}  // namespace espalier::sim
