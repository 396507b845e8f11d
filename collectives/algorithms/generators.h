#pragma once
// The generators, one file an algorithm: steps, cost and source stand at the top of each. All of
// them: freestanding, O(log p) time, any number of ranks up to kMaxRanks; kBadArgument and
// kTooLarge as Builder::begin says.
//
// Where the data is. Broadcast: the root sends from INPUT and leaves its OUTPUT alone; every other
// rank receives into OUTPUT and forwards from there. Reduce: every rank reads INPUT, the root
// writes OUTPUT. Allreduce: every rank reads INPUT and ends with OUTPUT; Group.root is not used
// (the phases meet at rank 0). INPUT and OUTPUT may be the same memory.

#include "collectives/algorithms/algorithms.h"

namespace espalier {

// binomial.cc
[[nodiscard]] Status binomial_broadcast(const Group& group, std::uint32_t me, Program& out);
// chain.cc
[[nodiscard]] Status chain_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status chain_reduce(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status chain_allreduce(const Group& group, std::uint32_t me, Program& out);
// binary.cc
[[nodiscard]] Status binary_broadcast(const Group& group, std::uint32_t me, Program& out);
// two_tree.cc
[[nodiscard]] Status two_tree_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_reduce(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_allreduce(const Group& group, std::uint32_t me, Program& out);
// kUnsupported where the root leaves an odd number of ranks (p even).
[[nodiscard]] Status two_tree_mirror_broadcast(const Group& group, std::uint32_t me, Program& out);
// fractional.cc: kUnsupported where the group's run is above kMaxRun (fractional_tree.h), and
// fractional_simplex.cc, one send or receive a step
[[nodiscard]] Status fractional_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status fractional_reduce(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status fractional_simplex_broadcast(const Group& group, std::uint32_t me,
                                                  Program& out);

}  // namespace espalier
