#include "tests/mutation/formulas.h"

#include <algorithm>

namespace espalier::mutation {
namespace {

// Sums of products of three 32-bit numbers.
__extension__ typedef __int128 Wide;

// Whether division in 64 bits is enough: it is much faster.
bool is_short(Wide value) { return value >= INT64_MIN && value <= INT64_MAX; }

Wide wide_down(Wide value, std::int64_t by) {
  if (by == 1) return value;
  if (is_short(value)) return down(static_cast<std::int64_t>(value), by);
  Wide quotient = value / by;
  if (quotient * by > value) --quotient;
  return quotient;
}

Wide rest(Wide value, std::int64_t mod) { return value - wide_down(value, mod) * mod; }

Wide term_at(const espalier_Program& program, const espalier_Term& term, std::int64_t i) {
  Wide value = wide_down(Wide{term.mul} * i + term.add, std::max<std::int64_t>(1, term.div));
  if (term.mod != 0) value = rest(value, term.mod);
  if (term.table != 0) {
    const std::int64_t at = 2 * (std::int64_t{term.table} - 1 + static_cast<std::int64_t>(value));
    const std::int64_t bits = program.table.bytes[at] + 256 * program.table.bytes[at + 1];
    return Wide{term.coef} * (bits < 32768 ? bits : bits - 65536);
  }
  Wide reversed = 0;
  for (std::uint32_t digit = 0; digit < term.digits; ++digit) {
    reversed = reversed * term.base + value % term.base;
    value /= term.base;
  }
  return term.coef * (term.digits != 0 ? reversed : value);
}

}  // namespace

std::int64_t down(std::int64_t value, std::int64_t by) {
  std::int64_t quotient = value / by;
  if (quotient * by > value) --quotient;
  return quotient;
}

std::int64_t count_at(const espalier_Count& count, std::int64_t blocks) {
  const std::int64_t divisor = std::max<std::int64_t>(1, count.e);
  const std::int64_t rounded_up = -down(-(blocks + count.d), divisor);
  return count.a + count.b * blocks + count.c * rounded_up;
}

std::int64_t index_at(const espalier_Program& program, std::uint32_t at, std::int64_t i) {
  const espalier_Index& index = program.indices[at];
  Wide sum = Wide{index.coef} * i + index.off;
  for (std::uint32_t k = 0; k < index.terms; ++k) {
    sum += term_at(program, program.terms[index.first_term + k], i);
  }
  sum = wide_down(sum, std::max<std::int64_t>(1, index.div));
  if (index.mod != 0) sum = rest(sum, index.mod);
  sum += index.base;
  return is_short(sum) ? static_cast<std::int64_t>(sum) : kNotInt64;
}

}  // namespace espalier::mutation
