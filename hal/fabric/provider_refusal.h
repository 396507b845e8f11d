#pragma once
// The providers that offer everything and cannot serve nevertheless. Needs no libfabric.

#include <string>

#include "espalier/base/result.h"

namespace espalier::ofi {

struct ProviderRefusal {
  const char* name;      // as libfabric has it
  const char* reason;    // why the provider cannot serve
  const char* expected;  // what to use instead
};

// Returns the refusal of the provider with this name of libfabric's; null if it may serve.
[[nodiscard]] const ProviderRefusal* find_refusal(const std::string& name);
// Returns the refusal in one line, without the name.
[[nodiscard]] std::string refusal_text(const ProviderRefusal& refused);
// Error: the provider with this name, or NAME of "mem+NAME", has a refusal; in one line.
[[nodiscard]] Result<void> check_not_refused(const std::string& name);

}  // namespace espalier::ofi
