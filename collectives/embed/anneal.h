#pragma once
// Simulated annealing, the same from the same seed. Host only.

#include <cmath>
#include <cstdint>
#include <random>

#include "collectives/embed/placement.h"

namespace espalier::embed {

inline constexpr std::int64_t kExcessTransferEnergy = 64;  // of one excess transfer; a hop has 1

// std::mt19937_64 with our own distributions, because the standard's depend on the library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  // Returns 0 .. sides-1; sides >= 1.
  [[nodiscard]] std::uint32_t roll(std::uint32_t sides) {
    return static_cast<std::uint32_t>(((engine_() >> 32) * sides) >> 32);
  }
  // Returns a number > 0 and <= 1.
  [[nodiscard]] double share() { return static_cast<double>((engine_() >> 11) + 1) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

// Cooling from `hot` to `cold`, in the energy's units, over `moves` moves.
struct Cooling {
  double hot = 1, cold = 1;
  std::uint64_t moves = 0;
};

// Requirements on Model: std::int64_t energy(); bool move(Dice&) makes a move, or returns false if
// it is impossible; void undo() reverts the last move; bool done() ends the search. Returns false
// if search.is_late() ended it.
template <class Model>
bool anneal(Model& model, Dice& dice, const Cooling& cooling, const Search& search) {
  constexpr std::uint64_t kTold = 4096;
  double heat = cooling.hot;
  std::int64_t energy = model.energy();
  for (std::uint64_t move = 0; move < cooling.moves && !model.done(); ++move) {
    if (move % kTold == 0) {
      const double share = static_cast<double>(move) / static_cast<double>(cooling.moves);
      heat = cooling.hot * std::pow(cooling.cold / cooling.hot, share);
      if (search.progress) search.progress(share);
      if (search.is_late && search.is_late()) return false;
    }
    if (!model.move(dice)) continue;
    const std::int64_t next = model.energy();
    const auto worse = static_cast<double>(next - energy);
    if (worse <= 0 || worse < -heat * std::log(dice.share())) {
      energy = next;
    } else {
      model.undo();
    }
  }
  return true;
}

}  // namespace espalier::embed
