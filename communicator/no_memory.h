#pragma once
// A rank that has no memory. Host only.

#include <string_view>

#include "espalier/base/result.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

// Returns `who` followed by "no memory", and by the limit of this process that explains it:
// "join(): no memory; an address-space limit of 20480000 bytes (ulimit -v)". If there is no memory
// for this text, only "no memory". Throws nothing.
[[nodiscard]] Error memory_error(std::string_view who);

class NoMemory {
 public:
  // Ends the communicator on all ranks, because this one has no memory for a call. Returns this
  // rank's error.
  [[nodiscard]] static Error end(const Communicator& communicator);
};

}  // namespace espalier::communicator
