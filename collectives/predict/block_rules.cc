#include "collectives/predict/block_rules.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "espalier/internal/base/assert.h"

namespace espalier::predict {
namespace {

constexpr std::uint32_t kLeastBlockBytes = 64;
// Whole messages from 16 bytes to 1 TiB: powers of two and the middle between two.
constexpr std::uint32_t kFirstSize = 4, kLastSize = 40;
constexpr std::uint32_t kSizes = 2 * (kLastSize - kFirstSize) + 1;
constexpr std::uint64_t size_bytes(std::uint32_t size) {
  return (std::uint64_t{2} + size % 2) << (size / 2 + kFirstSize - 1);
}
constexpr std::uint64_t kMaxExcess = std::uint64_t{1} << 50;
constexpr std::uint64_t kExcessUnit = 10'000;  // of excess over the best time

static_assert(sizeof(espalier_Program::blocks) / sizeof(BlockRule) == kMaxBlockRules);

// The lengths that are tried: powers of two, the middle between two, and half a burst, up to which
// a pipeline fills without beta.
std::vector<std::uint32_t> lengths_to_try(std::uint32_t max_bytes, std::uint64_t burst_bytes) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t bytes = kLeastBlockBytes; bytes <= max_bytes; bytes *= 2) {
    all.push_back(bytes);
    if (bytes < max_bytes) all.push_back(bytes / 2 * 3);
  }
  const std::uint64_t half = burst_bytes / 2;
  if (half >= kLeastBlockBytes && half <= max_bytes) {
    all.push_back(static_cast<std::uint32_t>(half));
  }
  return all;
}

bool has_one_block(const Program& program) {
  return std::all_of(program.blocks, program.blocks + program.blocks_count,
                     [](const BlockRule& rule) { return rule.block_bytes == 0; });
}

// The time of each length for each size, by size and length.
class Times {
 public:
  Times(const Program& first, const StepLengths& lengths, const LinkCost& cost,
        std::uint32_t max_bytes)
      : tried_(lengths_to_try(max_bytes, cost.burst_bytes)) {
    auto program = std::make_unique<OwnedProgram>(first);
    for (std::uint32_t size = 0; size < kSizes; ++size) {
      std::vector<Picoseconds>& row = rows_.emplace_back();
      for (const std::uint32_t bytes : tried_) {
        set_block_rules({{0, bytes}}, *program);
        Layout layout;
        const std::uint64_t whole = size_bytes(size);
        const std::uint64_t count =
            counts_per_rank(program->collective) ? (whole + first.ranks - 1) / first.ranks : whole;
        const Status status = make_layout(*program, count, 1, layout);
        row.push_back(status == Status::kOk ? lengths.time(*program, layout, cost)
                                            : kMaxPrediction);
      }
      least_.push_back(*std::min_element(row.begin(), row.end()));
    }
  }

  // The length whose time, for every size first .. last, is at most `tolerance` ten-thousandths
  // above the best; the one with the least excess in total.
  [[nodiscard]] std::optional<std::uint32_t> length(std::uint32_t first, std::uint32_t last,
                                                    std::uint64_t tolerance) const {
    std::optional<std::uint32_t> best;
    std::uint64_t least_excess = 0;
    for (std::size_t i = 0; i < tried_.size(); ++i) {
      std::uint64_t sum = 0;
      bool fits = true;
      for (std::uint32_t size = first; size <= last; ++size) {
        const std::uint64_t excess =
            (rows_[size][i] - least_[size]) / std::max<Picoseconds>(1, least_[size] / kExcessUnit);
        fits = fits && excess <= tolerance;
        sum += std::min(excess, kMaxExcess);
      }
      if (!fits || (best && sum >= least_excess)) continue;
      best = tried_[i];
      least_excess = sum;
    }
    return best;
  }

 private:
  std::vector<std::uint32_t> tried_;
  std::vector<std::vector<Picoseconds>> rows_;
  std::vector<Picoseconds> least_;
};

// The fewest rows within the tolerance: each begins where the one before ends.
std::vector<BlockRule> table(const Times& times, std::uint64_t tolerance) {
  std::vector<BlockRule> rules;
  for (std::uint32_t first = 0; first < kSizes;) {
    std::uint32_t last = first;
    std::uint32_t bytes = *times.length(first, first, tolerance);
    while (last + 1 < kSizes) {
      const auto longer = times.length(first, last + 1, tolerance);
      if (!longer) break;
      bytes = *longer;
      ++last;
    }
    const std::uint64_t from = rules.empty() ? 0 : size_bytes(first);
    if (rules.empty() || rules.back().block_bytes != bytes) rules.push_back({from, bytes});
    first = last + 1;
  }
  return rules;
}

}  // namespace

std::vector<BlockRule> block_rules(const Program& first, const StepLengths& lengths,
                                   const LinkCost& cost, std::uint32_t max_rules,
                                   std::uint32_t max_bytes) {
  ESPALIER_ASSERT(max_rules >= 1);
  if (has_one_block(first)) return {first.blocks, first.blocks + first.blocks_count};
  const Times times(first, lengths, cost, max_bytes);
  for (std::uint64_t tolerance = 50;; tolerance += tolerance / 4) {
    std::vector<BlockRule> rules = table(times, tolerance);
    if (rules.size() <= max_rules) return rules;
  }
}

void set_block_rules(const std::vector<BlockRule>& rules, Program& program) {
  ESPALIER_ASSERT(rules.size() <= kMaxBlockRules);
  std::copy(rules.begin(), rules.end(), program.blocks);
  program.blocks_count = static_cast<pb_size_t>(rules.size());
}

}  // namespace espalier::predict
