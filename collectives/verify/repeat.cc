#include "collectives/verify/repeat.h"

#include <cstdlib>
#include <numeric>

namespace espalier::verify {
namespace {

std::int64_t or_one(std::uint32_t divisor) { return divisor == 0 ? 1 : divisor; }

// After how many instances floor(inner / div) mod mod goes on by the same, where `inner` goes on by
// `inner.add` every `inner.every`.
Repeat divided(Repeat inner, std::uint32_t div, std::uint32_t mod) {
  const std::int64_t by = or_one(div);
  const std::int64_t times = by / std::gcd(inner.add, by);
  Repeat outer{inner.every * times, inner.add * times / by};
  if (mod == 0) return outer;
  outer.every *= mod / std::gcd(outer.add, std::int64_t{mod});
  outer.add = 0;
  return outer;
}

bool found(const Repeat& repeat) { return repeat.every > 0 && repeat.every <= kMostEvery; }

}  // namespace

std::int64_t common_every(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  const std::int64_t every = std::lcm(a, b);  // at most 2^40
  return every > kMostEvery ? 0 : every;
}

Repeat repeat_of(const Program& program, const Index& index) {
  Repeat sum{1, index.coef};
  for (std::uint32_t k = 0; k < index.terms; ++k) {
    const Term& term = program.terms[index.first_term + k];
    // Digits are reversed of what is below mod: it repeats, or with every 0 it is not known.
    const Repeat one = divided({1, term.mul}, term.div, term.mod);
    if (!found(one) || (term.digits != 0 && one.add != 0)) return {0, 0};
    const std::int64_t every = common_every(sum.every, one.every);
    if (every == 0) return {0, 0};
    sum = {every, sum.add * (every / sum.every) + term.coef * one.add * (every / one.every)};
  }
  const Repeat whole = divided(sum, index.div, index.mod);
  return found(whole) ? whole : Repeat{0, 0};
}

}  // namespace espalier::verify
