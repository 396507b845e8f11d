#pragma once
// A call in 64 bits, which travels with the cause of a failure: so both ends of a link on which the
// calls differ can name them. Host only.

#include <cstdint>
#include <string>

#include "espalier/communicator.h"

namespace espalier::communicator {

// The word of a rank that ends the communicator. 0 is the word of a rank whose call is not known.
inline constexpr std::uint64_t kLeavingWord = 15;

// Returns the word of a call. `own_counts`: each rank has counts of its own, which may differ.
[[nodiscard]] std::uint64_t call_word(const Call& call, bool own_counts);

// Returns what a rank did: "called allreduce of 50 f32, sum". Accepts any word except 0.
[[nodiscard]] std::string call_text(std::uint64_t word);

// Returns what differs, if the texts of two words do not show it; otherwise nothing.
[[nodiscard]] std::string hidden_difference(std::uint64_t a, std::uint64_t b);

}  // namespace espalier::communicator
