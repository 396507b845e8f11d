#pragma once
// Random numbers that are the same on every platform.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace espalier::contention {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  // Returns a number in from .. to.
  std::uint32_t number(std::uint32_t from, std::uint32_t to) {
    return from + static_cast<std::uint32_t>(random_() % (to - from + 1));
  }
  bool one_in(std::uint32_t many) { return number(1, many) == 1; }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[random_() % i]);
    }
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace espalier::contention
