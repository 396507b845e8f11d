#pragma once
// Lambda-trees with a fixed ratio alpha ([Bruck96], section 2.4): the rank that has the message
// keeps n' = min(round(alpha n), n - 1) of n ranks and gives the rest to another. These functions
// find the optimal alpha, and the values of n that one alpha serves. The schedules of this library
// split exactly instead (collectives/algorithms/broadcast_reduce/lambda_tree.cc). Host only.
//
// lambda = latency / send, in ticks; 1 <= send <= latency. round(x) is floor(x + 1/2).

#include <cstdint>
#include <optional>
#include <vector>

namespace espalier::cost {

struct Lambda {
  std::uint32_t send = 1, latency = 1;
};

// low <= alpha < high.
struct AlphaRange {
  double low = 0, high = 1;
};

// N_lambda(t) for t = 0, 1, ... ticks up to the first value that is at least n >= 1. The index of
// this value is T_lambda(n) in ticks.
[[nodiscard]] std::vector<std::int64_t> reach_table(const Lambda& lambda, std::int64_t n);

// How many of n ranks the sender may keep in an optimal tree ([Bruck96], section 2.5), n >= 2.
struct Kept {
  std::int64_t least = 1, most = 1;
};
[[nodiscard]] Kept optimal_kept(const std::vector<std::int64_t>& reach, const Lambda& lambda,
                                std::int64_t n);
// The values of alpha for which the sender keeps one of these numbers.
[[nodiscard]] AlphaRange optimal_alpha(const std::vector<std::int64_t>& reach, const Lambda& lambda,
                                       std::int64_t n);

// The values of alpha that are optimal for every n in 2 .. last; nothing if there are none.
[[nodiscard]] std::optional<AlphaRange> common_alpha(const Lambda& lambda, std::int64_t last);
// Ranges of n that share an alpha, each as long as possible from its first n onward: the look-up
// table in Fig. 9 of [Bruck96]. last >= 2.
struct AlphaEntry {
  std::int64_t first = 2;
  AlphaRange alpha;
};
[[nodiscard]] std::vector<AlphaEntry> alpha_table(const Lambda& lambda, std::int64_t last);

// Ticks of the broadcast to n ranks with a fixed alpha, 0 < alpha < 1.
[[nodiscard]] std::int64_t alpha_tree_ticks(const Lambda& lambda, std::int64_t n, double alpha);

}  // namespace espalier::cost
