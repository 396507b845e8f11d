#pragma once
// The functions that a board provides to the bare-metal node. They are in the board's folder, with
// start-up code that calls main(). Freestanding. No interrupt handlers are needed: the node polls.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"
#include "espalier/internal/hal/serial/serial_port.h"
#include "firmware/boot/flash.h"
#include "firmware/boot/security_counter.h"
#include "firmware/image/image.h"

namespace espalier::board {

// Initialises the devices. Called once, before all other functions.
void begin();

// Returns the name of the folder in boards/, which is the board's name in images.
[[nodiscard]] const char* name();

// Returns the clock. The node reads it at least every second. Its wait() sleeps if the board can,
// and must return once a carrier has a frame.
[[nodiscard]] Clock& clock();

// Writes `text` to the console and returns when it is written. Not called while a collective runs.
void print(const char* text);

// Returns the flash, all of which holds the slots and their counters.
[[nodiscard]] Flash& flash();

// Returns the board's own store of the security counter: one-time programmable bits, a TPM's
// counter or an RPMB. Null if the board has none. The counter is then in flash, and someone who can
// write the flash can make older signed images boot (docs/images.md).
[[nodiscard]] SecurityCounter* security_counter();

// Returns whose images the board accepts. Null if the board must check signatures and has no key:
// it then accepts none.
[[nodiscard]] const Authority* authority();

// Returns the carrier of all links and of the agent's channel: device 0 of an image's link table.
[[nodiscard]] Carrier& carrier();
// Returns the parameters of that carrier's speed.
[[nodiscard]] SerialPortConfig port_config();

// Returns a number that is not 0 and differs from that of the last start: random, or counted in
// flash. Called twice if the links have a key: no two calls may then return the same pair.
[[nodiscard]] std::uint32_t session();

#if ESPALIER_SERIAL_MAC
// Returns the key of all links and of the agent's channel: 16 bytes that only this board and its
// gateway have. It is not derived from the job's secret, which boards do not get: it is put into
// the board with its firmware or in its factory, like the key of authority(), but must stay
// secret. Null: the links have none (docs/firmware_in_c.md).
[[nodiscard]] const std::uint8_t* link_key();
#endif

// Resets the board.
[[noreturn]] void restart();

// Sizes in bytes, for the boot report.
struct Memory {
  std::uint32_t ram_used = 0;   // static memory, without the stack
  std::uint32_t ram_given = 0;  // memory reserved for static memory and the stack
  std::uint32_t code_used = 0;  // text and constants
};
[[nodiscard]] Memory memory();

}  // namespace espalier::board
