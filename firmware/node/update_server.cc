#include "firmware/node/update_server.h"

#include "base/clock.h"
#include "firmware/image/load_all.h"

namespace espalier::node {
namespace {

constexpr std::uint32_t kUpdateScratchBytes = 1u << 22;
constexpr std::uint64_t kUpdateWait = 1'000'000;  // ns

}  // namespace

UpdateServer::UpdateServer(const BootOptions& options, Endpoint& endpoint, BootedImage& booted,
                           Programs& programs, const NewRelease* release, int channel)
    : endpoint_(endpoint),
      programs_(programs),
      release_(release),
      channel_(channel),
      program_(std::make_unique<DecodedProgram>()) {
  SessionPlan plan;
  plan.endpoint = &endpoint;
  plan.machine = &machine_;
  plan.config.window = options.window;
  plan.config.deadline_ns = options.deadline_ns;
  plan.config.check_blocks = options.check_blocks;
  plan.slots = booted.slots.get();
  plan.image = &booted.image;
  plan.expectation = &booted.expectation;
  plan.releases = booted.releases;
  plan.owner = this;
  plan.settles = options.settles;
  plan.origin = options.update_origin;
  if (!plan.settles) plan.memory = make_memory();
  if (release != nullptr) plan.order = release->order;
  session_.emplace(plan);
}

UpdateMemory UpdateServer::make_memory() {
  output_.resize(kUpdatePieceBytes);
  if (release_ != nullptr) input_.resize(std::size_t{release_->order.nodes} * kUpdatePieceBytes);
  scratch_.resize(kUpdateScratchBytes / sizeof(Line));
  return {.input = input_.data(),
          .input_bytes = static_cast<std::uint32_t>(input_.size()),
          .output = output_.data(),
          .output_bytes = kUpdatePieceBytes,
          .scratch = scratch_[0].bytes,
          .scratch_bytes = kUpdateScratchBytes,
          .program = program_.get()};
}

int UpdateServer::serve() {
  if (!control::send(channel_, control::Ready{})) return 1;
  while (take_packet()) {
    if (runs_) step();
    const bool works = runs_ && !session_->ended() && session_->next_deadline() == 0;
    if (!works) endpoint_.wait(endpoint_.now() + kUpdateWait);
  }
  return 0;
}

bool UpdateServer::take_packet() {
  control::Any packet;
  int descriptor = -1;
  switch (control::receive(channel_, packet, descriptor, 0)) {
    case control::Received::kNothing: return true;
    case control::Received::kEnd:
    case control::Received::kBad: return false;
    case control::Received::kPacket: break;
  }
  if (packet.packet == control::Packet::kRun && !runs_) {
    report_.number = packet.run_request.number;
    report_.status = Status::kBusy;
    report_.begin_ns = monotonic_ns();
    runs_ = true;
  }
  if (packet.packet == control::Packet::kAsk && runs_) send_report();
  return packet.packet != control::Packet::kQuit;
}

void UpdateServer::step() {
  const bool had_ended = session_->ended();
  session_->poll();
  if (had_ended || !session_->ended()) return;
  report_.blocks = static_cast<std::uint32_t>(session_->end());
  report_.status = session_->status();
  report_.cause = session_->cause();
  report_.end_ns = monotonic_ns();
  send_report();
}

void UpdateServer::send_report() {
  report_.completed = session_->written();
  (void)control::send(channel_, report_);
}

const Program* UpdateServer::program(std::uint32_t index) {
  return index < programs_.count ? &programs_.programs[index] : nullptr;
}

const Program* UpdateServer::load(const Image& image, std::uint32_t vote) {
  return load_all(image, programs_) == Status::kOk ? program(vote) : nullptr;
}

Status UpdateServer::piece(std::uint32_t offset) {
  release_->fill_piece(offset, input_);
  return Status::kOk;
}

}  // namespace espalier::node
