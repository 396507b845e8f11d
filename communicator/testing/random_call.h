#pragma once
// A random collective with the memory of one rank and the result that it must have, for tests.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "espalier/communicator.h"

namespace espalier::communicator::testing {

// Collective number `number` of a communicator of `ranks` ranks, at most 16: the same on all of
// them. Values are integers that every type and its sums over all ranks hold exactly.
class Drawn {
 public:
  Drawn(std::uint64_t seed, std::uint64_t number, std::uint32_t ranks);

  // Element i of the input of `rank`.
  [[nodiscard]] std::int64_t value(std::uint32_t rank, std::uint64_t i) const {
    return static_cast<std::int64_t>((salt_ * 7919 + rank * 104'729 + i * 31) % values_);
  }
  // Elements of the part from rank o to rank d; other collectives: of rank d.
  [[nodiscard]] std::uint64_t part(std::uint32_t o, std::uint32_t d) const {
    if (unequal.empty()) return count;
    return unequal[collective == Collective::kAllToAll ? o * ranks + d : d];
  }
  // Where that part begins in the message of rank o, or without an all-to-all in the whole one.
  [[nodiscard]] std::uint64_t offset(std::uint32_t o, std::uint32_t d) const;
  // Element i of the reduction of ranks 0 .. `of`-1.
  [[nodiscard]] std::int64_t reduced(std::uint32_t of, std::uint64_t i) const;

  std::uint32_t ranks = 0;
  Collective collective = Collective::kNone;
  std::uint32_t root = 0;
  Op op = Op::kNone;
  Type type = Type::kI64;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> unequal;  // a count for each part; empty: all have `count`
  bool in_place = false;

 private:
  void draw_operator();
  [[nodiscard]] std::uint64_t draw_count();
  void draw_counts();

  std::mt19937_64 random_;
  std::uint64_t salt_ = 0;
  std::uint64_t values_ = 0;  // values are below it
};

// One rank's side of it.
class RandomCall {
 public:
  RandomCall(std::uint64_t seed, std::uint64_t number, std::uint32_t ranks, std::uint32_t rank);
  RandomCall(const RandomCall&) = delete;
  RandomCall& operator=(const RandomCall&) = delete;

  // Returns the call, with the memory of this object.
  [[nodiscard]] Call call();
  // Sets input and output as they were before the collective ran.
  void restore();
  // Compares the output with the reference, bit by bit. Returns the difference; empty: none.
  [[nodiscard]] std::string check() const;
  // Returns "allreduce of f32 number 7 on rank 2".
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  using Values = std::vector<std::int64_t>;
  using Bytes = std::vector<std::byte>;

  void fill();
  void fill_vectors();
  void fill_parts();
  void place_parts(Values input, Values output, bool sends_all, bool receives_all);

  Drawn drawn_;
  std::uint64_t number_;
  std::uint32_t me_;
  // In place: `send` has input and output, and `receive` is empty.
  Values send_values_, receive_values_, expected_values_;
  Bytes send_, receive_, expected_;
  std::uint64_t sent_from_ = 0, received_from_ = 0;  // elements
};

}  // namespace espalier::communicator::testing
