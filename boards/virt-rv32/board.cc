// Implements firmware/bare/board.h for the machine `virt` of qemu-system-riscv32. It has one UART,
// which carries frames and, between them, the console.

#include "firmware/bare/board.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "boards/console_cable.h"
#include "boards/riscv/processor.h"
#include "boards/startup.h"
#include "espalier/hal/serial/carrier.h"
#include "firmware/boot/start_counter.h"

extern "C" {
// The flash, from the linker script.
extern const std::uint8_t flash_begin[];
}

namespace espalier::board {
namespace {

using processor::at;
using processor::byte_at;

constexpr std::uint32_t kFinisher = 0x00100000;  // SiFive's test device: ends or resets qemu
constexpr std::uint32_t kFinished = 0x5555, kFailed = 0x3333, kResetNow = 0x7777;

// The UART, an NS16550A.
namespace uart {
constexpr std::uint32_t kData = 0x10000000, kInterrupts = 0x10000001, kFifos = 0x10000002,
                        kFormat = 0x10000003, kState = 0x10000005;
constexpr std::uint8_t kReceived = 1, kRoom = 1u << 5;            // in kState
constexpr std::uint8_t kEightBits = 3, kDividerAccess = 1u << 7;  // in kFormat
// On, empty; an interrupt for 14 bytes, or for fewer when no more arrive.
constexpr std::uint8_t kFifosOn = 3u << 6 | 7;
constexpr std::uint32_t kInterrupt = 10;

bool has_printed = false;

void begin() {
  byte_at(kFormat) = kDividerAccess;
  byte_at(kData) = 1;  // 230400 baud with a clock of 3.6864 MHz
  byte_at(kInterrupts) = 0;
  byte_at(kFormat) = kEightBits;
  byte_at(kFifos) = kFifosOn;
  byte_at(kInterrupts) = 1;  // of the receiver
}

bool is_waiting() { return (byte_at(kState) & kReceived) != 0; }

bool put(std::uint8_t byte) {
  if ((byte_at(kState) & kRoom) == 0) return false;
  byte_at(kData) = byte;
  return true;
}

bool get(std::uint8_t& byte) {
  if (!is_waiting()) return false;
  byte = byte_at(kData);
  return true;
}
}  // namespace uart

using Cable = ConsoleCable<uart::put, uart::get, uart::has_printed>;

// The processor's timer (CLINT) counts 64 bits at 10 MHz.
class Timers final : public Clock {
 public:
  void begin() {
    set_alarm(~std::uint64_t{0});
    at(kPriorities + 4 * uart::kInterrupt) = 1;
    at(kEnabled) = 1u << uart::kInterrupt;
    at(kThreshold) = 0;
  }
  std::uint64_t now() override { return ticks() * kTickNs; }
  void wait(std::uint64_t until) override {
    const std::uint64_t begun = ticks();
    // The interrupt of bytes that were received before may be over.
    if (until <= begun * kTickNs || uart::is_waiting()) return;
    const std::uint64_t ns = until - begun * kTickNs;
    // Divides in 32 bits.
    set_alarm(begun + (ns < kLongestNs ? static_cast<std::uint32_t>(ns) : kLongestNs) / kTickNs);
    processor::sleep();
    set_alarm(~std::uint64_t{0});
    if (const std::uint32_t interrupt = at(kClaimed); interrupt != 0) at(kClaimed) = interrupt;
  }

 private:
  static constexpr std::uint32_t kTickNs = 100, kLongestNs = 1'000'000'000;
  static constexpr std::uint32_t kTime = 0x0200bff8, kAlarm = 0x02004000;
  // The controller of the devices' interrupts (PLIC), for hart 0 in machine mode.
  static constexpr std::uint32_t kPriorities = 0x0c000000, kEnabled = 0x0c002000,
                                 kThreshold = 0x0c200000, kClaimed = 0x0c200004;

  static std::uint64_t ticks() {
    for (;;) {
      const std::uint32_t high = at(kTime + 4), low = at(kTime);
      if (high == at(kTime + 4)) return std::uint64_t{high} << 32 | low;
    }
  }
  // The interrupt is pending from then on. No value in between is earlier.
  static void set_alarm(std::uint64_t ticks) {
    at(kAlarm) = ~0u;
    at(kAlarm + 4) = static_cast<std::uint32_t>(ticks >> 32);
    at(kAlarm) = static_cast<std::uint32_t>(ticks);
  }
};

// Blocks of the CFI flash with Intel's commands: two chips of 16 bits side by side, which get each
// command together. The program runs elsewhere: while the flash erases or writes, it reads as its
// status.
class CfiFlash final : public Flash {
 public:
  CfiFlash(std::uint32_t begin, std::uint32_t bytes) : begin_(begin), bytes_(bytes) {}
  [[nodiscard]] const std::uint8_t* memory() const override { return flash_begin + begin_; }
  [[nodiscard]] std::uint32_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return ESPALIER_FLASH_BLOCK_BYTES; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return ESPALIER_FLASH_UNIT_BYTES; }
  [[nodiscard]] Status erase(std::uint32_t offset) override {
    const std::uint32_t block = address(offset);
    at(block) = both(kErase);
    at(block) = both(kConfirm);
    const bool good = ended(block);
    at(block) = both(kRead);
    for (std::uint32_t k = 0; good && k < ESPALIER_FLASH_BLOCK_BYTES; k += kWordBytes) {
      if (at(block + k) != ~0u) return Status::kBackEnd;
    }
    return good ? Status::kOk : Status::kBackEnd;
  }
  [[nodiscard]] Status write(std::uint32_t offset, const std::uint8_t* bytes,
                             std::uint32_t size) override {
    const std::uint32_t begin = address(offset);
    bool good = true;
    for (std::uint32_t k = 0; good && k < size; k += kWordBytes) {
      at(begin + k) = both(kWrite);
      at(begin + k) = word(bytes + k);
      good = ended(begin + k);
    }
    at(begin) = both(kRead);
    for (std::uint32_t k = 0; good && k < size; k += kWordBytes) {
      good = at(begin + k) == word(bytes + k);
    }
    return good ? Status::kOk : Status::kBackEnd;
  }

 private:
  static constexpr std::uint32_t kWordBytes = 4;
  static constexpr std::uint32_t kErase = 0x20, kConfirm = 0xd0, kWrite = 0x40, kClear = 0x50,
                                 kRead = 0xff;
  static constexpr std::uint32_t kReady = 0x80, kErrors = 0x3a;  // of the status
  static constexpr std::uint32_t both(std::uint32_t command) { return command << 16 | command; }
  static std::uint32_t word(const std::uint8_t* bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  [[nodiscard]] std::uint32_t address(std::uint32_t offset) const {
    return reinterpret_cast<std::uint32_t>(memory()) + offset;
  }
  // Waits for both chips. False: one of them reports an error, which is cleared.
  static bool ended(std::uint32_t address) {
    std::uint32_t status = 0;
    while (((status = at(address)) & both(kReady)) != both(kReady)) {
    }
    const bool good = (status & both(kErrors)) == 0;
    if (!good) at(address) = both(kClear);
    return good;
  }

  std::uint32_t begin_, bytes_;
};

// The flash: slots and their counters, as board.textproto says; two blocks that count the starts;
// the public key.
constexpr std::uint32_t kStarts = ESPALIER_FLASH_BYTES,
                        kStartsBytes = 2 * ESPALIER_FLASH_BLOCK_BYTES,
                        kKey = kStarts + kStartsBytes;

struct Devices {
  Timers timers;
  Cable cable;
  ByteCarrier carrier{cable, kByteMtu};
  CfiFlash slots{0, ESPALIER_FLASH_BYTES};
  CfiFlash starts{kStarts, kStartsBytes};
  Authority authority = kTakesUnsigned;
};
// Constructed by begin(): with an initialiser it would be initialised memory, which no code here
// sets up before main().
alignas(Devices) std::byte devices_room[sizeof(Devices)];
Devices& devices() { return *std::launder(reinterpret_cast<Devices*>(devices_room)); }

// Whether the place of the public key is neither erased nor all zeros.
bool has_key() {
  const volatile std::uint8_t* key = flash_begin + kKey;
  if (key[0] != 0 && key[0] != 0xff) return true;
  for (std::uint32_t k = 1; k < kPublicKeyBytes; ++k) {
    if (key[k] != key[0]) return true;
  }
  return false;
}

}  // namespace

void begin() {
  Devices& board_devices = *new (devices_room) Devices;
  if constexpr (ESPALIER_SIGNED != 0) {
    board_devices.authority = ed25519_authority(flash_begin + kKey);
  }
  board_devices.timers.begin();
}

void print(const char* text) { Cable::print(text); }

Clock& clock() { return devices().timers; }
Flash& flash() { return devices().slots; }
SecurityCounter* security_counter() { return nullptr; }
const Authority* authority() {
  return ESPALIER_SIGNED == 0 || has_key() ? &devices().authority : nullptr;
}
Carrier& carrier() { return devices().carrier; }
// Two frames of 512 bytes take 45 ms at 230400 baud.
SerialPortConfig port_config() { return {100'000'000, 1}; }

std::uint32_t session() {
  std::uint32_t number = 0;
  (void)StartCounter(devices().starts, 0).next(number);
  return number;
}

void restart() {
  at(kFinisher) = kResetNow;
  for (;;) {
  }
}

}  // namespace espalier::board

namespace espalier::startup {

void begin_console() { board::uart::begin(); }

void stop(int status) {
  processor::at(board::kFinisher) =
      status == 0 ? board::kFinished : static_cast<std::uint32_t>(status) << 16 | board::kFailed;
  for (;;) {
  }
}

}  // namespace espalier::startup
