#pragma once
// Boots a Linux node from an image: an image file, or the slots of a flash file. Host only.

#include <cstdint>
#include <memory>
#include <string>

#include "firmware/boot/file_flash.h"
#include "firmware/boot/slots.h"
#include "firmware/image/key_file.h"
#include "firmware/node/boot_options.h"
#include "firmware/node/schedule_files.h"
#include "firmware/update/release.h"

namespace espalier::node {

// The image that a node booted. It must outlive the node's programs, which read tables in it.
struct BootedImage {
  std::string bytes;  // contents of an image file; empty for a flash
  FileFlash flash;
  std::unique_ptr<Slots> slots;  // the flash's slots; null for an image file
  Key key{};
  Authority authority;
  Expectation expectation;  // by which it was checked
  Image image;
  ReleaseState releases;  // `prepared`: of a flash only
  BootReport slot_report;
  // The boot report, in lines: which image booted from which file, and whether its signature was
  // checked.
  std::string report;
};

// Boots the image of `node` from options.image or options.flash and loads all of its programs.
// booted.report is filled in on errors, too. Error: the image is refused, with the file, the status
// by name and number, and what to do.
[[nodiscard]] Result<void> boot_image(const BootOptions& options, std::uint32_t node,
                                      BootedImage& booted, Programs& programs);

// Returns "FILE is refused: ", the status by name and number, and what to do.
[[nodiscard]] std::string refusal_text(const std::string& file, Status status);

}  // namespace espalier::node
