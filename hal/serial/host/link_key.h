#pragma once
// The key of framed links in a file: its 16 bytes (`openssl rand -out FILE 16`). Host only.

#include <array>
#include <cstdint>
#include <string>

#include "espalier/base/result.h"
#include "espalier/internal/hal/serial/serial_link.h"

namespace espalier {

using LinkKey = std::array<std::uint8_t, 16>;

// Reads a key. Errors: the file cannot be read, does not have 16 bytes, or users other than its
// owner may access it.
[[nodiscard]] Result<LinkKey> read_link_key(const std::string& path);

// Returns one line on frames that an end named `who` ("the gateway", say) dropped on a link to
// `link`: the reason, and what to do.
[[nodiscard]] std::string rejection_text(const SerialRejections& rejections, const std::string& who,
                                         const std::string& link);

}  // namespace espalier
