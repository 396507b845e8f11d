// Implements firmware/bare/board.h. Go through it from top to bottom, like board.textproto, and put
// in your own devices: each part says what the node needs of it.
//
// The devices here are those of Arm's Cortex-M System Design Kit (CMSDK), which qemu emulates, so
// that the copy runs before your board does. They need no interrupt handlers, and neither should
// yours: no interrupt is ever taken, but a pending one ends a sleep.

#include "firmware/bare/board.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "boards/cortex-m/processor.h"
#include "boards/startup.h"
#include "espalier/hal/serial/carrier.h"
#include "firmware/boot/start_counter.h"

namespace espalier::board {
namespace {

using processor::at;

// A UART. The rate of a real one is set here, to the `baud` of board.textproto.
class Uart {
 public:
  explicit constexpr Uart(std::uint32_t base) : base_(base) {}
  void begin() const {
    at(base_ + 0x10) = 16;  // divider
    at(base_ + 0x08) =
        1u | 1u << 1 | 1u << 3;  // sends, receives, and its interrupt is pending then
  }
  [[nodiscard]] bool put(std::uint8_t byte) const {
    if ((at(base_ + 0x04) & 1) != 0) return false;  // full
    at(base_) = byte;
    return true;
  }
  [[nodiscard]] bool get(std::uint8_t& byte) const {
    if ((at(base_ + 0x04) & 2) == 0) {
      at(base_ + 0x0c) = 2;  // clears the interrupt
      return false;
    }
    byte = static_cast<std::uint8_t>(at(base_));
    return true;
  }

 private:
  std::uint32_t base_;
};
constexpr Uart kConsole(0x40004000);
constexpr Uart kCable(0x40005000);  // to the gateway

class Cable final : public ByteStream {
 public:
  [[nodiscard]] bool put(std::uint8_t byte) override { return kCable.put(byte); }
  [[nodiscard]] bool get(std::uint8_t& byte) override { return kCable.get(byte); }
};

// A clock that counts nanoseconds and never goes back. The node reads it at least every second: a
// counter of 32 bits that wraps later than that is enough.
constexpr std::uint32_t kTickNs = 40;  // 25 MHz
constexpr std::uint32_t kTimerLoad = 0x40002000, kTimerValue = 0x40002004,
                        kTimerControl = 0x40002008;
constexpr std::uint32_t kEnable = 0xe000e100, kPending = 0xe000e280;  // interrupts 0 to 31
constexpr std::uint32_t kCableInterrupt = 1u << 2;

class Timer final : public Clock {
 public:
  void begin() {
    at(kTimerLoad) = 0xffffffff;
    at(kTimerControl) = 1u << 7 | 1u << 1;
    at(kEnable) = kCableInterrupt;
  }
  std::uint64_t now() override {
    const std::uint32_t ticks = ~at(kTimerValue);  // it counts down
    if (ticks < last_) ++wraps_;
    last_ = ticks;
    return (std::uint64_t{wraps_} << 32 | ticks) * kTickNs;
  }
  // May return at once, if the board need not save power.
  void wait(std::uint64_t until) override {
    const std::uint64_t begun = now();
    if (until <= begun + kTickNs) return;
    const std::uint64_t max_ns = std::uint64_t{processor::kMaxSleepTicks} * kTickNs;
    const std::uint64_t ns = until - begun;
    processor::sleep(ns < max_ns ? static_cast<std::uint32_t>(ns) / kTickNs
                                 : processor::kMaxSleepTicks);
    at(kPending) = kCableInterrupt;
  }

 private:
  std::uint32_t last_ = 0, wraps_ = 0;
};

// A flash of `blocks` blocks that begin at `cells`: here memory of the emulator, so erase() and
// write() change it directly. Yours call the flash controller, wait until it has ended, and return
// kBackEnd if it reports a failure. If the processor has a data cache, they also invalidate the
// lines of what they changed.
class MemoryFlash final : public Flash {
 public:
  MemoryFlash(std::uint8_t* cells, std::uint32_t bytes) : cells_(cells), bytes_(bytes) {}
  [[nodiscard]] const std::uint8_t* memory() const override { return cells_; }
  [[nodiscard]] std::uint32_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return ESPALIER_FLASH_BLOCK_BYTES; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return ESPALIER_FLASH_UNIT_BYTES; }
  [[nodiscard]] Status erase(std::uint32_t offset) override {
    memset(cells_ + offset, 0xff, ESPALIER_FLASH_BLOCK_BYTES);
    return Status::kOk;
  }
  [[nodiscard]] Status write(std::uint32_t offset, const std::uint8_t* bytes,
                             std::uint32_t size) override {
    memcpy(cells_ + offset, bytes, size);
    return Status::kOk;
  }

 private:
  std::uint8_t* cells_;
  std::uint32_t bytes_;
};

// The slots and their counters, as board.textproto says; then two blocks that count the starts.
constexpr std::uint32_t kCounterBytes = 2 * ESPALIER_FLASH_BLOCK_BYTES;
[[gnu::section(".slots")]] std::uint8_t cells[ESPALIER_FLASH_BYTES + kCounterBytes];

struct Devices {
  Timer timer;
  Cable cable;
  ByteCarrier carrier{cable, kByteMtu};
  MemoryFlash slots{cells, ESPALIER_FLASH_BYTES};
  MemoryFlash starts{cells + ESPALIER_FLASH_BYTES, kCounterBytes};
  Authority authority = kTakesUnsigned;
};
// Constructed by begin(): with an initialiser it would be initialised memory, which no code here
// sets up before main().
alignas(Devices) std::byte devices_room[sizeof(Devices)];
Devices& devices() { return *std::launder(reinterpret_cast<Devices*>(devices_room)); }

#if ESPALIER_SERIAL_MAC
// The secret of the links, 16 bytes that the gateway has, too (docs/firmware_in_c.md). Put it into
// the board in its factory instead.
constexpr std::uint8_t kLinkKey[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
#endif

#if ESPALIER_SIGNED
// The public key of the signer whose images the board accepts: the 32 bytes of `espalier image
// keygen`'s release.key.pub. A key of zeros accepts none.
constexpr std::uint8_t kKey[kPublicKeyBytes] = {};
#endif

}  // namespace

void begin() {
  Devices& board_devices = *new (devices_room) Devices;
#if ESPALIER_SIGNED
  board_devices.authority = ed25519_authority(kKey);
#endif
  board_devices.timer.begin();
  kCable.begin();
}

void print(const char* text) {
  for (; *text != '\0'; ++text) {
    while (!kConsole.put(static_cast<std::uint8_t>(*text))) {
    }
  }
}

Clock& clock() { return devices().timer; }
Flash& flash() { return devices().slots; }
// Fuses or the like keep someone who can write the flash from bringing back an older signed image
// (docs/images.md).
SecurityCounter* security_counter() { return nullptr; }
const Authority* authority() { return &devices().authority; }
Carrier& carrier() { return devices().carrier; }
// How long two of the longest frames take, and the answer: 100 ms at 115200 baud. One data frame in
// flight, because the device holds no more.
SerialPortConfig port_config() { return {200'000'000, 1}; }

// A board with a source of random numbers takes one from there.
std::uint32_t session() {
  std::uint32_t number = 0;
  (void)StartCounter(devices().starts, 0).next(number);
  return number;
}

#if ESPALIER_SERIAL_MAC
const std::uint8_t* link_key() { return kLinkKey; }
#endif

void restart() { processor::restart(); }

}  // namespace espalier::board

namespace espalier::startup {

void begin_console() { board::kConsole.begin(); }

// Nothing to return to: the console has said why.
void stop(int) {
  for (;;) asm volatile("wfi");
}

}  // namespace espalier::startup
