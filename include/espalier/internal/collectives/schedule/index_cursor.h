#pragma once
// Evaluates an index instance by instance: start() divides, advance() adds, compares and subtracts.
// Freestanding. Equal to index_value() wherever that does not wrap. One exception: an index with
// terms and also a div or mod of its own divides once per advance().

#include <cstdint>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier {

// Returns the outer part of an index without its base: floor(sum / div) mod mod.
[[nodiscard]] std::int64_t finish_index(const Index& index, std::int64_t sum);

// One term of an index, at the current instance.
class TermCursor {
 public:
  // Goes to instance i of `term`.
  void start(const Term& term, std::int64_t i);
  // Goes to the next instance of the term passed to start(), and returns the term's value there.
  [[nodiscard]] std::int64_t advance(const Program& program, const Term& term);

 private:
  [[nodiscard]] std::int64_t add_digits(const Term& term, std::uint32_t carry);

  std::uint32_t remainder_ = 0;
  std::uint32_t remainder_step_ = 0;  // added to remainder_ per instance, below div
  // floor((mul*i + add) / div) mod mod. For a term with digits, its digits, packed: the lowest
  // first, bit_width(base - 1) bits each. That is at most 36 bits, because base^digits <= 2^30.
  std::uint64_t quotient_ = 0;
  std::uint64_t step_ = 0;  // added to quotient_ per instance, packed like quotient_
};

// One index of a program, at the current instance.
class IndexCursor {
 public:
  // Goes to instance i of program.indices[ref]. `terms` has one element per term of that index, and
  // may be null if there are none. The program must have passed check_program. Program and `terms`
  // must outlive the cursor.
  void start(const Program& program, std::uint32_t ref, std::int64_t i, TermCursor* terms);
  // Goes to the next instance. `program` is the program passed to start().
  void advance(const Program& program);
  // Returns the index's value at the current instance.
  [[nodiscard]] std::int64_t value() const { return wrapping_add(index_->base, quotient_); }

 private:
  void advance_terms(const Program& program);
  // Asserts what holds after start() and each advance().
  void check_invariants() const {
    ESPALIER_ASSERT(index_ != nullptr);
    ESPALIER_ASSERT(index_->terms != 0 || index_->div <= 1 || remainder_ < index_->div);
    ESPALIER_ASSERT(index_->mod == 0 || (0 <= quotient_ && quotient_ < index_->mod));
  }

  // For an index without terms: added to quotient_ and remainder_ per instance.
  struct Step {
    std::int32_t quotient;
    std::uint32_t remainder;
  };

  const Index* index_ = nullptr;
  union {
    TermCursor* terms_ = nullptr;
    std::uint32_t remainder_;  // without terms
  };
  std::int64_t quotient_ = 0;  // the value without base
  union {
    std::int64_t sum_ = 0;  // with terms: off + coef*i
    Step step_;
  };
};

inline void IndexCursor::advance(const Program& program) {
  ESPALIER_ASSERT(program.indices <= index_ && index_ < program.indices + program.indices_count);
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
  // One subtraction suffices: both summands were below mod, and the carry is at most 1.
  if (index_->mod != 0 && quotient_ >= index_->mod) quotient_ -= index_->mod;
  check_invariants();
}

}  // namespace espalier
