#include "firmware/bare/node_update.h"

#if ESPALIER_UPDATES

#include <cstring>

namespace espalier::bare {

static_assert(sizeof(agent::Update::order) == sizeof(UpdateOrder));

Status NodeUpdate::begin(const agent::Update& request, Machine& machine) {
  if (begun() || booted_.status != Status::kOk) return Status::kBadArgument;
  expectation_ = expectation();
  expectation_.node = booted_.image.node;
  SessionPlan plan;
  plan.endpoint = &links_;
  plan.machine = &machine;
  if (request.window != 0) plan.config.window = request.window;
  if (request.deadline_ns != 0) plan.config.deadline_ns = request.deadline_ns;
  plan.config.check_blocks = request.check_blocks != 0;
  plan.slots = &slots_;
  plan.image = &booted_.image;
  plan.expectation = &expectation_;
  plan.owner = this;
  plan.settles = request.settles != 0;
  plan.origin = request.origin;
  memcpy(&plan.order, request.order, sizeof plan.order);
  piece_bytes_ = plan.order.nodes * plan.order.piece_bytes;
  plan.memory.input = rooms_.input;
  plan.memory.input_bytes = rooms_.input_bytes;
  plan.memory.output = rooms_.output;
  plan.memory.output_bytes = rooms_.output_bytes;
  plan.memory.scratch = rooms_.scratch;
  plan.memory.scratch_bytes = rooms_.scratch_bytes;
  plan.memory.program = &memory_;
  const Status status =
      read_release_state(slots_, expectation_, booted_.image, memory_, plan.releases);
  if (status == Status::kOk) session_.emplace(plan);
  return status;
}

const Program* NodeUpdate::program(std::uint32_t index) {
  return index < booted_.count ? &booted_.programs[index] : nullptr;
}

const Program* NodeUpdate::load(const Image& image, std::uint32_t vote) {
  return bare::load(image, booted_) == Status::kOk ? program(vote) : nullptr;
}

Status NodeUpdate::piece(std::uint32_t offset) {
  if (piece_ == Piece::kArrived) {
    piece_ = Piece::kNone;
    return Status::kOk;
  }
  if (piece_ == Piece::kNone) {
    piece_ = Piece::kWanted;
    offset_ = offset;
  }
  return Status::kBusy;
}

}  // namespace espalier::bare

#endif
