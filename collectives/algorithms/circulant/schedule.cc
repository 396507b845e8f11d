#include "collectives/algorithms/circulant/schedule.h"

#include "collectives/build/builder.h"

namespace espalier {
namespace {

// The depth-first search of [Traff24] for the receive schedule of one rank. It finds, for round 0,
// 1, ..., a path of descending skips from the root that ends before the rank, and returns the index
// of its last skip. Each index is found once.
class ReceiveSearch {
 public:
  // skips: q + 2 entries, as CirculantSchedule::skips_.
  ReceiveSearch(const std::int64_t* skips, std::uint32_t rounds, std::uint32_t base,
                std::int64_t target)
      : skips_(skips), target_(target) {
    for (std::uint32_t index = 0; index <= rounds; ++index) used_[index] = index == base;
  }

  // Continues the paths of length `length` by skip indices up to `index`. New paths are shorter
  // than `bound`. Calls itself at most `rounds` deep: a path has at most that many skips.
  void search(std::int64_t length, std::int64_t bound, std::int32_t index) {
    for (index = unused(index); index >= 0; index = unused(index - 1)) {
      const std::int64_t longer = length + skips_[index];
      if (longer > target_ - skips_[found] || longer >= bound) continue;
      if (longer <= target_ - skips_[found + 1]) search(longer, bound, index);
      if (length > target_ - skips_[found + 1]) return;
      bound = longer;
      blocks[found++] = index;
      used_[index] = true;
    }
  }

  std::uint32_t found = 0;
  std::int32_t blocks[CirculantSchedule::kMaxRounds + 1];

 private:
  // Returns the greatest unused skip index <= index; -1: none.
  [[nodiscard]] std::int32_t unused(std::int32_t index) const {
    while (index >= 0 && used_[index]) --index;
    return index;
  }

  const std::int64_t* skips_;
  std::int64_t target_;  // all paths end at most here: p + the rank
  bool used_[CirculantSchedule::kMaxRounds + 1];
};

}  // namespace

CirculantSchedule::CirculantSchedule(std::uint32_t ranks)
    : ranks_(ranks), rounds_(log2_ceil(ranks)) {
  skips_[rounds_ + 1] = std::int64_t{1} << 40;
  skips_[rounds_] = ranks;
  for (std::uint32_t round = rounds_; round-- > 0;) skips_[round] = (skips_[round + 1] + 1) / 2;
}

std::uint32_t CirculantSchedule::base(std::uint32_t rank) const {
  std::int64_t sum = 0;
  for (std::uint32_t round = rounds_; round-- > 0;) {
    if (sum + skips_[round] == rank) return round;
    if (sum + skips_[round] < rank) sum += skips_[round];
  }
  return rounds_;
}

void CirculantSchedule::receives(std::uint32_t rank, Blocks& blocks) const {
  const std::uint32_t first = base(rank);
  ReceiveSearch search(skips_, rounds_, first, std::int64_t{ranks_} + rank);
  search.search(0, 2 * std::int64_t{ranks_}, static_cast<std::int32_t>(rounds_));
  const auto window = static_cast<std::int32_t>(rounds_);
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    const std::int32_t index = search.blocks[round];
    blocks[round] = index == window ? static_cast<std::int32_t>(first) : index - window;
  }
}

void CirculantSchedule::sends(std::uint32_t rank, Blocks& blocks) const {
  for (std::uint32_t round = 0; round < rounds_; ++round) {
    blocks[round] = static_cast<std::int32_t>(round);
    if (rank == 0) continue;
    const auto receiver = static_cast<std::uint32_t>((rank + skips_[round]) % std::int64_t{ranks_});
    Blocks received;
    if (receiver != 0) receives(receiver, received);
    blocks[round] = receiver == 0 ? -static_cast<std::int32_t>(rounds_) : received[round];
  }
}

}  // namespace espalier
