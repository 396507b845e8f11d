#pragma once
// An operator of a program that does not commute, and what it makes of values that are known.

#include <cstdint>

#include "espalier/collectives/machine/operators.h"

namespace espalier::communicator::testing {

// The map x -> a * x + b modulo 2^64; f (+) g is x -> g(f(x)).
struct Affine {
  std::uint64_t a = 1, b = 0;
  bool operator==(const Affine&) const = default;
};

inline Affine joined(const Affine& f, const Affine& g) { return {f.a * g.a, f.b * g.a + g.b}; }

inline void join_all(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  for (std::uint64_t i = 0; i < count; ++i) {
    static_cast<Affine*>(into)[i] =
        joined(static_cast<const Affine*>(a)[i], static_cast<const Affine*>(b)[i]);
  }
}

inline constexpr Operator kJoin = {.op = Op::kCustom,
                                   .type = Type::kCustom,
                                   .commutes = false,
                                   .element_bytes = sizeof(Affine),
                                   .custom_id = 7,
                                   .custom = join_all};

inline Affine value_of(std::uint64_t rank, std::uint64_t i) {
  return {2 * rank + 3, 31 * rank + i};
}

// Element i of the reduction of ranks 0 .. end-1.
inline Affine reduced(std::uint32_t end, std::uint64_t i) {
  Affine sum;
  for (std::uint32_t rank = 0; rank < end; ++rank) sum = joined(sum, value_of(rank, i));
  return sum;
}

}  // namespace espalier::communicator::testing
