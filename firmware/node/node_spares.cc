#include "firmware/node/node_spares.h"

namespace espalier::node {

NodeSpares::NodeSpares(const Image& image, Programs& programs, Generations& generations)
    : image_(image), programs_(programs), generations_(generations) {
  for (std::uint32_t i = 0; i < programs.count; ++i) {
    schedules_.push_back(programs.programs[i].schedule_digest);
  }
}

SpareKinds NodeSpares::kinds() const {
  unsigned found = 0;
  for (std::uint32_t i = 0; i < image_.spares; ++i) {
    const Loss::Kind kind = image_.spare(i).loss.kind;
    if (kind == Loss::Kind::kLink) found |= static_cast<unsigned>(SpareKinds::kLinks);
    if (kind == Loss::Kind::kNode) found |= static_cast<unsigned>(SpareKinds::kNodes);
  }
  return static_cast<SpareKinds>(found);
}

const Program* NodeSpares::load(const Loss& loss) {
  spare_ = image_.find_spare(loss);
  if (spare_ == image_.spares) return nullptr;
  const auto decoded = std::make_unique<DecodedProgram>();
  if (image_.load_spare(spare_, 0, *decoded) != Status::kOk) return nullptr;
  agreement_ = *decoded;
  return &agreement_;
}

Endpoint* NodeSpares::open(std::uint32_t generation) {
  if (generation >= generations_.count()) return nullptr;
  generation_ = generation;
  return &generations_.links(generation);
}

Status NodeSpares::load_programs() {
  for (std::uint32_t i = 0; i < programs_.count; ++i) {
    const Status status = image_.load_spare(spare_, 1 + i, programs_.programs[i]);
    if (status != Status::kOk && status != Status::kUnsupported) return status;
  }
  return Status::kOk;
}

}  // namespace espalier::node
