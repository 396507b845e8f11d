#pragma once
// The spares of a Linux node: those of its image, over endpoints that were opened with the first
// one. Host only; docs/spares.md.

#include <cstdint>
#include <memory>
#include <utility>

#include "firmware/node/generations.h"
#include "firmware/node/schedule_files.h"
#include "firmware/spares/image_spares.h"

namespace espalier::node {

class NodeSpares final : public ImageSpares {
 public:
  // programs: those of the image. All must outlive the object.
  NodeSpares(const Image& image, Programs& programs, Generations& generations)
      : NodeSpares(image, programs, generations, std::make_unique<DecodedProgram>()) {}

  // Returns the endpoint of the present generation.
  [[nodiscard]] GenerationLinks& endpoint() const { return generations_.links(generation_); }

  [[nodiscard]] std::uint32_t generations() const override { return generations_.count(); }
  [[nodiscard]] Endpoint* open(std::uint32_t generation) override {
    if (generation >= generations_.count()) return nullptr;
    generation_ = generation;
    return &generations_.links(generation);
  }

 private:
  NodeSpares(const Image& image, Programs& programs, Generations& generations,
             std::unique_ptr<DecodedProgram> agreement)
      : ImageSpares(image, programs, *agreement),
        generations_(generations),
        agreement_(std::move(agreement)) {}

  Generations& generations_;
  std::uint32_t generation_ = 0;
  std::unique_ptr<DecodedProgram> agreement_;
};

}  // namespace espalier::node
