#pragma once
// Broadcast times of [Sanders03]: chains, binary and fractional trees, and the lower bounds. Host
// only.
//
// p ranks, a message of k elements, start-up time t in units of an element's time: a step with k/s
// elements per packet takes t + k/s. All results are functions of k/t, so times are in units of t.
// One port, full duplex.

#include <cstdint>

namespace espalier::cost {

// d = min{i : P_i >= ranks} - 1 with P_i = r + P_{i-r} + P_{i-r-1}, P_i = i + 1 for i <= r: the
// step in which the last rank gets its first packet. r = 1: a binary tree. Requires ranks >= 1,
// run_length >= 1.
[[nodiscard]] std::int64_t fractional_depth(std::int64_t ranks, std::int64_t run_length);
// P_i.
[[nodiscard]] std::int64_t fractional_size(std::int64_t run_length, std::int64_t i);

// steps(s) = latency + slope * s for s packets; each step takes 1 + ratio/s.
struct Pipeline {
  double latency = 0, slope = 1;

  [[nodiscard]] double time(double packets, double ratio) const;  // of s packets
  [[nodiscard]] double best_packets(double ratio) const;          // s*, a real number
  [[nodiscard]] double best_time(double ratio) const;             // at s*
};
[[nodiscard]] Pipeline chain(std::int64_t ranks);        // P - 2 + s
[[nodiscard]] Pipeline binary_tree(std::int64_t ranks);  // d + 2s
[[nodiscard]] Pipeline fractional_tree(std::int64_t ranks,
                                       std::int64_t run_length);  // d + s(1 + 1/r)
// A lower bound for every algorithm with equal packets: s - 1 + log2 P steps. Equation 6 gives its
// minimum time without the 1.
[[nodiscard]] double block_bound(std::int64_t ranks, double ratio);

// The run length with the least best_time(), found by trying all; the shortest if several are
// equal.
[[nodiscard]] std::int64_t best_run_length(std::int64_t ranks, double ratio,
                                           std::int64_t most = 64);
// The rule of thumb of [Sanders03]: (k/(d't))^(1/3), d' = log2(ranks) - 1.
[[nodiscard]] double run_by_rule(std::int64_t ranks, double ratio);

// min(chain, binary tree) / best fractional tree, each with its best s.
[[nodiscard]] double gain(std::int64_t ranks, double ratio);

}  // namespace espalier::cost
