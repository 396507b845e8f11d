#pragma once
// How a bare-metal node boots: from the newest valid slot of its flash, its programs decoded once
// into static memory. Freestanding.

#include "firmware/boot/slots.h"

namespace espalier::bare {

struct Booted {
  explicit Booted(DecodedProgram* room) : programs(room) {}
  Status status = Status::kNothingToBoot;  // kOk: there is an image
  BootReport report;
  Image image;
  DecodedProgram* programs;  // kMaxPrograms of them
};

// Slots::boot() with the board's name and key; kBadArgument: the board should have a key, and has
// none. An image boots only if all its programs load, into booted.programs, and all its links
// are of device 0 (kNoSuchPeer).
[[nodiscard]] Status boot(Slots& slots, Booted& booted);

// Installs `size` bytes as an image, into the slot that was not booted: the errors of Slots::begin,
// append and finish, and kBadArgument where the board should have a key, and has none. The programs
// of `booted` are gone after it, whatever it returns.
[[nodiscard]] Status install(Slots& slots, const std::uint8_t* bytes, std::uint32_t size,
                             Booted& booted);

// On the console: slots, image, programs, links, memory.
void print_report(const Booted& booted);

}  // namespace espalier::bare
