#pragma once
// Finds programs as the shell does. Host only.

#include <string>

namespace espalier::tools {

// Returns the path of the executable file that execvp() would start for this name: the name itself
// if it has a slash, otherwise the first one in the folders of PATH. Empty: there is none.
[[nodiscard]] std::string find_program(const std::string& name);

}  // namespace espalier::tools
