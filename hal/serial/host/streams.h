#pragma once
// Carriers over streams of bytes. Host only.

#include <memory>
#include <string>

#include "hal/serial/host/carriers.h"

namespace espalier {

// On error returns null and sets `error`.
[[nodiscard]] std::unique_ptr<HostCarrier> open_tty(const std::string& path, std::uint32_t baud,
                                                    std::string& error);
// Listens at `path`.
[[nodiscard]] std::unique_ptr<HostCarrier> open_stream(const std::string& path, std::string& error);

}  // namespace espalier
