// Implements firmware/bare/board.h for the nRF51822 of the micro:bit. Register names are those of
// its reference manual. It has one UART, which carries frames and, between them, the console.

#include "firmware/bare/board.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "boards/console_cable.h"
#include "boards/cortex-m/processor.h"
#include "boards/startup.h"
#include "espalier/hal/serial/carrier.h"

extern "C" {
// Parts of the flash, from the linker script.
extern const std::uint8_t public_key[], slots_begin[];
}

namespace espalier::board {
namespace {

using processor::at;

constexpr std::uint32_t kUart = 0x40002000, kTimer = 0x40008000, kRng = 0x4000d000,
                        kNvmc = 0x4001e000;
constexpr std::uint32_t kEnable = 0xe000e100, kPending = 0xe000e280;  // interrupts 0 to 31
constexpr std::uint32_t kUartInterrupt = 1u << 2, kTimerInterrupt = 1u << 8;

// The UART. Its receiver holds six bytes.
namespace uart {
constexpr std::uint32_t kStartRx = kUart + 0x000, kStartTx = kUart + 0x008,
                        kRxReady = kUart + 0x108, kTxReady = kUart + 0x11c,
                        kIntEnSet = kUart + 0x304, kOn = kUart + 0x500, kTxPin = kUart + 0x50c,
                        kRxPin = kUart + 0x514, kRxData = kUart + 0x518, kTxData = kUart + 0x51c,
                        kBaud = kUart + 0x524;
constexpr std::uint32_t kBaud19200 = 0x004ea000;

bool is_sending = false, has_printed = false;

void begin() {
  at(kTxPin) = 24;
  at(kRxPin) = 25;
  at(kBaud) = kBaud19200;
  at(kOn) = 4;
  at(kStartRx) = 1;
  at(kStartTx) = 1;
  at(kIntEnSet) = 1u << 2;  // a received byte
}

bool put(std::uint8_t byte) {
  if (is_sending && at(kTxReady) == 0) return false;
  at(kTxReady) = 0;
  at(kTxData) = byte;
  is_sending = true;
  return true;
}

bool get(std::uint8_t& byte) {
  if (at(kRxReady) == 0) return false;
  at(kRxReady) = 0;
  byte = static_cast<std::uint8_t>(at(kRxData));
  return true;
}
}  // namespace uart

using Cable = ConsoleCable<uart::put, uart::get, uart::has_printed>;

// TIMER0 counts microseconds, in 32 bits.
class Timers final : public Clock {
 public:
  void begin() {
    at(kTimer + 0x508) = 3;         // BITMODE: 32 bits
    at(kTimer + 0x510) = 4;         // PRESCALER: 16 MHz / 2^4
    at(kTimer + 0x000) = 1;         // START
    at(kTimer + 0x304) = 1u << 17;  // an interrupt of COMPARE[1]
    at(kEnable) = kUartInterrupt | kTimerInterrupt;
  }
  std::uint64_t now() override {
    at(kTimer + 0x040) = 1;  // CAPTURE[0]
    const std::uint32_t ticks = at(kTimer + 0x540);
    if (ticks < last_) ++wraps_;
    last_ = ticks;
    return (std::uint64_t{wraps_} << 32 | ticks) * kTickNs;
  }
  void wait(std::uint64_t until) override {
    const std::uint64_t begun = now();
    // Too short to be sure that the timer has not passed it.
    if (until < begun + 10 * kTickNs) return;
    // At least every second, as the clock must be read; divides in 32 bits.
    const std::uint64_t ns = until - begun;
    const std::uint32_t ticks =
        (ns < kLongestNs ? static_cast<std::uint32_t>(ns) : kLongestNs) / kTickNs;
    at(kTimer + 0x144) = 0;  // COMPARE[1]
    at(kTimer + 0x544) = last_ + ticks;
    at(kPending) = kUartInterrupt | kTimerInterrupt;
    asm volatile("dsb\n wfi" ::: "memory");
    at(kTimer + 0x144) = 0;
    at(kPending) = kUartInterrupt | kTimerInterrupt;
  }

 private:
  static constexpr std::uint32_t kTickNs = 1000, kLongestNs = 1'000'000'000;
  std::uint32_t last_ = 0, wraps_ = 0;
};

// The upper half of the flash, which its controller (NVMC) erases by page and writes by word. The
// processor stands still meanwhile.
class PageFlash final : public Flash {
 public:
  [[nodiscard]] const std::uint8_t* memory() const override { return slots_begin; }
  [[nodiscard]] std::uint32_t bytes() const override { return ESPALIER_FLASH_BYTES; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return ESPALIER_FLASH_BLOCK_BYTES; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return ESPALIER_FLASH_UNIT_BYTES; }
  [[nodiscard]] Status erase(std::uint32_t offset) override {
    set_mode(kErases);
    at(kNvmc + 0x508) = address(offset);  // ERASEPAGE
    set_mode(kReads);
    return has(offset, nullptr, ESPALIER_FLASH_BLOCK_BYTES);
  }
  [[nodiscard]] Status write(std::uint32_t offset, const std::uint8_t* bytes,
                             std::uint32_t size) override {
    set_mode(kWrites);
    for (std::uint32_t k = 0; k < size; k += sizeof(std::uint32_t)) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes + k, sizeof word);
      at(address(offset + k)) = word;
      await();
    }
    set_mode(kReads);
    return has(offset, bytes, size);
  }

 private:
  static constexpr std::uint32_t kReads = 0, kWrites = 1, kErases = 2;
  static std::uint32_t address(std::uint32_t offset) {
    return reinterpret_cast<std::uint32_t>(slots_begin) + offset;
  }
  static void await() {
    while ((at(kNvmc + 0x400) & 1) == 0) {  // READY
    }
  }
  static void set_mode(std::uint32_t mode) {
    await();
    at(kNvmc + 0x504) = mode;  // CONFIG
    await();
  }
  // The controller reports no failure: compares. bytes: null for erased ones.
  static Status has(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
    const volatile std::uint8_t* found = slots_begin + offset;
    for (std::uint32_t k = 0; k < size; ++k) {
      if (found[k] != (bytes != nullptr ? bytes[k] : 0xff)) return Status::kBackEnd;
    }
    return Status::kOk;
  }
};

struct Devices {
  Timers timers;
  Cable cable;
  ByteCarrier carrier{cable, kByteMtu};
  PageFlash slots;
  Authority authority = kTakesUnsigned;
};
// Constructed by begin(): with an initialiser it would be initialised memory, which no code here
// sets up before main().
alignas(Devices) std::byte devices_room[sizeof(Devices)];
Devices& devices() { return *std::launder(reinterpret_cast<Devices*>(devices_room)); }

// Whether the page of the public key is not erased.
bool has_key() {
  const volatile std::uint8_t* key = public_key;
  for (std::uint32_t k = 0; k < kPublicKeyBytes; ++k) {
    if (key[k] != 0xff) return true;
  }
  return false;
}

std::uint8_t random_byte() {
  at(kRng + 0x100) = 0;  // VALRDY
  at(kRng + 0x000) = 1;  // START
  while (at(kRng + 0x100) == 0) {
  }
  at(kRng + 0x004) = 1;  // STOP
  return static_cast<std::uint8_t>(at(kRng + 0x508));
}

}  // namespace

void begin() {
  Devices& board_devices = *new (devices_room) Devices;
  if constexpr (ESPALIER_SIGNED != 0) board_devices.authority = ed25519_authority(public_key);
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
// Two frames of 512 bytes take 540 ms at 19200 baud.
SerialPortConfig port_config() { return {1'000'000'000, 1}; }

std::uint32_t session() {
  std::uint32_t number = 0;
  for (int k = 0; k < 4; ++k) number = number << 8 | random_byte();
  return number | 1;
}

void restart() { processor::restart(); }

}  // namespace espalier::board

namespace espalier::startup {

void begin_console() { board::uart::begin(); }

// Nothing to return to: the console has said why.
void stop(int) {
  for (;;) asm volatile("wfi");
}

}  // namespace espalier::startup
