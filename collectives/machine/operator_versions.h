#pragma once
// Versions of the built-in operators for groups of instruction sets. All give the same bits.
// combine() takes the best one that the processor has. Hosts only: boards have kBaseline alone.

#include <cstdint>

#include "espalier/collectives/machine/operators.h"

namespace espalier {

// In ascending order: a processor that has one has those before it.
enum class Version : std::uint8_t {
  kBaseline,  // the instruction set that the compiler builds for: x86-64 with SSE2, ARMv8-A, ...
  kV3,        // x86-64-v3: AVX2 and F16C
  kV4,        // x86-64-v4: AVX-512, only for operators and types where it is faster than kV3
};
inline constexpr Version kVersions[] = {Version::kBaseline, Version::kV3, Version::kV4};

// Returns "baseline", "x86-64-v3" or "x86-64-v4".
[[nodiscard]] const char* version_name(Version version);

// Returns the best version that the processor has, which combine() takes.
[[nodiscard]] Version best_version();

// combine() by one version, for tests and benchmarks. Requires can_combine(op), a built-in operator
// and version <= best_version().
void combine_by(Version version, const Operator& op, void* into, const void* a, const void* b,
                std::uint64_t count);

}  // namespace espalier
