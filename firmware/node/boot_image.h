#pragma once
// A Linux node that boots from an image: a file, or the slots of a flash that is a file. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "firmware/boot/file_flash.h"
#include "firmware/boot/slots.h"
#include "firmware/image/key_file.h"
#include "firmware/node/boot.h"

namespace espalier::node {

// What a node booted. Outlives its programs, which look things up in the image.
struct Booted {
  std::vector<std::uint8_t> bytes;  // of an image file
  FileFlash flash;
  std::unique_ptr<Slots> slots;  // of a flash; null: the image came from a file
  Key key{};
  Authority authority;
  Image image;
  BootReport slot_report;
  // The boot report: what booted, from where, whether its signature was checked; lines, each with
  // its end.
  std::string report;
};

// Boots node's image as `options` say, %r in their paths being its number, and loads all of its
// programs. False and one line in `error` where it is refused: which file, its status by name and
// number, and what would be right.
[[nodiscard]] bool boot_image(const Options& options, std::uint32_t node, Booted& booted,
                              Programs& programs, std::string& error);

}  // namespace espalier::node
