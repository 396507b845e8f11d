#pragma once
// Broadcast times of 000 (Sanders and Sibeyn): chains, binary and fractional trees, and the bounds
// beneath them. Host only.
//
// p ranks, a message of k elements, t the start-up in elements' times: a step of s packets takes
// t + k/s. Everything is a function of k/t, so times are in units of t. One port, full duplex.

#include <cstdint>

namespace espalier::cost {

// d = min{i : P_i >= ranks} - 1 with P_i = r + P_{i-r} + P_{i-r-1}, P_i = i + 1 for i <= r: the
// step before the last PU has its first packet. r = 1: a binary tree. ranks >= 1, run >= 1.
[[nodiscard]] std::int64_t fractional_depth(std::int64_t ranks, std::int64_t run);
// P_i.
[[nodiscard]] std::int64_t fractional_size(std::int64_t run, std::int64_t i);

// steps(s) = latency + slope * s, each of 1 + ratio/s.
struct Pipeline {
  double latency = 0, slope = 1;

  [[nodiscard]] double time(double packets, double ratio) const;  // of s packets
  [[nodiscard]] double best_packets(double ratio) const;          // s*, a real number
  [[nodiscard]] double best_time(double ratio) const;             // at s*
};
[[nodiscard]] Pipeline chain(std::int64_t ranks);                              // P - 2 + s
[[nodiscard]] Pipeline binary_tree(std::int64_t ranks);                        // d + 2s
[[nodiscard]] Pipeline fractional_tree(std::int64_t ranks, std::int64_t run);  // d + s(1 + 1/r)
// What every algorithm of equal packets needs: s - 1 + log2 P; equation 6 is its best time without
// the 1.
[[nodiscard]] double block_bound(std::int64_t ranks, double ratio);

// The run of the least best_time(), by trying all; the lesser of equals.
[[nodiscard]] std::int64_t best_run(std::int64_t ranks, double ratio, std::int64_t most = 64);
// 000's rule of thumb: (k/(d't))^(1/3), d' = log2(ranks) - 1.
[[nodiscard]] double run_by_rule(std::int64_t ranks, double ratio);

// min(chain, binary tree) / best fractional tree, each with its best s.
[[nodiscard]] double gain(std::int64_t ranks, double ratio);

}  // namespace espalier::cost
