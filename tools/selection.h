#pragma once
// Choosing what to compile by --topology, --collective, --algorithm and --root, and compiling it.

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "topology/topology.h"

namespace espalier::tools {

// As typed.
struct Selection {
  std::string topology, collective, algorithm, root = "0";
};

// Adds the four options; `required`: all but --root must be given.
void add_selection(CLI::App& command, Selection& selection, bool required);

struct Choice {
  std::unique_ptr<topology::Topology> topology;
  const Algorithm* algorithm = nullptr;
  Group group;
};

// Throws Failure (bad input) with a line that says what was wrong and what would be right.
[[nodiscard]] std::unique_ptr<topology::Topology> parse_topology(const std::string& spec);
[[nodiscard]] Choice choose(const Selection& selection);

// Writes rank's program into `program`. Throws Failure if the algorithm cannot do it.
void generate(const Choice& choice, std::uint32_t rank, Program& program);

// The schedule file: a descriptor for each rank. Throws Failure if the algorithm cannot do it.
[[nodiscard]] std::vector<std::uint8_t> compile(const Choice& choice);

}  // namespace espalier::tools
