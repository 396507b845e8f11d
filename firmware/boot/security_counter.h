#pragma once
// A board's own store of the security counter, outside of its flash: one-time programmable bits, a
// TPM's counter, or the RPMB of an eMMC. Freestanding.
//
// Someone who can write the flash can erase a counter there. A counter that no write can lower
// keeps old images from booting even then (docs/images.md).

#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

class SecurityCounter {
 public:
  // Reads the counter; 0 if it was never raised. kBackEnd: the store failed; no image boots then.
  [[nodiscard]] virtual Status read(std::uint32_t& value) const = 0;
  // Returns the largest value that the store can hold.
  [[nodiscard]] virtual std::uint32_t max() const = 0;
  // Raises the counter to `value`, which is above the current one and at most max(). If power fails
  // meanwhile, the counter is the earlier value or `value`. kBackEnd: the store failed; the counter
  // is as after a power failure.
  [[nodiscard]] virtual Status raise(std::uint32_t value) = 0;

 protected:
  ~SecurityCounter() = default;  // never deleted through the base: no heap
};

// Bits that can be set and never cleared: fuses. All are 0 when the board leaves its factory.
class OneTimeBits {
 public:
  // Returns their number in bytes.
  [[nodiscard]] virtual std::uint32_t bytes() const = 0;
  // Reads the byte `index`, bit 0 being its lowest. kBackEnd: the device failed.
  [[nodiscard]] virtual Status read(std::uint32_t index, std::uint8_t& byte) const = 0;
  // Sets bit `bit % 8` of byte `bit / 8`. If power fails meanwhile, the bit is set or not; all
  // others are unchanged. kBackEnd: the device failed.
  [[nodiscard]] virtual Status burn(std::uint32_t bit) = 0;

 protected:
  ~OneTimeBits() = default;
};

// A counter in one-time programmable bits. Its value is 1 more than the number of the highest bit
// that is set, so raising it by any amount sets one bit.
class OneTimeCounter final : public SecurityCounter {
 public:
  // The bits must outlive the counter.
  constexpr explicit OneTimeCounter(OneTimeBits& bits) : bits_(bits) {}
  [[nodiscard]] Status read(std::uint32_t& value) const override;
  [[nodiscard]] std::uint32_t max() const override { return bits_.bytes() * 8; }
  [[nodiscard]] Status raise(std::uint32_t value) override;

 private:
  OneTimeBits& bits_;
};

}  // namespace espalier
