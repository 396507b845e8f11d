#include "firmware/node/update_server.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/read_file.h"

namespace espalier::node {
namespace {

using control::UpdateEnd;

constexpr std::uint32_t kUpdatePieceBytes = 4096;
constexpr std::uint32_t kUpdateScratchBytes = 1u << 22;
constexpr std::uint64_t kUpdateWait = 1'000'000;  // ns

// The node's program of this index, or null.
const Program* update_program(const Programs& programs, std::uint32_t index) {
  return index < programs.count ? &programs.programs[index] : nullptr;
}

}  // namespace

Result<NewRelease> read_new_release(const BootOptions& options, const BootedImage& booted,
                                    std::uint32_t nodes) {
  NewRelease release;
  UpdateOrder& order = release.order;
  order.nodes = nodes;
  order.piece_bytes = kUpdatePieceBytes;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    auto contents = read_file(with_node_number(options.new_images, node));
    if (!contents) return fail("the new image: " + contents.error().message);
    order.image_bytes =
        std::max<std::uint32_t>(order.image_bytes, static_cast<std::uint32_t>(contents->size()));
    release.images.push_back(*std::move(contents));
  }
  const std::string& own = release.images[booted.image.node];
  Image image;
  Status status = check_image(reinterpret_cast<const std::uint8_t*>(own.data()), own.size(),
                              booted.expectation, image);
  const auto memory = std::make_unique<DecodedProgram>();
  std::uint64_t digest = 0;
  if (status == Status::kOk) status = release_digest(image, *memory, digest);
  if (status != Status::kOk) {
    return fail(refusal_text(with_node_number(options.new_images, booted.image.node), status));
  }
  order.digest = digest;
  order.release = image.release;
  order.counter = image.counter;
  return release;
}

UpdateServer::UpdateServer(const BootOptions& options, Endpoint& endpoint, BootedImage& booted,
                           Programs& programs, const NewRelease* release, int channel)
    : options_(options),
      endpoint_(endpoint),
      booted_(booted),
      programs_(programs),
      release_(release),
      channel_(channel),
      roll_call_(endpoint, program_nodes(programs.programs[0]), booted.releases),
      program_(std::make_unique<DecodedProgram>()) {}

int UpdateServer::serve() {
  if (!control::send(channel_, control::Ready{})) return 1;
  while (take_packet()) {
    step();
    const bool works = state_ == State::kUpdates && update_->next_deadline() == 0;
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
  if (packet.packet == control::Packet::kRun && state_ == State::kAwaitsRun) {
    report_.number = packet.run_request.number;
    report_.status = Status::kBusy;
    report_.begin_ns = monotonic_ns();
    state_ = State::kJoins;
  }
  if (packet.packet == control::Packet::kAsk && state_ != State::kAwaitsRun) send_report();
  return packet.packet != control::Packet::kQuit;
}

void UpdateServer::send_report() const {
  control::Report report = report_;
  if (update_ && state_ == State::kUpdates) report.completed = update_->written();
  (void)control::send(channel_, report);
}

void UpdateServer::report(UpdateEnd end, Status status, const Cause& cause) {
  state_ = State::kReported;
  report_.blocks = static_cast<std::uint32_t>(end);
  report_.status = status;
  report_.cause = cause;
  report_.end_ns = monotonic_ns();
  if (update_) report_.completed = update_->written();
  send_report();
}

void UpdateServer::step() {
  if (state_ == State::kJoins) {
    const Status status = roll_call_.poll();
    if (status == Status::kOk) return resolve_releases();
    if (status != Status::kBusy) report(UpdateEnd::kNone, status, roll_call_.cause());
  } else if (state_ == State::kUpdates) {
    const Status status = update_->poll();
    if (status != Status::kBusy) end_update(status);
  } else if (has_machine_) {
    (void)machine_.poll();  // the peers may still wait for answers
  } else {
    (void)roll_call_.poll();
  }
}

// The releases of all nodes are known.
void UpdateServer::resolve_releases() {
  Status status = Status::kOk;
  switch (resolve(roll_call_.view(), booted_.releases)) {
    case Resolution::kRefuse: return report(UpdateEnd::kMixed, Status::kMismatch, {});
    case Resolution::kSwitch:
      status = booted_.slots->switch_over();
      if (status != Status::kOk) break;
      return report(UpdateEnd::kRestarts, Status::kOk, {});
    case Resolution::kRestart: return report(UpdateEnd::kRestarts, Status::kOk, {});
    case Resolution::kWithdraw: status = booted_.slots->withdraw(); break;
    case Resolution::kRun: break;
  }
  Cause cause;
  cause.status = status;
  cause.detector = cause.peer = endpoint_.node();
  if (status != Status::kOk) return report(UpdateEnd::kNone, status, cause);
  if (options_.settles) return report(UpdateEnd::kSettled, Status::kOk, {});
  begin_update();
}

void UpdateServer::begin_update() {
  MachineConfig config;
  config.window = options_.window;
  config.deadline_ns = options_.deadline_ns;
  config.check_blocks = options_.check_blocks;
  UpdatePrograms found;
  Status status = find_update_programs(booted_.image, options_.update_origin, found);
  if (status == Status::kOk) {
    status = machine_.init(endpoint_, config);
    has_machine_ = status == Status::kOk;
  }
  if (status != Status::kOk) {
    // All nodes have the same programs, and none begins.
    Cause cause;
    cause.status = status;
    cause.detector = cause.peer = endpoint_.node();
    return report(UpdateEnd::kRefused, status, cause);
  }
  output_.resize(kUpdatePieceBytes);
  if (release_ != nullptr) input_.resize(std::size_t{release_->order.nodes} * kUpdatePieceBytes);
  scratch_.resize(kUpdateScratchBytes / sizeof(Line));
  UpdateMemory memory;
  memory.input = input_.data();
  memory.input_bytes = static_cast<std::uint32_t>(input_.size());
  memory.output = output_.data();
  memory.output_bytes = kUpdatePieceBytes;
  memory.scratch = scratch_[0].bytes;
  memory.scratch_bytes = kUpdateScratchBytes;
  memory.program = program_.get();
  const DecodedUpdatePrograms decoded{update_program(programs_, found.broadcast),
                                      update_program(programs_, found.scatter),
                                      update_program(programs_, found.vote)};
  update_.emplace(machine_, *booted_.slots, booted_.image, booted_.expectation, decoded, memory,
                  *this, release_ != nullptr ? release_->order : UpdateOrder());
  state_ = State::kUpdates;
}

void UpdateServer::end_update(Status status) {
  const Update::Refusal& refusal = update_->refused();
  Cause cause = machine_.cause();
  if (refusal.any) {
    cause.status = refusal.status;
    cause.detector = cause.peer = refusal.node;
    return report(UpdateEnd::kRefused, refusal.status, cause);
  }
  if (status == Status::kOk) return report(UpdateEnd::kSwitched, status, {});
  if (cause.status == Status::kOk) {  // of this node alone
    cause.status = status;
    cause.detector = cause.peer = endpoint_.node();
  }
  report(UpdateEnd::kNone, status, cause);
}

const Program* UpdateServer::load(const Image& image, std::uint32_t vote) {
  return load_all(&programs_, image) == Status::kOk ? update_program(programs_, vote) : nullptr;
}

Status UpdateServer::piece(std::uint32_t offset) {
  std::fill(input_.begin(), input_.end(), std::uint8_t{0});
  for (std::size_t node = 0; node < release_->images.size(); ++node) {
    const std::string& image = release_->images[node];
    if (offset >= image.size()) continue;
    const std::size_t bytes = std::min<std::size_t>(kUpdatePieceBytes, image.size() - offset);
    std::memcpy(input_.data() + node * kUpdatePieceBytes, image.data() + offset, bytes);
  }
  return Status::kOk;
}

}  // namespace espalier::node
