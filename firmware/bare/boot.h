#pragma once
// Boots a bare-metal node from the newest valid slot of its flash, and decodes its programs once
// into static memory. Freestanding.

#include "firmware/boot/slots.h"
#include "firmware/image/load_all.h"

namespace espalier::bare {

// The node that boots: what its image says, and the programs of it, decoded.
struct Booted : NodePrograms {
  // room: kMaxPrograms programs.
  explicit Booted(DecodedProgram* room) {
    programs = room;
#if ESPALIER_MAX_SELECTIONS > 0
    selections = selection_room;
#endif
  }
  Booted(const Booted&) = delete;
  Booted& operator=(const Booted&) = delete;

  Status status = Status::kNothingToBoot;  // kOk: an image booted
  BootReport report;
  Image image;
#if ESPALIER_MAX_SELECTIONS > 0
  NodeSelection selection_room[kMaxSelections] = {};
#endif
};

// Calls Slots::boot() with the board's name and key, and returns its status. kBadArgument: the
// board must have a key and has none. An image boots only if all its programs load into
// booted.programs and all its links use device 0 (otherwise kNoSuchPeer).
[[nodiscard]] Status boot(Slots& slots, Booted& booted);

// Returns what boot() expects of an image.
[[nodiscard]] Expectation expectation();

#if ESPALIER_UPDATES
// Decodes the programs of another image that boot() would accept, in place of those of `booted`.
// After an error it has none.
[[nodiscard]] Status load(const Image& image, Booted& booted);
#endif

// Installs `size` bytes as an image into the slot that did not boot. Errors: those of
// Slots::begin(), append() and finish(); kBadArgument if the board must have a key and has none.
// Makes the programs of `booted` invalid, even on an error.
[[nodiscard]] Status install(Slots& slots, const std::uint8_t* bytes, std::uint32_t size,
                             Booted& booted);

// Prints slots, image, programs, links and memory on the console.
void print_report(const Booted& booted);

}  // namespace espalier::bare
