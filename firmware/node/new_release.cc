#include "firmware/node/new_release.h"

#include <algorithm>
#include <cstring>

#include "base/command_line.h"
#include "base/read_file.h"
#include "firmware/node/boot_image.h"

namespace espalier::node {

void NewRelease::fill_piece(std::uint32_t offset, std::span<std::uint8_t> input) const {
  std::fill(input.begin(), input.end(), std::uint8_t{0});
  for (std::size_t node = 0; node < images.size(); ++node) {
    const std::string& image = images[node];
    if (offset >= image.size()) continue;
    const std::size_t bytes = std::min<std::size_t>(order.piece_bytes, image.size() - offset);
    std::memcpy(input.data() + node * order.piece_bytes, image.data() + offset, bytes);
  }
}

Result<NewRelease> read_new_release(const std::string& images, std::uint32_t nodes,
                                    std::uint32_t origin, const Expectation& expectation,
                                    std::uint32_t piece_bytes) {
  NewRelease release;
  UpdateOrder& order = release.order;
  order.nodes = nodes;
  order.piece_bytes = piece_bytes;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    auto contents = read_file(with_node_number(images, node), FileKind::kImage);
    if (!contents) return fail("the new image: " + contents.error().message);
    order.image_bytes =
        std::max<std::uint32_t>(order.image_bytes, static_cast<std::uint32_t>(contents->size()));
    release.images.push_back(*std::move(contents));
  }
  const std::string& own = release.images[origin];
  Image image;
  Status status = check_image(reinterpret_cast<const std::uint8_t*>(own.data()), own.size(),
                              expectation, image);
  const auto memory = std::make_unique<DecodedProgram>();
  std::uint64_t digest = 0;
  if (status == Status::kOk) status = release_digest(image, *memory, digest);
  if (status != Status::kOk) return fail(refusal_text(with_node_number(images, origin), status));
  order.digest = digest;
  order.release = image.release;
  order.counter = image.counter;
  return release;
}

}  // namespace espalier::node
