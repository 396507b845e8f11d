#include "firmware/bare/board.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "firmware/bare/hosted/hosted.h"
#include "firmware/boot/file_bits.h"
#include "firmware/boot/file_flash.h"
#include "firmware/image/key_file.h"
#include "hal/serial/host/carriers.h"
#include "hal/serial/host/link_key.h"

namespace espalier::board {
namespace {

struct Hosted {
  HostedOptions options;
  FileFlash flash;
  FileBits bits;
  OneTimeCounter counter{bits};
  HostClock clock;
  std::unique_ptr<HostCarrier> carrier;
  LinkKey link_key = {};
  std::array<std::uint8_t, kPublicKeyBytes> key = {};
  Authority authority;
};

Hosted& hosted() {
  static Hosted it;
  return it;
}

}  // namespace

Result<void> open_hosted(const HostedOptions& options) {
  Hosted& it = hosted();
  it.options = options;
  if (!options.takes_unsigned) {
    const Result<Key> key = read_public_key(options.public_key);
    if (!key) return fail(key.error());
    it.key = *key;
    it.authority = ed25519_authority(it.key.data());
  }
  if (auto opened = it.flash.open(options.flash, FlashShape{}, false); !opened) return opened;
  if (!options.otp.empty()) {
    if (auto opened = it.bits.open(options.otp); !opened) return opened;
  }
  if (!options.link_key.empty()) {
    const Result<LinkKey> key = read_link_key(options.link_key);
    if (!key) return fail(key.error());
    it.link_key = *key;
  }
  auto carrier = open_board_carrier(options.device);
  if (!carrier) return fail(carrier.error());
  it.carrier = *std::move(carrier);
  it.clock.add(*it.carrier);
  return {};
}

void begin() {}
const char* name() { return hosted().options.board.c_str(); }
Clock& clock() { return hosted().clock; }

void print(const char* text) {
  std::fputs(text, stdout);
  std::fflush(stdout);
}

Flash& flash() { return hosted().flash; }
SecurityCounter* security_counter() {
  return hosted().options.otp.empty() ? nullptr : &hosted().counter;
}
const Authority* authority() { return &hosted().authority; }
Carrier& carrier() { return *hosted().carrier; }
SerialPortConfig port_config() { return {}; }

std::uint32_t session() { return std::random_device{}() | 1; }

const std::uint8_t* link_key() {
  return hosted().options.link_key.empty() ? nullptr : hosted().link_key.data();
}

void restart() {
  execv("/proc/self/exe", hosted().options.arguments);
  std::perror("espalier-bare-hosted: cannot restart");
  std::_Exit(1);
}

// A process has none of these sizes.
Memory memory() { return {}; }

}  // namespace espalier::board
