#pragma once
// Reading an index instance by instance: start() divides, advance() adds, compares and subtracts.
// Freestanding. Equal to index_value() wherever that does not wrap. The one exception: an index
// that has terms and also a div or mod of its own divides once an advance.

#include <cstdint>

#include "collectives/schedule/arithmetic.h"
#include "collectives/schedule/program.h"

namespace espalier {

// One term of an index, at some instance.
class TermCursor {
 public:
  void start(const Program& program, const Term& term, std::int64_t i);
  void advance();
  [[nodiscard]] std::int64_t value() const { return value_; }

 private:
  void add_digits(std::uint32_t carry);

  const Term* term_ = nullptr;
  std::int64_t value_ = 0;     // coef * R(...)
  std::int64_t quotient_ = 0;  // floor((mul*i + add) / div) mod mod; with digits: packed_ instead
  std::int64_t step_ = 0;      // what an instance adds to quotient_, and
  std::uint32_t remainder_ = 0;
  std::uint32_t remainder_step_ = 0;  // to remainder_, below div
  // Digit reversal: the digits, lowest first, each in digit_bits_ bits (at most 36 in all, as
  // base^digits <= 2^30).
  std::uint64_t packed_ = 0;
  union {
    std::uint64_t packed_step_ = 0;
    const std::uint8_t* entries_;  // of a table, which has no digits
  };
  std::uint8_t digit_bits_ = 0;
};

class IndexCursor {
 public:
  // Goes to instance i of program.indices[ref]. `terms` is room for that index's terms, which
  // outlives the cursor; may be null if it has none. The program passed check_program and outlives
  // the cursor.
  void start(const Program& program, std::uint32_t ref, std::int64_t i, TermCursor* terms);
  // Goes to the next instance.
  void advance();
  [[nodiscard]] std::int64_t value() const { return wrapping_add(index_->base, quotient_); }

 private:
  void advance_terms();

  const Index* index_ = nullptr;
  TermCursor* terms_ = nullptr;
  std::int64_t quotient_ = 0;  // value without base
  std::int64_t step_ = 0;      // what an instance adds to quotient_; with terms: to sum_
  std::int64_t sum_ = 0;       // with terms: off + coef*i
  std::uint32_t remainder_ = 0;
  std::uint32_t remainder_step_ = 0;
};

inline void IndexCursor::advance() {
  if (index_->terms != 0) {
    advance_terms();
    return;
  }
  quotient_ = wrapping_add(quotient_, step_);
  if (index_->div > 1) {
    remainder_ += remainder_step_;
    if (remainder_ >= index_->div) {
      remainder_ -= index_->div;
      quotient_ = wrapping_add(quotient_, 1);
    }
  }
  // Both summands were below mod, and the carry is at most 1.
  if (index_->mod != 0 && quotient_ >= index_->mod) quotient_ -= index_->mod;
}

}  // namespace espalier
