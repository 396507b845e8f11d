#pragma once
// Finds programs as the shell does. Host only.

#include <string>

#include "espalier/base/result.h"

namespace espalier::tools {

// Returns the path of the executable file that execvp() would start for this name: the name itself
// if it has a slash, otherwise the first one in the folders of PATH. Empty: there is none.
[[nodiscard]] std::string find_program(const std::string& name);

// Returns the path of this process's program. Error: /proc is not mounted, which knows it.
[[nodiscard]] Result<std::string> own_program();

}  // namespace espalier::tools
