#include "tests/papers/cost/alpha.h"

#include <algorithm>
#include <cmath>

namespace espalier::cost {
namespace {

// T_lambda(n): the first tick at which n ranks are reached.
std::size_t first_tick(const std::vector<std::int64_t>& reach, std::int64_t n) {
  return static_cast<std::size_t>(std::lower_bound(reach.begin(), reach.end(), n) - reach.begin());
}

// N(t - by); no rank is reached before the start.
std::int64_t before(const std::vector<std::int64_t>& reach, std::size_t t, std::uint32_t by) {
  return t < by ? 0 : reach[t - by];
}

}  // namespace

std::vector<std::int64_t> reach_table(const Lambda& lambda, std::int64_t n) {
  std::vector<std::int64_t> reach;
  do {
    const std::size_t t = reach.size();
    reach.push_back(t < lambda.latency ? 1 : reach[t - lambda.send] + reach[t - lambda.latency]);
  } while (reach.back() < n);
  return reach;
}

Kept optimal_kept(const std::vector<std::int64_t>& reach, const Lambda& lambda, std::int64_t n) {
  const std::size_t t = first_tick(reach, n);
  return {std::max<std::int64_t>(1, n - before(reach, t, lambda.latency)),
          std::min(before(reach, t, lambda.send), n - 1)};
}

AlphaRange optimal_alpha(const std::vector<std::int64_t>& reach, const Lambda& lambda,
                         std::int64_t n) {
  const Kept kept = optimal_kept(reach, lambda, n);
  const auto size = static_cast<double>(n);
  return {(static_cast<double>(kept.least) - 0.5) / size,
          kept.most == n - 1 ? 1.0 : (static_cast<double>(kept.most) + 0.5) / size};
}

std::optional<AlphaRange> common_alpha(const Lambda& lambda, std::int64_t last) {
  const std::vector<AlphaEntry> table = alpha_table(lambda, last);
  if (table.size() != 1) return std::nullopt;
  return table[0].alpha;
}

std::vector<AlphaEntry> alpha_table(const Lambda& lambda, std::int64_t last) {
  const std::vector<std::int64_t> reach = reach_table(lambda, last);
  std::vector<AlphaEntry> table;
  for (std::int64_t n = 2; n <= last; ++n) {
    const AlphaRange range = optimal_alpha(reach, lambda, n);
    if (!table.empty()) {
      AlphaRange& open = table.back().alpha;
      const AlphaRange both{std::max(open.low, range.low), std::min(open.high, range.high)};
      if (both.low < both.high) {
        open = both;
        continue;
      }
    }
    table.push_back({n, range});
  }
  return table;
}

std::int64_t alpha_tree_ticks(const Lambda& lambda, std::int64_t n, double alpha) {
  std::vector<std::int64_t> ticks(static_cast<std::size_t>(n) + 1, 0);
  for (std::int64_t size = 2; size <= n; ++size) {
    const auto wanted =
        static_cast<std::int64_t>(std::floor(alpha * static_cast<double>(size) + 0.5));
    const std::int64_t kept = std::clamp<std::int64_t>(wanted, 1, size - 1);
    ticks[static_cast<std::size_t>(size)] =
        std::max(ticks[static_cast<std::size_t>(kept)] + lambda.send,
                 ticks[static_cast<std::size_t>(size - kept)] + lambda.latency);
  }
  return ticks[static_cast<std::size_t>(n)];
}

}  // namespace espalier::cost
