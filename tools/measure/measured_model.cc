#include "tools/measure/measured_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "espalier/internal/base/assert.h"
#include "tools/common/numbers.h"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kOperatorBytes = 64 << 10;
constexpr std::uint32_t kOperatorRuns = 15, kOperatorRepeats = 4;

std::uint64_t rounded(double value, double unit, std::uint64_t most) {
  const double scaled = std::round(value * unit);
  if (!(scaled > 0)) return 0;
  return scaled >= static_cast<double>(most) ? most : static_cast<std::uint64_t>(scaled);
}

predict::Interval interval(double low, double value, double high, double unit, std::uint64_t most) {
  return {rounded(std::min(low, value), unit, most), rounded(std::max(high, value), unit, most)};
}

struct Slope {
  double alpha = 0, beta = 0;
};

Slope through(double x1, double y1, double x2, double y2) {
  const double beta = std::max(0.0, (y2 - y1) / (x2 - x1));
  const double alpha = y1 - beta * x1;
  return alpha >= 0 ? Slope{alpha, beta} : Slope{0, y2 / x2};
}

predict::CostLine line_between(const SizeTime& left, const SizeTime& right) {
  const auto x1 = static_cast<double>(left.bytes), x2 = static_cast<double>(right.bytes);
  const MeasuredTime &a = left.one_way, &b = right.one_way;
  const Slope line = through(x1, a.seconds, x2, b.seconds);
  const Slope steep = through(x1, a.low, x2, b.high), flat = through(x1, a.high, x2, b.low);
  predict::CostLine cost;
  cost.from_bytes = left.bytes;
  cost.alpha_ps = rounded(line.alpha, 1e12, predict::kMaxTimePs);
  cost.beta_fs = rounded(line.beta, 1e15, predict::kMaxFsPerByte);
  cost.alpha = interval(std::min(steep.alpha, flat.alpha), line.alpha,
                        std::max(steep.alpha, flat.alpha), 1e12, predict::kMaxTimePs);
  cost.beta = interval(std::min(steep.beta, flat.beta), line.beta, std::max(steep.beta, flat.beta),
                       1e15, predict::kMaxFsPerByte);
  if (cost.alpha_ps == 0 && cost.beta_fs == 0) cost.alpha_ps = 1;
  return cost;
}

predict::CombineCost time_operator(const Operator& op, std::vector<std::uint64_t>& memory) {
  const std::uint64_t count = kOperatorBytes / element_bytes(op);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(memory.data());
  std::vector<double> seconds;
  for (std::uint32_t run = 0; run < kOperatorRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < kOperatorRepeats; ++i) {
      combine(op, bytes, bytes, bytes + kOperatorBytes, count);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    seconds.push_back(took.count() / (kOperatorRepeats * static_cast<double>(kOperatorBytes)));
  }
  const MeasuredTime time = median_time(std::move(seconds));
  return {op.op, op.type, rounded(time.seconds, 1e15, predict::kMaxFsPerByte),
          interval(time.low, time.seconds, time.high, 1e15, predict::kMaxFsPerByte)};
}

}  // namespace

MeasuredTime median_time(std::vector<double> seconds) {
  ESPALIER_ASSERT(!seconds.empty());
  std::sort(seconds.begin(), seconds.end());
  const auto n = static_cast<double>(seconds.size());
  // The numbers of values below the median are binomial: n/2 with a deviation of sqrt(n)/2.
  const auto low =
      static_cast<std::size_t>(std::max(0.0, std::floor((n - 1.96 * std::sqrt(n)) / 2)));
  return {median(seconds), seconds[low], seconds[seconds.size() - 1 - low]};
}

std::vector<predict::CostLine> lines_through(const std::vector<SizeTime>& sizes) {
  ESPALIER_ASSERT(!sizes.empty());
  std::vector<predict::CostLine> lines;
  if (sizes.size() == 1) {
    const SizeTime zero{0, {0, 0, 0}};
    lines.push_back(sizes[0].bytes == 0 ? line_between(sizes[0], {1, sizes[0].one_way})
                                        : line_between(zero, sizes[0]));
  }
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    lines.push_back(line_between(sizes[i - 1], sizes[i]));
  }
  lines.front().from_bytes = 0;
  return lines;
}

std::vector<predict::CombineCost> time_operators() {
  std::vector<std::uint64_t> memory(2 * kOperatorBytes / sizeof(std::uint64_t));
  std::vector<predict::CombineCost> all;
  for (std::uint8_t op = 1; op < static_cast<std::uint8_t>(Op::kMinLoc); ++op) {
    for (std::uint8_t type = 1; type < static_cast<std::uint8_t>(Type::kI32Loc); ++type) {
      const Operator one{.op = static_cast<Op>(op), .type = static_cast<Type>(type)};
      if (can_combine(one)) all.push_back(time_operator(one, memory));
    }
  }
  return all;
}

}  // namespace espalier::tools
