#pragma once
// Puts each node's part of a plan into a program, in a way of the node's own: strides, actions,
// instances, paces, rows.

#include <cstdint>
#include <optional>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "tests/random/plan.h"

namespace espalier::random {

// How a program's actions advance from round to round: the nodes of a schedule differ in it.
struct Rounds {
  std::vector<std::int64_t> strides;    // blocks of a round
  std::vector<std::int64_t> instances;  // of a round, times stride 720 / blocks
  std::vector<std::int64_t> paces;      // steps that a pace adds per round; 0: no pace
  friend bool operator==(const Rounds&, const Rounds&) = default;
};

struct Encoded {
  Programs programs;
  std::vector<Rounds> rounds;  // by node
  [[nodiscard]] bool differ() const;
};

// Nothing if a program is too large for its tables.
[[nodiscard]] std::optional<Encoded> encode(const Plan& plan, Dice& dice);

}  // namespace espalier::random
