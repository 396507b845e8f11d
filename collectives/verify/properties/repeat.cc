#include "collectives/verify/properties/repeat.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace espalier::verify {
namespace {

// Returns a * b. Sets `lost` if that overflows 64 bits.
std::int64_t times(std::int64_t a, std::int64_t b, bool& lost) {
  std::int64_t product = 0;
  lost = __builtin_mul_overflow(a, b, &product) || lost;
  return product;
}

Repeat checked(Repeat repeat, bool lost) {
  return lost || repeat.every <= 0 || repeat.every > kMaxEvery ? Repeat{0, 0} : repeat;
}

// Returns the repeat of floor(inner / div) mod mod, for an index `inner` that advances by inner.add
// every inner.every instances.
Repeat divided(Repeat inner, std::uint32_t div, std::uint32_t mod) {
  if (inner.every == 0) return inner;
  bool lost = false;
  const std::int64_t by = or_one(div);
  const std::int64_t rounds = by / std::gcd(inner.add, by);
  Repeat outer{times(inner.every, rounds, lost), times(inner.add, rounds, lost) / by};
  if (mod != 0) {
    outer.every = times(outer.every, mod / std::gcd(outer.add, std::int64_t{mod}), lost);
    outer.add = 0;
  }
  return checked(outer, lost);
}

}  // namespace

std::int64_t common_every(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const std::int64_t every = std::lcm(a, b);  // at most 2^40
  return every > kMaxEvery ? 0 : every;
}

// Estimates from above, in floating point. Rounding errors are far below 2^63 - 2^62.
bool is_exact(const Program& program, const Index& index, std::int64_t instances) {
  constexpr double kLimit = 0x1p62, kMaxEntry = 0x1p15;  // of a table
  const auto size = [](double value) { return std::abs(value); };
  const auto last = static_cast<double>(std::max<std::int64_t>(0, instances));
  double sum = size(index.off) + size(index.coef) * last;
  for (std::uint32_t k = 0; k < index.terms; ++k) {
    const Term& term = program.terms[index.first_term + k];
    const double inner = size(term.mul) * last + size(term.add);
    if (inner >= kLimit) return false;
    double value = inner / static_cast<double>(or_one(term.div)) + 1;
    if (term.mod != 0) value = std::min<double>(value, term.mod);
    if (term.table != 0) value = kMaxEntry;
    if (term.digits != 0) value = term.mod;
    sum += size(term.coef) * value;
  }
  return sum < kLimit;
}

Repeat repeat_of(const Program& program, const Index& index) {
  Repeat sum{1, index.coef};
  bool lost = false;
  for (std::uint32_t k = 0; k < index.terms; ++k) {
    const Term& term = program.terms[index.first_term + k];
    // The argument of digit reversal and of a table is below mod, so the term repeats.
    const Repeat one = divided({1, term.mul}, term.div, term.mod);
    const std::int64_t every = common_every(sum.every, one.every);
    if (every == 0) return {0, 0};
    const std::int64_t before = times(sum.add, every / sum.every, lost);
    const std::int64_t added = times(times(term.coef, one.add, lost), every / one.every, lost);
    lost = __builtin_add_overflow(before, added, &sum.add) || lost;
    sum.every = every;
  }
  return lost ? Repeat{0, 0} : divided(sum, index.div, index.mod);
}

}  // namespace espalier::verify
