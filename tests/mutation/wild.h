#pragma once
// Schedule files with wild changes and correct checksums: what a damaged compiler might write. They
// are for tests of what opens and proves schedules.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::mutation {

// A small schedule of the catalogue.
struct WildBase {
  std::string name;
  std::string spec;  // of its topology
  std::uint64_t digest = 0;
  std::uint32_t ranks = 0;
  Programs programs;
};

// The schedules of all algorithms for some topologies of each kind, at most 16 KB each.
[[nodiscard]] std::vector<WildBase> wild_bases();

// Returns the file of these programs. Empty if a change left a program that no descriptor holds.
[[nodiscard]] std::vector<std::uint8_t> file_of(const WildBase& base, const Programs& programs);

// Returns the file with one to three changes: of fields, of numbers to any value, or of bytes of a
// descriptor. Empty if no file holds them.
[[nodiscard]] std::vector<std::uint8_t> any_mutant(const WildBase& base, std::mt19937_64& dice);

// Returns the programs with counts that change at a late N, up to 2^29: the same change in all.
[[nodiscard]] Programs late_mutant(const WildBase& base, std::mt19937_64& dice);

}  // namespace espalier::mutation
