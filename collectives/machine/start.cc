// Starting a collective: everything is checked before anything is done.

#include <algorithm>

#include "collectives/machine/machine.h"

namespace espalier {
namespace {

struct Uses {
  bool input = false, output = false, combines = false;
};

void use(bool present, const Place& place, Uses& uses) {
  if (!present) return;
  uses.input = uses.input || place.buffer == espalier_Buffer_INPUT;
  uses.output = uses.output || place.buffer == espalier_Buffer_OUTPUT;
}

Uses uses_of(const Program& program) {
  Uses uses;
  for (std::uint32_t at = 0; at < program.actions_count; ++at) {
    const Action& action = program.actions[at];
    use(action.has_into, action.into, uses);
    use(action.has_a, action.a, uses);
    use(action.has_b, action.b, uses);
    uses.combines = uses.combines || action.kind == espalier_Kind_COMBINE;
  }
  return uses;
}

bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
  const auto from_a = reinterpret_cast<std::uintptr_t>(a);
  const auto from_b = reinterpret_cast<std::uintptr_t>(b);
  if (a_bytes == 0 || b_bytes == 0) return false;
  return from_a <= from_b ? from_b - from_a < a_bytes : from_a - from_b < b_bytes;
}

}  // namespace

std::uint64_t scratch_needed(const Program& program, const Layout& layout) {
  return program.scratch_blocks * slot_bytes(layout);
}

Status Machine::start(const Program& program, const Buffers& buffers, const Operator& given,
                      std::uint64_t count) {
  if (endpoint_ == nullptr) return Status::kBadArgument;
  if (watch_.failed()) return watch_.cause().status;
  if (running_) return Status::kBadArgument;
  // A barrier's combines say whom a rank has heard of, which its messages' coming says already.
  const Operator op = program.collective == espalier_Collective_BARRIER ? Operator() : given;
  Status status = check_operator(program, op);
  if (status != Status::kOk) return status;
  Layout layout;
  status = make_layout(program, count, element_bytes(op), layout);
  if (status != Status::kOk) return status;
  Region regions[Endpoint::kMaxRegions];
  std::uint32_t regions_count = 0;
  status = check_buffers(program, buffers, layout, regions, regions_count);
  if (status == Status::kOk) status = map_links(program);
  // A receive is L-1 steps after its send, which waits for it.
  const std::uint32_t window = window_of(program);
  if (status == Status::kOk && program.latency_ticks > window) status = Status::kUnsupported;
  if (status == Status::kOk) status = endpoint_->prepare(regions, regions_count);
  if (status != Status::kOk) return status;

  program_ = &program;
  buffers_ = buffers;
  layout_ = layout;
  slot_bytes_ = slot_bytes(layout);
  input_ = buffer_span(program, layout, espalier_Buffer_INPUT);
  output_ = buffer_span(program, layout, espalier_Buffer_OUTPUT);
  op_ = op;
  window_ = window;
  room_ = std::max<std::uint32_t>(1, std::min(kRing, endpoint_->window()));
  running_ = true;
  moved_ = true;
  if (log_ != nullptr) log_->begin();
  start_tags(op);
  timetable_.start(program, layout.blocks);
  watch_.start(tags_.word());
  return Status::kOk;
}

Status Machine::check_operator(const Program& program, const Operator& op) {
  if (element_bytes(op) == 0) return Status::kBadOperator;
  const bool barrier = program.collective == espalier_Collective_BARRIER;
  if (barrier || !uses_of(program).combines) return Status::kOk;
  if (!can_combine(op)) return Status::kBadOperator;
  const bool commutes = op.op != Op::kCustom || op.commutes;
  return program.needs_commutative && !commutes ? Status::kBadOperator : Status::kOk;
}

Status Machine::check_buffers(const Program& program, const Buffers& buffers, const Layout& layout,
                              Region* regions, std::uint32_t& regions_count) {
  const Uses uses = uses_of(program);
  const Span in = buffer_span(program, layout, espalier_Buffer_INPUT);
  const Span out = buffer_span(program, layout, espalier_Buffer_OUTPUT);
  const std::uint64_t input = uses.input ? in.bytes : 0;
  const std::uint64_t output = uses.output ? out.bytes : 0;
  const std::uint64_t scratch = scratch_needed(program, layout);
  if (layout.count > 0 && ((uses.input && input == 0) || (uses.output && output == 0))) {
    return Status::kMalformed;
  }
  if (input > 0 && buffers.input == nullptr) return Status::kBadArgument;
  if (output > 0 && buffers.output == nullptr) return Status::kBadArgument;
  if (scratch > 0 && (buffers.scratch == nullptr || buffers.scratch_bytes < scratch ||
                      reinterpret_cast<std::uintptr_t>(buffers.scratch) % 16 != 0)) {
    return Status::kBadArgument;
  }
  const bool shared = overlap(buffers.input, input, buffers.output, output);
  // Where each would lie if it held the whole message.
  const bool in_place = reinterpret_cast<std::uintptr_t>(buffers.input) - in.offset ==
                        reinterpret_cast<std::uintptr_t>(buffers.output) - out.offset;
  if ((shared && !in_place) || overlap(buffers.scratch, scratch, buffers.input, input) ||
      overlap(buffers.scratch, scratch, buffers.output, output)) {
    return Status::kBadArgument;
  }
  regions_count = 0;
  // The endpoint only reads the input: the program sends from it and writes nothing there. In
  // place, the longer of the two holds the other.
  if (output > 0 && !(shared && input > output))
    regions[regions_count++] = {buffers.output, output};
  if (scratch > 0) regions[regions_count++] = {buffers.scratch, scratch};
  if (input > 0 && !(shared && input <= output)) {
    regions[regions_count++] = {const_cast<void*>(buffers.input), input};
  }
  return Status::kOk;
}

// Steps in flight here.
std::uint32_t Machine::window_of(const Program& program) const {
  return std::max<std::uint32_t>(
      1, std::min<std::uint32_t>({program.window, window_limit_, kMaxWindow, endpoint_->window()}));
}

// Finds the endpoint's link to each of the program's peers.
Status Machine::map_links(const Program& program) {
  if (links_count(program) > watch_.links()) return Status::kNoSuchPeer;
  for (std::uint32_t at = 0; at < links_count(program); ++at) {
    const std::uint32_t peer = peer_of(program, at);
    std::uint32_t link = 0;
    while (link < watch_.links() && watch_.peer(link) != peer) ++link;
    if (link == watch_.links()) return Status::kNoSuchPeer;
    link_of_[at] = static_cast<std::uint8_t>(link);
  }
  return Status::kOk;
}

void Machine::start_tags(const Operator& op) {
  std::uint64_t hash = digest_u64(kDigestSeed, program_->schedule_digest);
  hash = digest_u64(hash, layout_.count);
  hash = digest_u64(hash, (std::uint64_t{layout_.element_bytes} << 32) | op.custom_id);
  hash = digest_u64(hash, (static_cast<std::uint64_t>(op.op) << 16) |
                              (static_cast<std::uint64_t>(op.type) << 8) |
                              static_cast<std::uint64_t>(check_blocks_));
  hash = digest_u64(hash, ++tags_.sequence);
  tags_.hash = (hash ^ (hash >> 48)) & TagBase::kMask;
  for (std::uint32_t link = 0; link < watch_.links(); ++link) {
    sends_[link].number = 0;
    receives_[link].number = 0;
    foreseen_[link] = 0;
    if (!told_.contains(link) || tags_.later(early_[link]) > 0) continue;
    told_.erase(link);
    early(link, early_[link]);
  }
}

}  // namespace espalier
