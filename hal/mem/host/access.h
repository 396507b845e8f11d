#pragma once
// Whether processes of one user can map each other's memory. Host only.

#include <string>

namespace espalier::mem {

// Returns why other processes of this user cannot map memory of this one, or why it has none to
// share: "this process is not dumpable ..."; empty: they can.
[[nodiscard]] std::string sharing_refusal();

// Returns a text that is equal in processes that may map each other's memory, as far as users,
// groups and capabilities decide: "1000/1000".
[[nodiscard]] std::string credentials_text();

}  // namespace espalier::mem
