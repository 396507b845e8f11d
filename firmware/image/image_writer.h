#pragma once
// Writes and signs images. Host only.

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "firmware/image/image.h"

namespace espalier {

struct ImageContent {
  std::string board;  // 1 to kBoardNameBytes-1 characters
  std::uint64_t topology_digest = 0;
  std::uint32_t node = 0;
  std::uint32_t release = 0;
  std::uint32_t counter = 0;
  std::vector<LinkRow> links = {};  // row k: physical link k
  struct Descriptor {
    Collective collective = Collective::kBroadcast;
    std::uint32_t root = 0;
    std::string algorithm;
    std::vector<std::uint8_t> bytes = {};
  };
  std::vector<Descriptor> programs = {};
  struct SelectionBytes {
    std::uint32_t first_program = 0;  // of its schedules, which are programs one after the other
    std::vector<std::uint8_t> bytes;
  };
  std::vector<SelectionBytes> selections = {};
  // What replaces the programs after a loss; in order of kind, then of the numbers.
  struct SpareDescriptors {
    Loss loss;
    std::uint64_t topology_digest = 0;  // of what is left
    // The agreement, then one for each program; without bytes if its root is lost.
    std::vector<Descriptor> programs;
  };
  std::vector<SpareDescriptors> spares = {};
};

// Writes the image, unsigned. Does not check the descriptors and selections. After an error `image`
// is unchanged: kBadArgument if the content breaks the layout's rules; kTooLarge if it exceeds
// kMaxLinks, kMaxPrograms, kMaxSelections, kMaxSpares or 4 GiB.
[[nodiscard]] Status write_image(const ImageContent& content, std::vector<std::uint8_t>& image);

// Returns the signature of `bytes`.
using Signer =
    std::function<std::array<std::uint8_t, kSignatureBytes>(std::span<const std::uint8_t> bytes)>;
// Signs an image of write_image(); replaces a signature. `sign` gets the kImageSignedBytes bytes to
// sign.
void sign_image(std::vector<std::uint8_t>& image, const Signer& sign);

}  // namespace espalier
