#include "firmware/boot/security_counter.h"

namespace espalier {

Status OneTimeCounter::read(std::uint32_t& value) const {
  value = 0;
  for (std::uint32_t index = bits_.bytes(); index > 0; --index) {
    std::uint8_t byte = 0;
    const Status status = bits_.read(index - 1, byte);
    if (status != Status::kOk) return status;
    if (byte == 0) continue;
    std::uint32_t bit = 7;
    while ((byte >> bit & 1) == 0) --bit;
    value = (index - 1) * 8 + bit + 1;
    return Status::kOk;
  }
  return Status::kOk;
}

Status OneTimeCounter::raise(std::uint32_t value) {
  if (value == 0 || value > max()) return Status::kBadArgument;
  return bits_.burn(value - 1);
}

}  // namespace espalier
