#pragma once
// The placement of a schedule's ranks that --embedding asks for.

#include <optional>
#include <string>

#include "espalier/topology/embedding.h"
#include "planner/make/selection.h"

namespace espalier::planner {

// The embedding that the selection asks for, by default the best one known; nothing: each rank is
// on the node of its number. `selected` has its topology, algorithm and parameters. Throws Failure
// (bad input) if it is for something else.
[[nodiscard]] std::optional<topology::Embedding> choose_embedding(
    const Selection& selection, const SelectedAlgorithm& selected);

// Throws Failure (bad input) if no embedding has this name of --embedding, and no file that can be
// read.
void check_embedding_name(const std::string& name);

// "'NAME'" in a message; a path is shown as it was given.
[[nodiscard]] std::string quoted_name(const topology::Embedding& embedding);

}  // namespace espalier::planner
