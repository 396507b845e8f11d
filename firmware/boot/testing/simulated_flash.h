#pragma once
// For tests: a flash whose power fails at a chosen operation. It rejects operations that a real
// flash cannot perform.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "firmware/boot/flash.h"
#include "firmware/boot/security_counter.h"

namespace espalier {

// The part of the interrupted operation that takes effect.
enum class Tear { kNothing, kHalf, kSomeBits, kAll };
inline constexpr Tear kTears[] = {Tear::kNothing, Tear::kHalf, Tear::kSomeBits, Tear::kAll};

struct PowerLost {};

class SimulatedFlash final : public Flash {
 public:
  SimulatedFlash(std::uint32_t blocks, std::uint32_t block_bytes, std::uint32_t unit_bytes)
      : block_bytes_(block_bytes), unit_bytes_(unit_bytes), memory_(blocks * block_bytes, 0xff) {}

  const std::uint8_t* memory() const override { return memory_.data(); }
  std::uint32_t bytes() const override { return static_cast<std::uint32_t>(memory_.size()); }
  std::uint32_t block_bytes() const override { return block_bytes_; }
  std::uint32_t unit_bytes() const override { return unit_bytes_; }

  Status erase(std::uint32_t offset) override {
    if (offset % block_bytes_ != 0 || offset >= bytes())
      return wrong("erases something that is not a block");
    const std::vector<std::uint8_t> after(block_bytes_, 0xff);
    return change(offset, after.data(), block_bytes_);
  }
  Status write(std::uint32_t offset, const std::uint8_t* from, std::uint32_t size) override {
    if (offset % unit_bytes_ != 0 || size % unit_bytes_ != 0 || offset + size > bytes()) {
      return wrong("writes partial units");
    }
    for (std::uint32_t k = 0; k < size; k += unit_bytes_) {
      const auto unit = memory_.begin() + offset + k;
      if (std::any_of(unit, unit + unit_bytes_, [](std::uint8_t byte) { return byte != 0xff; })) {
        return wrong("writes a unit that is not erased");
      }
      const Status status = change(offset + k, from + k, unit_bytes_);
      if (status != Status::kOk) return status;
    }
    return Status::kOk;
  }

  // Makes power fail at the operation after the next `operations` ones; -1: never.
  void cut(int operations, Tear tear, std::uint32_t seed = 0) {
    until_cut_ = operations;
    tear_ = tear;
    random_.seed(seed);
  }
  [[nodiscard]] int operations() const { return operations_; }
  // For other devices with the same power: counts an operation, and returns the part of it that
  // takes effect. Sets `cut` if power fails then.
  Tear count_operation(bool& cut) {
    ++operations_;
    cut = until_cut_ == 0;
    if (until_cut_ >= 0) --until_cut_;
    return cut ? tear_ : Tear::kAll;
  }
  std::mt19937& random() { return random_; }
  // Every erase and write fails while set.
  bool worn_out = false;
  // The bytes, for a test to damage.
  std::vector<std::uint8_t>& spoil() { return memory_; }

 private:
  static Status wrong(const char* what) {
    ADD_FAILURE() << "flash: the caller " << what;
    return Status::kBackEnd;
  }
  Status change(std::uint32_t offset, const std::uint8_t* after, std::uint32_t size) {
    if (worn_out) return Status::kBackEnd;
    bool cut = false;
    const Tear tear = count_operation(cut);
    std::uint8_t* target = memory_.data() + offset;
    if (tear == Tear::kAll) std::memcpy(target, after, size);
    if (tear == Tear::kHalf) {
      const std::uint32_t half = size / 2;
      const bool second = random_() % 2 == 1;
      std::memcpy(target + (second ? half : 0), after + (second ? half : 0), half);
    }
    for (std::uint32_t k = 0; tear == Tear::kSomeBits && k < size; ++k) {
      const auto some = static_cast<std::uint8_t>(random_());
      target[k] = static_cast<std::uint8_t>((target[k] & ~some) | (after[k] & some));
    }
    if (cut) throw PowerLost{};
    return Status::kOk;
  }

  std::uint32_t block_bytes_, unit_bytes_;
  std::vector<std::uint8_t> memory_;
  int operations_ = 0;
  int until_cut_ = -1;
  Tear tear_ = Tear::kAll;
  std::mt19937 random_;
};

// One-time programmable bits with the power of a flash. `bits` are one per entry: those of a board,
// which outlive its boots.
class SimulatedBits final : public OneTimeBits {
 public:
  SimulatedBits(SimulatedFlash& power, std::vector<bool>& bits) : power_(power), bits_(bits) {}
  std::uint32_t bytes() const override { return static_cast<std::uint32_t>(bits_.size() / 8); }
  Status read(std::uint32_t index, std::uint8_t& byte) const override {
    byte = 0;
    for (std::uint32_t bit = 0; bit < 8; ++bit) {
      if (bits_.at(index * 8 + bit)) byte = static_cast<std::uint8_t>(byte | 1u << bit);
    }
    return fails ? Status::kBackEnd : Status::kOk;
  }
  Status burn(std::uint32_t bit) override {
    if (fails) return Status::kBackEnd;
    bool cut = false;
    const Tear tear = power_.count_operation(cut);
    const bool torn = tear == Tear::kHalf || tear == Tear::kSomeBits;
    if (tear == Tear::kAll || (torn && power_.random()() % 2 == 0)) bits_.at(bit) = true;
    if (cut) throw PowerLost{};
    return Status::kOk;
  }

  bool fails = false;  // the device is broken

 private:
  SimulatedFlash& power_;
  std::vector<bool>& bits_;
};

}  // namespace espalier
