#pragma once
// The spares of an image: the programs with which its node goes on after a failure. A derived class
// opens the links. Freestanding; docs/spares.md.

#include "collectives/machine/recovery.h"
#include "collectives/schedule/node_programs.h"
#include "firmware/image/image.h"

#if ESPALIER_SPARES

namespace espalier {

class ImageSpares : public Spares {
 public:
  // node: the programs of the image; calls then name them by their digests of now. agreement:
  // memory for one, which may be that of a program. All must outlive the object.
  ImageSpares(const Image& image, NodePrograms& node, DecodedProgram& agreement)
      : image_(image), node_(node), agreement_(agreement) {
    for (std::uint32_t i = 0; i < node.count; ++i) {
      schedules_[i] = node.programs[i].schedule_digest;
    }
    node.schedules = schedules_;
  }
  ImageSpares(const ImageSpares&) = delete;
  ImageSpares& operator=(const ImageSpares&) = delete;

  // Whether the image has any.
  [[nodiscard]] bool any() const { return image_.spares != 0; }

  [[nodiscard]] SpareKinds kinds() const final {
    unsigned found = 0;
    for (std::uint32_t i = 0; i < image_.spares; ++i) {
      const Loss::Kind kind = image_.spare(i).loss.kind;
      if (kind == Loss::Kind::kLink) found |= static_cast<unsigned>(SpareKinds::kLinks);
      if (kind == Loss::Kind::kNode) found |= static_cast<unsigned>(SpareKinds::kNodes);
    }
    return static_cast<SpareKinds>(found);
  }

  [[nodiscard]] const Program* load(const Loss& loss) final {
    spare_ = image_.find_spare(loss);
    if (spare_ == image_.spares) return nullptr;
    return image_.load_spare(spare_, 0, agreement_) == Status::kOk ? &agreement_ : nullptr;
  }

  // After load(), once the agreement is complete: decodes the spare's programs in place of the
  // node's. A program whose root is lost has no ranks then. No other error is possible: load_all()
  // decoded all of them.
  void load_programs() {
    for (std::uint32_t i = 0; i < node_.count; ++i) {
      (void)image_.load_spare(spare_, 1 + i, node_.programs[i]);
    }
  }

 protected:
  ~ImageSpares() = default;

 private:
  const Image& image_;
  NodePrograms& node_;
  DecodedProgram& agreement_;
  std::uint32_t spare_ = 0;  // that load() chose
  std::uint64_t schedules_[kMaxPrograms] = {};
};

}  // namespace espalier

#endif
