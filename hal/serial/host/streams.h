#pragma once
// Carriers over streams of bytes. Host only.

#include <memory>
#include <string>

#include "hal/serial/host/carriers.h"

namespace espalier {

// Opens the serial device at `path`.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_tty(const std::string& path,
                                                            std::uint32_t baud);
// Listens at `path`.
[[nodiscard]] Result<std::unique_ptr<HostCarrier>> open_stream(const std::string& path);

}  // namespace espalier
