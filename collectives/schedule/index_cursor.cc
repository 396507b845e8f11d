#include "espalier/internal/collectives/schedule/index_cursor.h"

#include <bit>

namespace espalier {
namespace {

std::uint32_t digit_bits(const Term& term) {
  return static_cast<std::uint32_t>(std::bit_width(term.base - 1u));
}

// Returns the base-`base` digits of `value`, packed, lowest first. Values of terms with digits are
// below mod <= 2^30.
std::uint64_t pack_digits(std::uint32_t value, const Term& term) {
  ESPALIER_ASSERT(term.base >= 2 && value < term.mod);
  std::uint64_t packed = 0;
  std::uint32_t shift = 0;
  for (std::uint32_t digit = 0; digit < term.digits; ++digit, value /= term.base) {
    packed |= std::uint64_t{value % term.base} << shift;
    shift += digit_bits(term);
  }
  ESPALIER_ASSERT(value == 0 && shift <= 36);
  return packed;
}

// Sets n to floor(n / div) mod mod; returns the old n mod div.
std::uint32_t divide_mod(std::int64_t& n, std::uint32_t div, std::uint32_t mod) {
  const std::uint32_t rest = floor_divide(n, div);
  if (mod != 0) n = floor_divide(n, mod);
  return rest;
}

}  // namespace

void TermCursor::start(const Term& term, std::int64_t i) {
  i = wrapping_add(wrapping_mul(term.mul, i), term.add);
  remainder_ = divide_mod(i, term.div, term.mod);
  quotient_ = static_cast<std::uint64_t>(i);
  i = term.mul;
  remainder_step_ = divide_mod(i, term.div, term.mod);
  step_ = static_cast<std::uint64_t>(i);
  ESPALIER_ASSERT(term.div == 0 || (remainder_ < term.div && remainder_step_ < term.div));
  if (term.digits == 0) return;
  quotient_ = pack_digits(static_cast<std::uint32_t>(quotient_), term);
  step_ = pack_digits(static_cast<std::uint32_t>(i), term);
}

std::int64_t TermCursor::advance(const Program& program, const Term& term) {
  ESPALIER_ASSERT(program.terms <= &term && &term < program.terms + program.terms_count);
  std::uint32_t carry = 0;
  if (term.div > 1) {
    remainder_ += remainder_step_;
    if (remainder_ >= term.div) {
      remainder_ -= term.div;
      carry = 1;
    }
  }
  ESPALIER_ASSERT(term.div <= 1 || remainder_ < term.div);
  if (term.digits != 0) return wrapping_mul(term.coef, add_digits(term, carry));
  auto value = static_cast<std::int64_t>(quotient_);
  value = wrapping_add(value, wrapping_add(static_cast<std::int64_t>(step_), carry));
  if (term.mod != 0 && value >= term.mod) value -= term.mod;
  ESPALIER_ASSERT(term.mod == 0 || (0 <= value && value < term.mod));
  quotient_ = static_cast<std::uint64_t>(value);
  if (term.table != 0) value = table_entry(table_entries(program, term), value);
  return wrapping_mul(term.coef, value);
}

// Adds step_ to quotient_ digit by digit, modulo base^digits = mod, and returns the sum's digits in
// reverse order.
std::int64_t TermCursor::add_digits(const Term& term, std::uint32_t carry) {
  const std::uint32_t bits = digit_bits(term);
  const std::uint32_t mask = (1u << bits) - 1;
  std::uint64_t packed = 0;
  std::uint32_t reversed = 0;
  std::uint32_t shift = 0;
  for (std::uint32_t i = 0; i < term.digits; ++i) {
    std::uint32_t digit = (static_cast<std::uint32_t>(quotient_ >> shift) & mask) +
                          (static_cast<std::uint32_t>(step_ >> shift) & mask) + carry;
    carry = digit >= term.base ? 1 : 0;
    if (carry != 0) digit -= term.base;
    ESPALIER_ASSERT(digit < term.base);
    packed |= std::uint64_t{digit} << shift;
    reversed = reversed * term.base + digit;
    shift += bits;
  }
  quotient_ = packed;
  ESPALIER_ASSERT(reversed < term.mod);
  return reversed;
}

void IndexCursor::start(const Program& program, std::uint32_t ref, std::int64_t i,
                        TermCursor* terms) {
  ESPALIER_ASSERT(ref < program.indices_count);
  index_ = &program.indices[ref];
  const Index& index = *index_;
  if (index.terms != 0) {
    ESPALIER_ASSERT(terms != nullptr);
    ESPALIER_ASSERT(index.first_term + index.terms <= program.terms_count);
    // Starts one instance earlier, because a term cursor has its value only after an advance.
    terms_ = terms;
    sum_ = wrapping_add(index.off, wrapping_mul(index.coef, i - 1));
    for (std::uint32_t term = 0; term < index.terms; ++term) {
      terms_[term].start(program.terms[index.first_term + term], i - 1);
    }
    return advance_terms(program);
  }
  quotient_ = wrapping_add(index.off, wrapping_mul(index.coef, i));
  remainder_ = divide_mod(quotient_, index.div, index.mod);
  i = index.coef;
  step_.remainder = divide_mod(i, index.div, index.mod);
  step_.quotient = static_cast<std::int32_t>(i);
  check_invariants();
}

void IndexCursor::advance_terms(const Program& program) {
  sum_ = wrapping_add(sum_, index_->coef);
  std::int64_t sum = sum_;
  for (std::uint32_t term = 0; term < index_->terms; ++term) {
    sum =
        wrapping_add(sum, terms_[term].advance(program, program.terms[index_->first_term + term]));
  }
  // In most cases no division is needed.
  const bool below = index_->mod == 0 || static_cast<std::uint64_t>(sum) < index_->mod;
  quotient_ = index_->div <= 1 && below ? sum : finish_index(*index_, sum);
  check_invariants();
}

}  // namespace espalier
