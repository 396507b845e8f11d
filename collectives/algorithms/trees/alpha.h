#pragma once
// Trees with a ratio alpha ([Bruck96], section 2.4), in ticks. The rank that has the block keeps
// n' = round(alpha n) of n ranks, at least 1 and at most n - 1. It gives the rest to another rank.
// round(x) is floor(x + 1/2). Freestanding; memory does not grow with the group.

#include <algorithm>
#include <cstdint>

#include "collectives/algorithms/trees/postal.h"
#include "espalier/internal/base/assert.h"

namespace espalier {

// alpha = numerator / denominator. 1 <= numerator < denominator <= kMaxAlphaDenominator.
struct Alpha {
  std::uint32_t numerator = 1, denominator = 2;
};
inline constexpr std::uint32_t kMaxAlphaDenominator = 1u << 30;

[[nodiscard]] inline bool is_alpha(const Alpha& alpha) {
  return 1 <= alpha.numerator && alpha.numerator < alpha.denominator &&
         alpha.denominator <= kMaxAlphaDenominator;
}

// n' of n ranks. 2 <= n <= 2^30.
[[nodiscard]] inline std::uint32_t kept_by(const Alpha& alpha, std::uint32_t n) {
  const std::uint64_t twice = 2 * std::uint64_t{alpha.denominator};
  const std::uint64_t rounded =
      (2 * std::uint64_t{alpha.numerator} * n + alpha.denominator) / twice;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rounded, 1, n - 1));
}

// Number of sends of a rank that has n ranks to reach, itself included; `limit` + 1 if there are
// more than `limit`.
[[nodiscard]] inline std::uint32_t alpha_sends(const Alpha& alpha, std::uint32_t n,
                                               std::uint32_t limit) {
  std::uint32_t sends = 0;
  for (; n > 1 && sends <= limit; ++sends) n = kept_by(alpha, n);
  return sends;
}

// The ratio at the top of a triangle in the picture of optimal alphas ([Bruck96], section 2.5):
// N(t - S) / N(t) with t = T_lambda(n). It is optimal for every n of the triangle, which are those
// with the same T_lambda(n). n >= 2.
[[nodiscard]] inline Alpha alpha_of(const Reach& reach, std::uint32_t send) {
  return {reach.value(send), reach.value(0)};
}

// The ticks of the tree, at most `limit`, or limit + 1 if it takes more. ranks <= 2^29.
//
// M(t), the largest n that takes at most t ticks, exists because n' and n - n' do not decrease
// with n, hence neither do the ticks. n takes at most t ticks if n' <= M(t - S) and
// n - n' <= M(t - L), and both inequalities can be solved for n.
[[nodiscard]] inline std::uint32_t alpha_ticks(const Alpha& alpha, std::uint32_t ranks,
                                               std::uint32_t send, std::uint32_t latency,
                                               std::uint32_t limit) {
  ESPALIER_ASSERT(is_alpha(alpha) && 1 <= send && send <= latency && latency <= kMaxTicks);
  const std::uint64_t above = alpha.numerator, below = alpha.denominator;
  std::uint64_t reached[kMaxTicks + 1];  // M(t), at t mod (kMaxTicks + 1)
  std::uint32_t t = 0;
  for (; t <= limit; ++t) {
    std::uint64_t& now = reached[t % (kMaxTicks + 1)];
    now = 1;
    if (t >= latency) {
      const std::uint64_t kept = reached[(t - send) % (kMaxTicks + 1)];
      const std::uint64_t given = reached[(t - latency) % (kMaxTicks + 1)];
      // round(alpha n) <= kept, or n - 1 <= kept; and the same for n - round(alpha n).
      const std::uint64_t by_kept = (below * (2 * kept + 1) - 1) / (2 * above);
      const std::uint64_t by_given = below * (2 * given + 1) / (2 * (below - above));
      now = std::min(std::max(kept + 1, by_kept), std::max(given + 1, by_given));
    }
    if (now >= ranks) return t;
  }
  return t;
}

}  // namespace espalier
