#pragma once
// Random numbers that are the same on every platform.

#include <cstdint>
#include <random>
#include <string>
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

// Returns a tree of random shape over ranks and routers, with some extra links.
inline std::string irregular_topology(Dice& dice, std::uint32_t ranks, std::uint32_t routers) {
  const std::uint32_t nodes = ranks + routers;
  std::string spec = "custom:name: \"irregular\" ranks: " + std::to_string(ranks) +
                     " routers: " + std::to_string(routers);
  std::vector<std::uint32_t> order(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) order[node] = node;
  dice.shuffle(order);
  std::vector<std::vector<bool>> joined(nodes, std::vector<bool>(nodes));
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    if (a == b || joined[a][b]) return;
    joined[a][b] = joined[b][a] = true;
    const std::uint32_t lanes = dice.one_in(3) ? dice.number(2, 3) : 1;
    spec += " link { from: " + std::to_string(a) + " to: " + std::to_string(b) +
            " capacity: " + std::to_string(lanes) + " }";
  };
  for (std::uint32_t i = 1; i < nodes; ++i) join(order[i], order[dice.number(0, i - 1)]);
  for (std::uint32_t more = dice.number(0, nodes); more > 0; --more) {
    join(dice.number(0, nodes - 1), dice.number(0, nodes - 1));
  }
  return spec;
}

}  // namespace espalier::contention
