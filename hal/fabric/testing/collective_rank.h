#pragma once
// For tests: a node with its own buffers that executes collectives over its endpoint.

#include <bit>
#include <cstdint>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::ofi {

// One rank of a group whose ranks are the nodes 0 .. ranks-1.
class CollectiveRank {
 public:
  // Allocates input and output for messages of up to `max_count` elements (f32); plan() allocates
  // the scratch.
  CollectiveRank(std::uint32_t ranks, std::uint64_t max_count)
      : ranks_(ranks), input_(max_count), output_(max_count) {}

  [[nodiscard]] Status init(Endpoint& endpoint, std::uint64_t deadline_ns) {
    endpoint_ = &endpoint;
    MachineConfig config{.deadline_ns = deadline_ns};
    return machine_.init(endpoint, config);
  }

  // Plans the algorithm for this node; false if that is not possible.
  [[nodiscard]] bool plan(Collective collective, const char* name) {
    const Algorithm* algorithm = find_algorithm(collective, name);
    CollectiveParameters parameters{.ranks = ranks_};
    if (algorithm == nullptr || algorithm->generate(parameters, me(), program_) != Status::kOk) {
      return false;
    }
    Layout layout;
    if (make_layout(program_, output_.size(), 4, layout) != Status::kOk) return false;
    scratch_bytes_ = scratch_needed(program_, layout);
    const std::uint64_t lines = (scratch_bytes_ + sizeof(Line) - 1) / sizeof(Line);
    if (lines > scratch_.size()) scratch_.resize(lines);
    return true;
  }

  // Sets the inputs so that element i of the result is a small integer that every rank knows.
  [[nodiscard]] Status start(std::uint64_t count, std::uint32_t round) {
    count_ = count;
    round_ = round;
    for (std::uint64_t i = 0; i < count; ++i) {
      input_[i] = little_float(static_cast<float>((i + round) % 31 + me()));
      output_[i] = -1;
    }
    Operator op{.op = Op::kSum, .type = Type::kF32};
    const bool in_place = program_.collective == Collective::kBroadcast && me() == 0;
    return machine_.start(
        program_,
        {input_.data(), in_place ? nullptr : output_.data(), scratch_.data(), scratch_bytes_}, op,
        count);
  }

  [[nodiscard]] Status poll() { return machine_.poll(); }

  // Polls until the collective ends, and waits when there is nothing to do.
  [[nodiscard]] Status finish() {
    while (true) {
      const Status status = machine_.poll();
      if (status != Status::kBusy) return status;
      const std::uint64_t next = machine_.next_deadline();
      if (next > endpoint_->now()) endpoint_->wait(next);
    }
  }

  // Number of incorrect elements of this rank's result.
  [[nodiscard]] std::uint64_t incorrect() const {
    const bool broadcast = program_.collective == Collective::kBroadcast;
    if (broadcast && me() == 0) return 0;
    if (program_.collective == Collective::kReduce && me() != 0) return 0;
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const auto base = static_cast<float>((i + round_) % 31);
      const auto p = static_cast<float>(ranks_);
      const float expected = broadcast ? base : base * p + p * (p - 1) / 2;
      count += little_float(output_[i]) != expected ? 1 : 0;
    }
    return count;
  }

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] std::uint32_t me() const { return endpoint_->node(); }

 private:
  // Scratch is 16-byte aligned (machine.h), which malloc() is not on every 32-bit processor.
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };

  // Converts an element to little-endian order, which messages have, or back.
  static float little_float(float element) {
    return std::bit_cast<float>(little(std::bit_cast<std::uint32_t>(element)));
  }

  std::uint32_t ranks_;
  std::vector<float> input_;
  std::vector<float> output_;
  std::vector<Line> scratch_;
  std::uint64_t scratch_bytes_ = 0;  // what the planned program needs
  Endpoint* endpoint_ = nullptr;
  Program program_ = {};
  Machine machine_;
  std::uint64_t count_ = 0;
  std::uint32_t round_ = 0;
};

// Returns the peers of nodes that each have a link to every other node.
[[nodiscard]] inline std::vector<std::vector<std::uint32_t>> complete_peers(std::uint32_t nodes) {
  std::vector<std::vector<std::uint32_t>> peers(nodes);
  for (std::uint32_t v = 0; v < nodes; ++v) {
    for (std::uint32_t u = 0; u < nodes; ++u) {
      if (u != v) peers[v].push_back(u);
    }
  }
  return peers;
}

}  // namespace espalier::ofi
