#include "firmware/boot/start_counter.h"

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

constexpr std::uint32_t kNumberBytes = 8;  // a number and its complement

}  // namespace

std::uint32_t StartCounter::entry_bytes() const {
  const std::uint32_t unit = flash_.unit_bytes();
  return (kNumberBytes + unit - 1) / unit * unit;
}

const std::uint8_t* StartCounter::entry(std::uint32_t block, std::uint32_t index) const {
  ESPALIER_ASSERT(block < 2 && index < entries());
  return flash_.memory() + offset_ + block * flash_.block_bytes() + index * entry_bytes();
}

std::uint32_t StartCounter::highest(std::uint32_t block, std::uint32_t& first_free) const {
  std::uint32_t found = 0;
  first_free = 0;
  for (std::uint32_t index = 0; index < entries(); ++index) {
    const std::uint8_t* bytes = entry(block, index);
    for (std::uint32_t k = 0; k < entry_bytes(); ++k) {
      if (bytes[k] != 0xff) first_free = index + 1;
    }
    const std::uint32_t number = load_u32(bytes);
    if (number == ~load_u32(bytes + 4) && number > found) found = number;
  }
  ESPALIER_ASSERT(first_free <= entries());
  return found;
}

Status StartCounter::next(std::uint32_t& number) {
  std::uint32_t first_free[2];
  const std::uint32_t numbers[2] = {highest(0, first_free[0]), highest(1, first_free[1])};
  const std::uint32_t newest = numbers[1] > numbers[0] ? 1 : 0;
  number = numbers[newest] + 1;
  ESPALIER_ASSERT(number != 0);
  // The other block is erased before it is used, whatever it has.
  const bool fits = numbers[newest] != 0 && first_free[newest] < entries();
  const std::uint32_t block = fits ? newest : 1 - newest;
  if (!fits && first_free[block] != 0) {
    const Status status = flash_.erase(offset_ + block * flash_.block_bytes());
    if (status != Status::kOk) return status;
  }
  const std::uint32_t index = fits ? first_free[block] : 0;
  std::uint8_t bytes[kMaxFlashUnit + kNumberBytes];
  for (std::uint8_t& byte : bytes) byte = 0xff;
  store_u32(bytes, number);
  store_u32(bytes + 4, ~number);
  const std::uint32_t at = offset_ + block * flash_.block_bytes() + index * entry_bytes();
  ESPALIER_ASSERT(index < entries() && at % flash_.unit_bytes() == 0);
  return flash_.write(at, bytes, entry_bytes());
}

}  // namespace espalier
