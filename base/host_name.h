#pragma once
// Names of hosts. Host only.

#include <string_view>

namespace espalier {

// Whether this is a name or an address of a host, perhaps behind USER@: letters, digits and .-_:@%.
// It goes to the remote shell's command, where a leading '-' would be an option.
[[nodiscard]] bool is_host_name(std::string_view name);

}  // namespace espalier
