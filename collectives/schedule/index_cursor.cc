#include "collectives/schedule/index_cursor.h"

namespace espalier {
namespace {

// The base-`base` digits of value, lowest first, `bits` bits each.
std::uint64_t pack_digits(std::int64_t value, const Term& term, std::uint32_t bits) {
  std::uint64_t packed = 0;
  for (std::uint32_t digit = 0; digit < term.digits; ++digit) {
    packed |= static_cast<std::uint64_t>(value % term.base) << (bits * digit);
    value /= term.base;
  }
  return packed;
}

}  // namespace

void TermCursor::start(const Program& program, const Term& term, std::int64_t i) {
  term_ = &term;
  const std::int64_t div = term.div == 0 ? 1 : static_cast<std::int64_t>(term.div);
  const std::int64_t numerator = wrapping_add(wrapping_mul(term.mul, i), term.add);
  quotient_ = floor_div(numerator, div);
  remainder_ = static_cast<std::uint32_t>(floor_mod(numerator, div));
  step_ = floor_div(term.mul, div);
  remainder_step_ = static_cast<std::uint32_t>(floor_mod(term.mul, div));
  if (term.mod != 0) {
    quotient_ = floor_mod(quotient_, term.mod);
    step_ = floor_mod(step_, term.mod);
  }
  if (term.digits != 0) {
    digit_bits_ = 0;
    while ((std::uint64_t{1} << digit_bits_) < term.base) ++digit_bits_;
    packed_ = pack_digits(quotient_, term, digit_bits_);
    packed_step_ = pack_digits(step_, term, digit_bits_);
  }
  if (term.table != 0) entries_ = table_entries(program, term);
  value_ = term_value(program, term, i);
}

void TermCursor::advance() {
  std::uint32_t carry = 0;
  if (term_->div > 1) {
    remainder_ += remainder_step_;
    if (remainder_ >= term_->div) {
      remainder_ -= term_->div;
      carry = 1;
    }
  }
  if (term_->digits != 0) {
    add_digits(carry);
    return;
  }
  quotient_ = wrapping_add(quotient_, wrapping_add(step_, carry));
  if (term_->mod != 0 && quotient_ >= term_->mod) quotient_ -= term_->mod;
  const bool table = term_->table != 0;
  value_ = wrapping_mul(term_->coef, table ? table_entry(entries_, quotient_) : quotient_);
}

// Adds the step digit by digit, modulo base^digits = mod, reading the sum in reverse on the way.
void TermCursor::add_digits(std::uint32_t carry) {
  const std::uint64_t mask = (std::uint64_t{1} << digit_bits_) - 1;
  const std::uint64_t base = term_->base;
  std::uint64_t packed = 0;
  std::uint64_t reversed = 0;
  std::uint32_t shift = 0;
  for (std::uint32_t at = 0; at < term_->digits; ++at) {
    std::uint64_t digit = ((packed_ >> shift) & mask) + ((packed_step_ >> shift) & mask) + carry;
    carry = digit >= base;
    if (carry != 0) digit -= base;
    packed |= digit << shift;
    reversed = reversed * base + digit;
    shift += digit_bits_;
  }
  packed_ = packed;
  value_ = wrapping_mul(term_->coef, static_cast<std::int64_t>(reversed));
}

void IndexCursor::start(const Program& program, std::uint32_t ref, std::int64_t i,
                        TermCursor* terms) {
  index_ = &program.indices[ref];
  terms_ = terms;
  sum_ = wrapping_add(index_->off, wrapping_mul(index_->coef, i));
  if (index_->terms != 0) {
    step_ = index_->coef;
    for (std::uint32_t at = 0; at < index_->terms; ++at) {
      terms_[at].start(program, program.terms[index_->first_term + at], i);
    }
    quotient_ = wrapping_add(index_value(program, ref, i), -std::int64_t{index_->base});
    return;
  }
  const std::int64_t div = index_->div == 0 ? 1 : static_cast<std::int64_t>(index_->div);
  quotient_ = floor_div(sum_, div);
  remainder_ = static_cast<std::uint32_t>(floor_mod(sum_, div));
  step_ = floor_div(index_->coef, div);
  remainder_step_ = static_cast<std::uint32_t>(floor_mod(index_->coef, div));
  if (index_->mod != 0) {
    quotient_ = floor_mod(quotient_, index_->mod);
    step_ = floor_mod(step_, index_->mod);
  }
}

void IndexCursor::advance_terms() {
  sum_ = wrapping_add(sum_, step_);
  std::int64_t sum = sum_;
  for (std::uint32_t at = 0; at < index_->terms; ++at) {
    terms_[at].advance();
    sum = wrapping_add(sum, terms_[at].value());
  }
  quotient_ = wrapping_add(finish_index(*index_, sum), -std::int64_t{index_->base});
}

}  // namespace espalier
