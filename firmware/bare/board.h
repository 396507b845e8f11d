#pragma once
// What a board brings to the bare-metal node: these functions, in its folder, and start-up code
// that calls main(). Freestanding. No interrupt handlers are needed: the node polls.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"
#include "espalier/hal/serial/serial_port.h"
#include "firmware/boot/flash.h"
#include "firmware/image/image.h"

namespace espalier::board {

// Makes the devices ready. Called once, first.
void begin();

// The folder's name in boards/: what its images say.
[[nodiscard]] const char* name();

// Read at least every second. Its wait() sleeps where the board can, and may sleep on only while no
// carrier has a frame.
[[nodiscard]] Clock& clock();

// Writes the text to the console, whatever time that takes. Not called while a collective runs.
void print(const char* text);

// Where the slots lie, all of it.
[[nodiscard]] Flash& flash();

// Whose images the board takes; null where it should check signatures and has no key: it then takes
// none.
[[nodiscard]] const Authority* authority();

// What all links and the agent's channel go over: device 0 of an image's link table.
[[nodiscard]] Carrier& carrier();
// How fast that is.
[[nodiscard]] SerialPortConfig port_config();

// A number other than 0, and other than at the last start: random, or counted in flash.
[[nodiscard]] std::uint32_t session();

// Starts again from reset.
[[noreturn]] void restart();

// For the boot report: bytes of static memory (stack not counted), of the memory that is there for
// both, and of text and constants.
struct Memory {
  std::uint32_t ram_used = 0;
  std::uint32_t ram_given = 0;
  std::uint32_t code_used = 0;
};
[[nodiscard]] Memory memory();

}  // namespace espalier::board
