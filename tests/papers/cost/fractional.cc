#include "tests/papers/cost/fractional.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "espalier/internal/base/assert.h"

namespace espalier::cost {

std::int64_t fractional_size(std::int64_t run_length, std::int64_t i) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t step = 0; step <= i; ++step) {
    const auto back = [&](std::int64_t by) { return sizes[static_cast<std::size_t>(step - by)]; };
    sizes.push_back(step <= run_length ? step + 1
                                       : run_length + back(run_length) + back(run_length + 1));
  }
  return sizes.back();
}

std::int64_t fractional_depth(std::int64_t ranks, std::int64_t run_length) {
  ESPALIER_ASSERT(ranks >= 1 && run_length >= 1);
  std::vector<std::int64_t> sizes;
  for (std::int64_t step = 0;; ++step) {
    const auto back = [&](std::int64_t by) { return sizes[static_cast<std::size_t>(step - by)]; };
    sizes.push_back(step <= run_length ? step + 1
                                       : run_length + back(run_length) + back(run_length + 1));
    if (sizes.back() >= ranks) return step - 1;
  }
}

double Pipeline::time(double packets, double ratio) const {
  return (latency + slope * packets) * (1 + ratio / packets);
}

double Pipeline::best_packets(double ratio) const { return std::sqrt(ratio * latency / slope); }

double Pipeline::best_time(double ratio) const {
  const double root = std::sqrt(slope * ratio) + std::sqrt(latency);
  return root * root;
}

Pipeline chain(std::int64_t ranks) { return {static_cast<double>(ranks - 2), 1}; }

Pipeline binary_tree(std::int64_t ranks) {
  return {static_cast<double>(fractional_depth(ranks, 1)), 2};
}

Pipeline fractional_tree(std::int64_t ranks, std::int64_t run_length) {
  return {static_cast<double>(fractional_depth(ranks, run_length)),
          1 + 1.0 / static_cast<double>(run_length)};
}

double block_bound(std::int64_t ranks, double ratio) {
  return Pipeline{std::log2(static_cast<double>(ranks)), 1}.best_time(ratio);
}

std::int64_t best_run_length(std::int64_t ranks, double ratio, std::int64_t most) {
  std::int64_t best = 1;
  for (std::int64_t run_length = 2; run_length <= most; ++run_length) {
    if (fractional_tree(ranks, run_length).best_time(ratio) <
        fractional_tree(ranks, best).best_time(ratio)) {
      best = run_length;
    }
  }
  return best;
}

double run_by_rule(std::int64_t ranks, double ratio) {
  return std::cbrt(ratio / (std::log2(static_cast<double>(ranks)) - 1));
}

double gain(std::int64_t ranks, double ratio) {
  const double simple =
      std::min(chain(ranks).best_time(ratio), binary_tree(ranks).best_time(ratio));
  return simple / fractional_tree(ranks, best_run_length(ranks, ratio)).best_time(ratio);
}

}  // namespace espalier::cost
