#include "firmware/bare/node_spares.h"

#if ESPALIER_SPARES

#include "firmware/bare/agent.h"

namespace espalier::bare {

NodeSpares::NodeSpares(Booted& booted, SerialEndpoint& links) : booted_(booted), links_(links) {
  for (std::uint32_t i = 0; i < kMaxPrograms; ++i) {
    schedules_[i] = i < booted.image.programs ? booted.programs[i].schedule_digest : 0;
  }
}

SpareKinds NodeSpares::kinds() const {
  const Image& image = booted_.image;
  unsigned found = 0;
  for (std::uint32_t i = 0; i < image.spares; ++i) {
    const Loss::Kind kind = image.spare(i).loss.kind;
    if (kind == Loss::Kind::kLink) found |= static_cast<unsigned>(SpareKinds::kLinks);
    if (kind == Loss::Kind::kNode) found |= static_cast<unsigned>(SpareKinds::kNodes);
  }
  return static_cast<SpareKinds>(found);
}

const Program* NodeSpares::load(const Loss& loss) {
  const Image& image = booted_.image;
  spare_ = image.find_spare(loss);
  if (spare_ == image.spares) return nullptr;
  DecodedProgram& agreement = booted_.programs[0];
  return image.load_spare(spare_, 0, agreement) == Status::kOk ? &agreement : nullptr;
}

Endpoint* NodeSpares::open(std::uint32_t generation) {
  const std::uint32_t first = generation * links_.links();
  if (generation >= generations() || first + links_.links() > agent::kChannel) return nullptr;
  links_.reopen(static_cast<std::uint8_t>(first));
  return &links_;
}

// No error is possible: boot() decoded all of them.
void NodeSpares::load_programs() {
  const Image& image = booted_.image;
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    (void)image.load_spare(spare_, 1 + i, booted_.programs[i]);
  }
}

}  // namespace espalier::bare

#endif
