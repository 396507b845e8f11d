#pragma once
// Test helpers: how much of their range tests go through.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace espalier {

// Whether a sanitizer makes this program several times slower: deadlines of its jobs are then
// longer.
[[nodiscard]] constexpr bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

// Whether to test the whole range instead of a sample (ESPALIER_WHOLE=1).
[[nodiscard]] inline bool whole() {
  const char* value = std::getenv("ESPALIER_WHOLE");
  return value != nullptr && std::strcmp(value, "0") != 0;
}

// Whether to test an even smaller sample, and print that (ESPALIER_SMALL_SAMPLE=1): under the
// sanitizers, in an emulator (`emulated` in a board's cross.ini), and in ./test.sh quick.
[[nodiscard]] inline bool small_sample() {
  static const bool said = [] {
    if (whole() || std::getenv("ESPALIER_SMALL_SAMPLE") == nullptr) return false;
    std::printf("a smaller sample, by ESPALIER_SMALL_SAMPLE\n");
    return true;
  }();
  return said;
}

// What draws the samples: ESPALIER_SEED, or a new number for each process, which is printed.
[[nodiscard]] inline std::uint64_t sample_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("ESPALIER_SEED");
    const std::uint64_t drawn =
        given == nullptr ? std::random_device{}() : std::strtoull(given, nullptr, 10);
    std::printf("a sample; ESPALIER_SEED=%llu repeats it\n",
                static_cast<unsigned long long>(drawn));
    return drawn;
  }();
  return seed;
}

// Whether to test case `number` of a list: one in `of` in turn, from one that the seed draws, or
// all (whole()).
[[nodiscard]] inline bool sampled(std::uint64_t number, std::uint64_t of) {
  return whole() || number % of == sample_seed() % of;
}

}  // namespace espalier
