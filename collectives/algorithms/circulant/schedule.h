#pragma once
// The schedules of broadcast on circulant graphs for any number of ranks ([Traff22], [Traff24]).
// Freestanding; fixed arrays.
//
// q = ceil(log2 p). In round i, k = i mod q, rank r sends to rank r + skip(k) and receives from
// rank r - skip(k), modulo p; the data starts at rank 0. In the first q rounds (a window) rank r
// sends block send[k] and receives block receive[k]; in every later window all blocks are q
// further. A negative block is not sent. Rank r receives one block in the first window, base(r).
// Every other receive[k] is a block of the window before:
//
//   receive[k] of rank r == send[k] of rank r - skip(k)
//   {receive[k]} == {-q, ..., -1} without base(r) - q, and base(r), if r > 0
//   send[k] is base(r) - q or one of receive[0], ..., receive[k-1], if r > 0
//   send[k] == k, if r == 0

#include <cstdint>

namespace espalier {

class CirculantSchedule {
 public:
  static constexpr std::uint32_t kMaxRounds = 32;  // of a window
  using Blocks = std::int32_t[kMaxRounds];         // by round of the window

  explicit CirculantSchedule(std::uint32_t ranks);

  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }  // q
  [[nodiscard]] std::uint32_t skip(std::uint32_t round) const {
    return static_cast<std::uint32_t>(skips_[round]);
  }
  // The block that `rank` receives in the first window; q for rank 0.
  [[nodiscard]] std::uint32_t base(std::uint32_t rank) const;
  // The blocks that `rank`, 0 < rank < ranks, receives in the first window. O(log p).
  void receives(std::uint32_t rank, Blocks& blocks) const;
  // The blocks that `rank` sends in the first window, also those to rank 0, which needs none.
  // O(log(p)^2): each is read from the receiver's schedule.
  void sends(std::uint32_t rank, Blocks& blocks) const;

 private:
  std::uint32_t ranks_, rounds_ = 0;
  std::int64_t skips_[kMaxRounds + 2];  // skip(0) .. skip(q-1), p, and a number above all sums
};

}  // namespace espalier
