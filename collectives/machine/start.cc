// Starting a collective: everything is checked before anything is done.

#include <algorithm>
#include <cstddef>

#include "espalier/base/digest.h"
#include "espalier/collectives/machine/machine.h"

namespace espalier {
namespace {

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
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
  const Uses uses = uses_of(program);
  Status status = check_operator(program, uses, op);
  if (status != Status::kOk) return status;
  Layout layout;
  status = make_layout(program, count, element_bytes(op), layout);
  if (status != Status::kOk) return status;
  // With 64 bits every program does.
  if constexpr (sizeof(std::ptrdiff_t) < sizeof(std::int64_t)) {
    if (!Timetable::fits(program, layout.blocks)) return Status::kTooLarge;
  }
  Held input, output;
  if (uses.input) status = hold(program, layout, espalier_Buffer_INPUT, buffers.input, input);
  if (status != Status::kOk) return status;
  if (uses.output) status = hold(program, layout, espalier_Buffer_OUTPUT, buffers.output, output);
  const std::uint64_t scratch_bytes = scratch_needed(program, layout);
  if (status == Status::kOk) status = check_scratch(scratch_bytes, buffers);
  if (status != Status::kOk) return status;
  const Held scratch{static_cast<std::uint8_t*>(buffers.scratch),
                     static_cast<std::size_t>(scratch_bytes), 0};
  Region regions[Endpoint::kMaxRegions];
  std::uint32_t regions_count = 0;
  status = find_regions(input, output, scratch, regions, regions_count);
  if (status == Status::kOk) status = map_links(program);
  // A receive is L-1 steps after its send, which waits for it.
  const std::uint8_t window = window_of(program);
  if (status == Status::kOk && program.latency_ticks > window) status = Status::kUnsupported;
  if (status == Status::kOk) status = endpoint_->prepare(regions, regions_count);
  if (status != Status::kOk) return status;

  program_ = &program;
  layout_ = layout;
  input_ = input;
  output_ = output;
  scratch_ = scratch.bytes;
  slot_bytes_ = static_cast<std::size_t>(slot_bytes(layout));
  op_ = op;
  window_ = window;
  room_ = static_cast<std::uint8_t>(std::clamp<std::uint32_t>(endpoint_->window(), 1, kRing));
  running_ = true;
  moved_ = true;
  if (log_ != nullptr) log_->begin();
  start_tags(op);
  timetable_.start(program, layout.blocks);
  watch_.start(tags_.word());
  return Status::kOk;
}

void Machine::Uses::place(bool present, const Place& place) {
  if (!present) return;
  input = input || place.buffer == espalier_Buffer_INPUT;
  output = output || place.buffer == espalier_Buffer_OUTPUT;
}

Machine::Uses Machine::uses_of(const Program& program) {
  Uses uses;
  for (std::uint32_t at = 0; at < program.actions_count; ++at) {
    const Action& action = program.actions[at];
    uses.place(action.has_into, action.into);
    uses.place(action.has_a, action.a);
    uses.place(action.has_b, action.b);
    uses.combines = uses.combines || action.kind == espalier_Kind_COMBINE;
  }
  return uses;
}

Status Machine::check_operator(const Program& program, const Uses& uses, const Operator& op) {
  if (element_bytes(op) == 0) return Status::kBadOperator;
  const bool barrier = program.collective == espalier_Collective_BARRIER;
  if (barrier || !uses.combines) return Status::kOk;
  if (!can_combine(op)) return Status::kBadOperator;
  const bool commutes = op.op != Op::kCustom || op.commutes;
  return program.needs_commutative && !commutes ? Status::kBadOperator : Status::kOk;
}

// Of a buffer that the program names.
Status Machine::hold(const Program& program, const Layout& layout, Buffer buffer, const void* bytes,
                     Held& held) {
  const Span span = buffer_span(program, layout, buffer);
  if (span.bytes == 0) return layout.count > 0 ? Status::kMalformed : Status::kOk;
  if (bytes == nullptr) return Status::kBadArgument;
  // Inputs are only read: no action may write there (check_program).
  held = {static_cast<std::uint8_t*>(const_cast<void*>(bytes)),
          static_cast<std::size_t>(span.bytes), span.offset};
  return held.size == span.bytes ? Status::kOk : Status::kTooLarge;
}

Status Machine::check_scratch(std::uint64_t needed, const Buffers& buffers) {
  if (needed == 0) return Status::kOk;
  if (needed != static_cast<std::size_t>(needed)) return Status::kTooLarge;
  const bool good = buffers.scratch != nullptr && buffers.scratch_bytes >= needed &&
                    reinterpret_cast<std::uintptr_t>(buffers.scratch) % 16 == 0;
  return good ? Status::kOk : Status::kBadArgument;
}

// What the endpoint is to reach. kBadArgument where buffers overlap, but for in place.
Status Machine::find_regions(const Held& input, const Held& output, const Held& scratch,
                             Region* regions, std::uint32_t& count) {
  const bool shared = overlap(input.bytes, input.size, output.bytes, output.size);
  // Where each would lie if it held the whole message.
  const bool in_place = reinterpret_cast<std::uintptr_t>(input.bytes) - input.offset ==
                        reinterpret_cast<std::uintptr_t>(output.bytes) - output.offset;
  if ((shared && !in_place) || overlap(scratch.bytes, scratch.size, input.bytes, input.size) ||
      overlap(scratch.bytes, scratch.size, output.bytes, output.size)) {
    return Status::kBadArgument;
  }
  const auto add = [&](const Held& held) { regions[count++] = {held.bytes, held.size}; };
  // The endpoint only reads the input: the program sends from it and writes nothing there. In
  // place, the longer of the two holds the other.
  if (output.size > 0 && !(shared && input.size > output.size)) add(output);
  if (scratch.size > 0) add(scratch);
  if (input.size > 0 && !(shared && input.size <= output.size)) add(input);
  return Status::kOk;
}

// Steps in flight here.
std::uint8_t Machine::window_of(const Program& program) const {
  const std::uint32_t window =
      std::min<std::uint32_t>({program.window, window_limit_, endpoint_->window()});
  return static_cast<std::uint8_t>(std::max<std::uint32_t>(1, window));
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
