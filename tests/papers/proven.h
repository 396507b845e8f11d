#pragma once
// Steps of schedules, counted by the verifier: the papers are compared with schedules that a node
// could run.

#include <cstdint>
#include <string>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier::papers {

struct Question {
  std::string topology;  // "fattree:k=3,h=2,c=1"
  Collective collective = Collective::kBroadcast;
  std::string algorithm;  // rank-local or searched
  std::int64_t blocks = 1;
  bool every_blocks = false;  // it must be proven for every N, not only for those up to `blocks`
  std::uint32_t root = 0;
  std::uint32_t run_length = 0;                              // fractional trees: r
  std::uint32_t send_ticks = 1, latency_ticks = 1;           // postal model
  std::uint32_t radix = 0;                                   // k-nomial trees: k
  std::uint32_t ratio_numerator = 0, ratio_denominator = 0;  // alpha-tree: alpha
  std::string embedding = {};  // a known one that places the ranks; empty: as numbered
  // Every message crosses one link, and every node, also a router, has one send per step
  // (collectives/lower).
  bool single_send_hops = false;
};

// The steps of the schedule for N = blocks, after the verifier accepted it for every N up to that.
// As text, since it goes into a table; if it fails, the one line that says what was wrong.
[[nodiscard]] std::string proven_steps(const Question& question);
// ... of N = first, first + 1, ..., last, separated by spaces.
[[nodiscard]] std::string proven_steps(const Question& question, std::int64_t first,
                                       std::int64_t last);

// The maximum number of blocks that a link carries in a step of the schedule, after the verifier
// accepted it for every N with the topology's own links.
[[nodiscard]] std::string proven_load(const Question& question);

}  // namespace espalier::papers
