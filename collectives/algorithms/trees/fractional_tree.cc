#include "collectives/algorithms/trees/fractional_tree.h"

#include "collectives/build/builder.h"
#include "espalier/internal/base/assert.h"

namespace espalier {
namespace {

constexpr std::uint64_t kDefaultRatio = 4096;  // k/t: message time / start-up time

}  // namespace

std::uint32_t fractional_run_length(const CollectiveParameters& parameters) {
  if (parameters.run_length != 0) return parameters.run_length;
  const std::uint32_t log = log2_ceil(parameters.ranks);
  const std::uint64_t depth = log > 2 ? log - 1 : 1;
  // (r + 1/2)^3 d' < k/t as long as the next integer is nearer.
  std::uint64_t run_length = 1;
  while (run_length < kMaxReduceRunLength &&
         (2 * run_length + 1) * (2 * run_length + 1) * (2 * run_length + 1) * depth <
             8 * kDefaultRatio) {
    ++run_length;
  }
  return static_cast<std::uint32_t>(run_length);
}

FractionalTree::FractionalTree(std::uint32_t ranks, std::uint32_t run_length)
    : ranks_(ranks),
      run_length_(ranks == 2 ? 1 : run_length),
      period_(ranks == 2 ? 1 : run_length + 1),
      depth_(0) {
  ESPALIER_ASSERT(1 <= run_length && run_length <= kMaxRunLength);
  ESPALIER_ASSERT(1 <= ranks && ranks <= kMaxRanks);
  reach_.at = 0;
  for (std::uint64_t& value : reach_.values) value = 0;
  reach_.values[0] = 1;
  while (reach(reach_, depth_) < ranks_) {
    ++depth_;
    const auto down = static_cast<std::int32_t>(depth_ - run_length_);
    const std::uint64_t next = down < 0
                                   ? static_cast<std::uint64_t>(depth_) + 1
                                   : run_length_ + reach(reach_, down) + reach(reach_, down - 1);
    reach_.values[static_cast<std::uint32_t>(depth_) % (run_length_ + 2)] = next;
    reach_.at = depth_;
  }
}

Count FractionalTree::steps() const {
  Count steps{};
  steps.a = depth_ - 1;
  steps.b = 1;
  if (period_ == run_length_) {
    steps.a = 0;
  } else {
    steps.a = depth_ - 2;
    steps.c = 1;
    steps.e = run_length_;
  }
  return steps;
}

std::uint64_t FractionalTree::reach(const Reach& all, std::int32_t index) const {
  return index < 0 ? 0 : all.values[static_cast<std::uint32_t>(index) % (run_length_ + 2)];
}

// Moves the window of values back: P_{i-r-2} = P_{i-1} - r - P_{i-1-r} replaces P_i.
void FractionalTree::back(Reach& all, std::uint32_t steps) const {
  for (; steps > 0; --steps) {
    const auto run_length = static_cast<std::int32_t>(run_length_);
    const std::int32_t fresh = all.at - run_length - 2;
    if (fresh >= 0) {
      all.values[static_cast<std::uint32_t>(fresh) % (run_length_ + 2)] =
          reach(all, all.at - 1) - run_length_ - reach(all, all.at - 1 - run_length);
    }
    --all.at;
  }
}

FractionalTree::Seat FractionalTree::seat(std::uint32_t virtual_rank) const {
  ESPALIER_ASSERT(virtual_rank < ranks_);
  Reach window = reach_;
  Seat seat;
  std::uint32_t size = ranks_;  // of the subtree of the group at seat.head
  for (;;) {
    const std::uint32_t group = size < run_length_ ? size : run_length_;
    const std::uint32_t rest = size - group;
    const std::uint64_t most = reach(window, window.at - static_cast<std::int32_t>(run_length_));
    const auto down_size = static_cast<std::uint32_t>(rest < most ? rest : most);
    const std::uint32_t down = seat.head + group, right = down + down_size;
    if (virtual_rank < down) {
      seat.position = virtual_rank - seat.head;
      seat.arrival += static_cast<std::int32_t>(seat.position);
      if (seat.position + 1 < group || down_size > 0) seat.down = virtual_rank + 1;
      if (rest > down_size) seat.right = right;
      return seat;
    }
    seat.is_right = virtual_rank >= right;
    seat.from_group = seat.head;
    seat.head = seat.is_right ? right : down;
    size = seat.is_right ? rest - down_size : down_size;
    const std::uint32_t later = run_length_ + (seat.is_right ? 1 : 0);
    seat.arrival += static_cast<std::int32_t>(later);
    back(window, later);
  }
}

}  // namespace espalier
