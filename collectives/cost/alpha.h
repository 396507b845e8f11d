#pragma once
// Lambda-trees by a fixed ratio alpha, as 004 section 2.4 builds them: who has the message keeps
// n' = min(round(alpha n), n - 1) of n ranks and gives the rest away. Which alpha are optimal, and
// for how many n one of them serves. The schedules of this library split exactly instead
// (collectives/algorithms/broadcast_reduce/lambda_tree.cc). Host only.
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

// N_lambda(t) for t = 0, 1, .. ticks up to the first that is at least n >= 1; its position is
// T_lambda(n) in ticks.
[[nodiscard]] std::vector<std::int64_t> reach_table(const Lambda& lambda, std::int64_t n);

// How many of n ranks the sender may keep in an optimal tree (004 section 2.5), n >= 2.
struct Kept {
  std::int64_t least = 1, most = 1;
};
[[nodiscard]] Kept optimal_kept(const std::vector<std::int64_t>& reach, const Lambda& lambda,
                                std::int64_t n);
// The alpha that give one of them.
[[nodiscard]] AlphaRange optimal_alpha(const std::vector<std::int64_t>& reach, const Lambda& lambda,
                                       std::int64_t n);

// What is optimal for every n in 2 .. last; nothing if no alpha is.
[[nodiscard]] std::optional<AlphaRange> common_alpha(const Lambda& lambda, std::int64_t last);
// Ranges of n that share an alpha, each as long as it can be from its first n on: the look-up table
// of 004's Fig. 9. last >= 2.
struct AlphaEntry {
  std::int64_t first = 2;
  AlphaRange alpha;
};
[[nodiscard]] std::vector<AlphaEntry> alpha_table(const Lambda& lambda, std::int64_t last);

// Ticks of the broadcast to n ranks by a fixed alpha, 0 < alpha < 1.
[[nodiscard]] std::int64_t alpha_tree_ticks(const Lambda& lambda, std::int64_t n, double alpha);

}  // namespace espalier::cost
