#pragma once
// Reading an index instance by instance: start() divides, advance() adds, compares and subtracts.
// Freestanding. Equal to index_value() wherever that does not wrap. The one exception: an index
// that has terms and also a div or mod of its own divides once an advance.

#include <cstdint>

#include "espalier/base/arithmetic.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier {

// Returns the outer part of an index without its base: floor(sum / div) mod mod.
[[nodiscard]] std::int64_t finish_index(const Index& index, std::int64_t sum);

// One term of an index, at some instance.
class TermCursor {
 public:
  void start(const Term& term, std::int64_t i);
  // The term's value at the next instance; what start() was given.
  [[nodiscard]] std::int64_t advance(const Program& program, const Term& term);

 private:
  [[nodiscard]] std::int64_t add_digits(const Term& term, std::uint32_t carry);

  std::uint32_t remainder_ = 0;
  std::uint32_t remainder_step_ = 0;  // what an instance adds to remainder_, below div
  // floor((mul*i + add) / div) mod mod. With digits they are packed here, lowest first, each in as
  // many bits as the base needs (at most 36 in all, as base^digits <= 2^30).
  std::uint64_t quotient_ = 0;
  std::uint64_t step_ = 0;  // what an instance adds to quotient_, packed as that is
};

class IndexCursor {
 public:
  // Goes to instance i of program.indices[ref]. `terms` is room for that index's terms, which
  // outlives the cursor; may be null if it has none. The program passed check_program and outlives
  // the cursor.
  void start(const Program& program, std::uint32_t ref, std::int64_t i, TermCursor* terms);
  // Goes to the next instance of the program's index that start() was given.
  void advance(const Program& program);
  [[nodiscard]] std::int64_t value() const { return wrapping_add(index_->base, quotient_); }

 private:
  void advance_terms(const Program& program);

  // Without terms: what an instance adds to quotient_ and to the remainder of its division.
  struct Step {
    std::int32_t quotient;
    std::uint32_t remainder;
  };

  const Index* index_ = nullptr;
  union {
    TermCursor* terms_ = nullptr;
    std::uint32_t remainder_;  // without terms
  };
  std::int64_t quotient_ = 0;  // value without base
  union {
    std::int64_t sum_ = 0;  // with terms: off + coef*i
    Step step_;
  };
};

inline void IndexCursor::advance(const Program& program) {
  if (index_->terms != 0) {
    advance_terms(program);
    return;
  }
  quotient_ = wrapping_add(quotient_, step_.quotient);
  if (index_->div > 1) {
    remainder_ += step_.remainder;
    if (remainder_ >= index_->div) {
      remainder_ -= index_->div;
      quotient_ = wrapping_add(quotient_, 1);
    }
  }
  // Both summands were below mod, and the carry is at most 1.
  if (index_->mod != 0 && quotient_ >= index_->mod) quotient_ -= index_->mod;
}

}  // namespace espalier
