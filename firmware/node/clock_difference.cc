#include "firmware/node/clock_difference.h"

namespace espalier::node {

std::int64_t ClockDifference::aged(const Bound& bound, std::uint64_t now_ns) {
  return bound.ns + static_cast<std::int64_t>(now_ns - bound.noted_ns) / kDriftDivisor;
}

void ClockDifference::improve(std::optional<Bound>& bound, std::int64_t ns, std::uint64_t now_ns) {
  if (!bound || ns <= aged(*bound, now_ns)) bound = Bound{ns, now_ns};
}

void ClockDifference::note(std::uint64_t sent_ns, std::optional<std::int64_t> others_bound,
                           std::uint64_t now_ns) {
  improve(above_, static_cast<std::int64_t>(now_ns - sent_ns), now_ns);
  if (others_bound) improve(below_, *others_bound, now_ns);
}

std::optional<std::int64_t> ClockDifference::bound(std::uint64_t now_ns) const {
  if (!above_) return std::nullopt;
  return aged(*above_, now_ns);
}

std::optional<ClockDifference::Estimate> ClockDifference::estimate(std::uint64_t now_ns) const {
  if (!above_ || !below_) return std::nullopt;
  const std::int64_t greatest = aged(*above_, now_ns);
  const std::int64_t least = -aged(*below_, now_ns);
  // A suspended host can break the bounds. Then the estimate is wrong by what separates them.
  const std::int64_t distance = greatest > least ? greatest - least : least - greatest;
  return Estimate{static_cast<std::uint64_t>(least + (greatest - least) / 2),
                  static_cast<std::uint64_t>(distance / 2 + 1)};
}

}  // namespace espalier::node
