// Implements firmware/bare/board.h for the MPS2: the carrier is Ethernet or UART1, the console is
// UART0. The flash and the owner's key are files of the emulator's host.

#include "firmware/bare/board.h"

#include <cstddef>
#include <cstring>
#include <new>

#include "boards/cortex-m/processor.h"
#include "boards/mps2/flash.h"
#include "boards/mps2/fuses.h"
#include "boards/mps2/lan9118.h"
#include "boards/mps2/semihost.h"
#include "boards/mps2/uart.h"
#include "boards/startup.h"
#include "espalier/hal/serial/carrier.h"

namespace espalier::board {
namespace {

using processor::at;

// The first timer of the CMSDK's dual timer counts 32 bits down, at 25 MHz.
constexpr std::uint32_t kTimerLoad = 0x40002000, kTimerValue = 0x40002004,
                        kTimerControl = 0x40002008;
constexpr std::uint32_t kFreeRunning = 1u << 7 | 1u << 1;
constexpr std::uint32_t kTickNs = 40;

// The interrupts of the carriers are never taken, but a pending interrupt ends a sleep.
constexpr std::uint32_t kEnable = 0xe000e100, kPending = 0xe000e280;  // interrupts 0 to 31
constexpr std::uint32_t kUart1Interrupt = 1u << 2, kEthernetInterrupt = 1u << 13;

class Timers final : public Clock {
 public:
  void begin() {
    at(kTimerLoad) = 0xffffffff;
    at(kTimerControl) = kFreeRunning;
    at(kEnable) = kUart1Interrupt | kEthernetInterrupt;
  }
  std::uint64_t now() override {
    const std::uint32_t ticks = ~at(kTimerValue);
    if (ticks < last_) ++wraps_;
    last_ = ticks;
    return (std::uint64_t{wraps_} << 32 | ticks) * kTickNs;
  }
  void wait(std::uint64_t until) override;

 private:
  std::uint32_t last_ = 0, wraps_ = 0;
};

struct Devices {
  Timers timers;
#if ESPALIER_CARRIER_ETHERNET
  Lan9118 ethernet;
#else
  Uart1Stream uart1;
#endif
  EmulatedFlash slots;
  EmulatedFuses fuses;
  OneTimeCounter counter{fuses};
};
// Constructed by begin(): with an initialiser it would be initialised memory, which no code here
// sets up before main().
alignas(Devices) std::byte devices_room[sizeof(Devices)];
Devices& devices() { return *std::launder(reinterpret_cast<Devices*>(devices_room)); }

void Timers::wait(std::uint64_t until) {
  const std::uint64_t begun = now();
  if (until <= begun + kTickNs) return;
  // Divide in 32 bits: less than max_ns fits.
  const std::uint64_t max_ns = std::uint64_t{processor::kMaxSleepTicks} * kTickNs;
  const std::uint64_t ns = until - begun;
  processor::sleep(ns < max_ns ? static_cast<std::uint32_t>(ns) / kTickNs
                               : processor::kMaxSleepTicks);
#if ESPALIER_CARRIER_ETHERNET
  devices().ethernet.clear_interrupt();
#endif
  at(kPending) = kUart1Interrupt | kEthernetInterrupt;
}

// From -semihosting-config arg=...: the program's name, the flash's file, the file of the owner's
// public key, the file of the one-time bits (- for none), the file of the key of the links.
char words[512];
std::uint8_t key[kPublicKeyBytes];
Authority owner;
bool takes_images = false;
bool has_fuses = false;
#if ESPALIER_SERIAL_MAC
std::uint8_t key_of_links[16];
bool has_link_key = false;

// A key that cannot be read is not a link without one: the board stops.
void read_link_key(const char* path) {
  if (*path == '\0') return;
  const int file = semihost::open(path, semihost::Mode::kRead);
  has_link_key = file >= 0 && semihost::length(file) == static_cast<int>(sizeof key_of_links) &&
                 semihost::read(file, 0, key_of_links, sizeof key_of_links);
  if (has_link_key) {
    semihost::close(file);
    return;
  }
  print("link key: cannot use ");
  print(path);
  print("; expected a file of 16 bytes\n");
  semihost::exit(2);
}
#endif

// Ends `text` after its first word. Returns the rest.
char* cut(char* text) {
  while (*text != '\0' && *text != ' ') ++text;
  if (*text == ' ') *text++ = '\0';
  return text;
}

void open_flash(const char* path) {
  if (*path == '\0') {
    print("flash: no file; give -semihosting-config arg=NAME,arg=FLASH\n");
  } else if (!devices().slots.open(path)) {
    print("flash: cannot use ");
    print(path);
    print(", or it has another size than the board's description says\n");
  }
}

std::uint32_t base64(char letter) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::uint32_t value = 0;
  while (value < 64 && kLetters[value] != letter) ++value;
  return value;
}

// Reads a public key in one of the forms of firmware/image/key_file.h: 32 bytes, or PEM. The second
// line of PEM is, in base64, 12 bytes of RFC 8410's prefix and then the key.
bool parse_key(const char* text, std::uint32_t size) {
  constexpr std::uint32_t kPrefixLetters = 16;  // base64 of the 12 bytes
  if (size == sizeof key) {
    std::memcpy(key, text, sizeof key);
    return true;
  }
  std::uint32_t i = 0;
  while (i < size && text[i] != '\n') ++i;
  i += 1 + kPrefixLetters;
  std::uint32_t bits = 0, buffer = 0, count = 0;
  for (; i < size && count < sizeof key; ++i) {
    if (base64(text[i]) == 64) return false;
    buffer = buffer << 6 | base64(text[i]);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    key[count++] = static_cast<std::uint8_t>(buffer >> bits);
  }
  return count == sizeof key;
}

void read_key(const char* path) {
  if constexpr (ESPALIER_SIGNED == 0) {
    owner = kTakesUnsigned;
    takes_images = true;
    return;
  }
  char text[256];
  const int file = *path == '\0' ? -1 : semihost::open(path, semihost::Mode::kRead);
  if (file >= 0) {
    const int size = semihost::length(file);
    const auto bytes = static_cast<std::uint32_t>(size);
    takes_images = size > 0 && bytes <= sizeof text && semihost::read(file, 0, text, bytes) &&
                   parse_key(text, bytes);
    semihost::close(file);
  }
  if (takes_images) {
    owner = ed25519_authority(key);
  } else {
    print(
        "key: no public key, in PEM or of 32 bytes; give -semihosting-config "
        "arg=NAME,arg=FLASH,arg=KEY\n");
  }
}

}  // namespace

void begin() {
  Devices& board_devices = *new (devices_room) Devices;
  board_devices.timers.begin();
#if ESPALIER_CARRIER_ETHERNET
  board_devices.ethernet.begin();
#else
  kUart1.begin();
#endif
  if (!semihost::command_line(words, sizeof words)) words[0] = '\0';
  char* flash_path = cut(words);
  char* key_path = cut(flash_path);
  char* fuses_path = cut(key_path);
  [[maybe_unused]] char* link_key_path = cut(fuses_path);
  (void)cut(link_key_path);
  open_flash(flash_path);
  read_key(key_path);
#if ESPALIER_SERIAL_MAC
  read_link_key(link_key_path);
#endif
  has_fuses = *fuses_path != '\0' && *fuses_path != '-';
  if (has_fuses && !board_devices.fuses.open(fuses_path)) {
    print("fuses: cannot use ");
    print(fuses_path);
    print("; expected a file of 1 to 4096 bytes\n");
  }
}

Clock& clock() { return devices().timers; }
void print(const char* text) { kConsole.print(text); }
Flash& flash() { return devices().slots; }
SecurityCounter* security_counter() { return has_fuses ? &devices().counter : nullptr; }
const Authority* authority() { return takes_images ? &owner : nullptr; }

#if ESPALIER_CARRIER_ETHERNET
Carrier& carrier() { return devices().ethernet; }
SerialPortConfig port_config() { return {}; }
#else
Carrier& carrier() {
  static ByteCarrier bytes(devices().uart1, kByteMtu);
  return bytes;
}
// Under qemu a byte takes 40 us.
SerialPortConfig port_config() { return {100'000'000, 1}; }
#endif

std::uint32_t session() {
  // Nothing in the emulator differs between starts, so read random bytes of its host.
  std::uint32_t number = 0;
  const int file = semihost::open("/dev/urandom", semihost::Mode::kRead);
  if (file >= 0) {
    (void)semihost::read(file, 0, &number, sizeof number);
    semihost::close(file);
  }
  return number | 1;
}

#if ESPALIER_SERIAL_MAC
const std::uint8_t* link_key() { return has_link_key ? key_of_links : nullptr; }
#endif

void restart() {
  devices().slots.close();
  devices().fuses.close();
  processor::restart();
}

}  // namespace espalier::board

namespace espalier::startup {

void begin_console() { kConsole.begin(); }
void stop(int status) { semihost::exit(status); }

}  // namespace espalier::startup
