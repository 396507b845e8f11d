#pragma once
// The spares of a Linux node: the programs of its image, and endpoints that were opened with the
// first one. Host only; docs/spares.md.

#include <cstdint>
#include <memory>
#include <vector>

#include "espalier/collectives/machine/recovery.h"
#include "firmware/image/image.h"
#include "firmware/node/generations.h"
#include "firmware/node/schedule_files.h"

namespace espalier::node {

class NodeSpares final : public Spares {
 public:
  // programs: those of the image. All must outlive the object.
  NodeSpares(const Image& image, Programs& programs, Generations& generations);

  // Returns the digest by which runs name program `index`, which stays the same.
  [[nodiscard]] std::uint64_t schedule(std::uint32_t index) const { return schedules_[index]; }
  // Returns the endpoint of the present generation.
  [[nodiscard]] GenerationLinks& endpoint() const { return generations_.links(generation_); }

  [[nodiscard]] SpareKinds kinds() const override;
  [[nodiscard]] const Program* load(const Loss& loss) override;
  [[nodiscard]] std::uint32_t generations() const override { return generations_.count(); }
  [[nodiscard]] Endpoint* open(std::uint32_t generation) override;
  // After load(), once the agreement is complete: puts the spare's programs in place of the node's.
  // One whose root is lost has no ranks then. Errors: those of Image::load_spare().
  [[nodiscard]] Status load_programs();

 private:
  const Image& image_;
  Programs& programs_;
  Generations& generations_;
  std::uint32_t generation_ = 0;
  std::uint32_t spare_ = 0;  // that load() chose
  std::vector<std::uint64_t> schedules_;
  OwnedProgram agreement_;
};

}  // namespace espalier::node
