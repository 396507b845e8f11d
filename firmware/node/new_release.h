#pragma once
// The images of a new release, on the node from which `espalier update` sends them, or on the
// gateway of that board. Host only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "firmware/image/image.h"
#include "firmware/update/update.h"

namespace espalier::node {

struct NewRelease {
  std::vector<std::string> images;  // contents, by node
  UpdateOrder order;

  // Writes bytes `offset` to `offset` + order.piece_bytes - 1 of all images to `input`, image by
  // image, and zeros after an image's end. input.size(): nodes * piece_bytes.
  void fill_piece(std::uint32_t offset, std::span<std::uint8_t> input) const;
};
// Reads the images of `nodes` nodes at the path `images`, in which %r is the node's number, and
// checks node `origin`'s own as `expectation` says. Error: a file that cannot be read, or an image
// that the origin refuses.
[[nodiscard]] Result<NewRelease> read_new_release(const std::string& images, std::uint32_t nodes,
                                                  std::uint32_t origin,
                                                  const Expectation& expectation,
                                                  std::uint32_t piece_bytes);

}  // namespace espalier::node
