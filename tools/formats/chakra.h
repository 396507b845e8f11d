#pragma once
// Chakra execution traces: the input of astra-sim, a file per node. docs/formats.md. Host only.

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/formats/sized.h"

namespace espalier::tools::formats {

// Returns the bytes of a node's file: the metadata, then a trace node per operation, with the
// operation's position as its id and Operation::after as its data dependencies. A message's tag is
// its number on its link.
[[nodiscard]] std::string write_chakra(const SizedOperations& sized, std::uint32_t node,
                                       std::string_view collective);

}  // namespace espalier::tools::formats
