// Starts a collective. Everything is checked before anything is done.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/digest.h"
#include "collectives/schedule/node_programs.h"
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

Status Machine::start(const Program& program, const Buffers& buffers, const Operator& op,
                      ElementCounts counts) {
  Checked checked;
  Status status = check(program, buffers, op, counts, checked, endpoint_links_);
  if (status == Status::kOk) status = endpoint_->prepare(checked.regions, checked.regions_count);
  if (status != Status::kOk) return status;
  instance_scheduler_.start(program, checked.layout.blocks);
  begin(checked);
  check_invariants();
  return Status::kOk;
}

Status Machine::prepare(const Program& program, const Buffers& buffers, const Operator& op,
                        ElementCounts counts, Prepared& prepared) {
  const Status status =
      check(program, buffers, op, counts, prepared.checked_, prepared.endpoint_links_);
  if (status != Status::kOk) return status;
  prepared.instance_scheduler_.start(program, prepared.checked_.layout.blocks);
#if ESPALIER_SHORT_COLLECTIVES
  find_short(prepared);
#endif
  return Status::kOk;
}

Status Machine::start(const Prepared& prepared) {
  const Checked& checked = prepared.checked_;
  if (endpoint_ == nullptr || checked.program == nullptr) return Status::kBadArgument;
  if (failure_detector_.failed()) return failure_detector_.cause().status;
  if (running_) return Status::kBadArgument;
#if ESPALIER_SPARES
  if (checked.reopened != reopened_) return Status::kBadArgument;
#endif
  const Status status = endpoint_->prepare(checked.regions, checked.regions_count);
  if (status != Status::kOk) return status;
  std::copy_n(prepared.endpoint_links_, links_count(*checked.program), endpoint_links_);
  ESPALIER_ASSERT(checked.program->latency_ticks <= checked.window);
  begin(checked);
#if ESPALIER_SHORT_COLLECTIVES
  if (prepared.short_.steps_count > 0 && step_limit_ == InstanceScheduler::kNever) {
    issue_short(prepared.short_);
    check_invariants();
    return Status::kOk;
  }
#endif
  instance_scheduler_.start_as(prepared.instance_scheduler_);
  check_invariants();
  return Status::kOk;
}

// Checks a collective, and finds everything that it needs. `links`: the endpoint's link, by the
// program's.
Status Machine::check(const Program& program, const Buffers& buffers, const Operator& given,
                      ElementCounts counts, Checked& checked, std::uint8_t* links) {
  checked.program = nullptr;
  if (endpoint_ == nullptr) return Status::kBadArgument;
  if (failure_detector_.failed()) return failure_detector_.cause().status;
  if (running_) return Status::kBadArgument;
  // A barrier's combines touch no memory: the arrival of its messages is the information. Only the
  // number, which may tell barriers of several purposes apart, is compared.
  Operator op = given;
  BufferUses uses = uses_of(program);
  if (program.collective == Collective::kBarrier) {
    op = {.custom_id = given.custom_id};
    uses.combines = false;
  }
  Status status = check_operator(program, uses, op);
  if (status != Status::kOk) return status;
  Layout& layout = checked.layout;
  status = make_layout(program, counts, element_bytes(op), layout);
  if (status != Status::kOk) return status;
  // On 64-bit targets every program fits.
  if constexpr (sizeof(std::ptrdiff_t) < sizeof(std::int64_t)) {
    if (!InstanceScheduler::fits(program, layout.blocks)) return Status::kTooLarge;
  }
  BufferPart& input = checked.input = {};
  BufferPart& output = checked.output = {};
  if (uses.input) status = find_part(program, layout, Buffer::kInput, buffers.input, input);
  if (status != Status::kOk) return status;
  if (uses.output) status = find_part(program, layout, Buffer::kOutput, buffers.output, output);
  const std::uint64_t scratch_bytes = scratch_needed(program, layout);
  if (status == Status::kOk) status = check_scratch(scratch_bytes, buffers);
  if (status != Status::kOk) return status;
  const BufferPart scratch{static_cast<std::uint8_t*>(buffers.scratch),
                           static_cast<std::size_t>(scratch_bytes), 0};
#if ESPALIER_UNEQUAL_COUNTS
  // Then a segment is at different positions in the input and in the output.
  if (layout.input_offsets != layout.output_offsets &&
      overlap(input.bytes, input.size, output.bytes, output.size)) {
    return Status::kBadArgument;
  }
#endif
  checked.regions_count = 0;
  status = find_regions(input, output, scratch, checked.regions, checked.regions_count);
  ESPALIER_ASSERT(checked.regions_count <= Endpoint::kMaxRegions);
  if (status == Status::kOk) status = map_links(program, links);
  // A receive is L-1 steps after its send, and the send waits for it: both must be in flight at
  // once.
  checked.window = window_of(program);
  ESPALIER_ASSERT(1 <= checked.window && checked.window <= kMaxWindow);
  if (status == Status::kOk && program.latency_ticks > checked.window) return Status::kUnsupported;
  if (status != Status::kOk) return status;
  checked.scratch = scratch.bytes;
  checked.op = op;
  checked.digest = digest_of(program, layout, op, counts);
#if ESPALIER_SPARES
  checked.reopened = reopened_;
#endif
  checked.program = &program;
  return Status::kOk;
}

// Copies a checked collective into the machine.
void Machine::bind(const Checked& checked) {
  ESPALIER_ASSERT(!running_ && checked.program != nullptr);
  program_ = checked.program;
  layout_ = checked.layout;
  input_ = checked.input;
  output_ = checked.output;
  scratch_ = checked.scratch;
  slot_bytes_ = static_cast<std::size_t>(slot_bytes(layout_));
  op_ = checked.op;
  window_ = checked.window;
  ring_limit_ = static_cast<std::uint8_t>(std::clamp<std::uint32_t>(endpoint_->window(), 1, kRing));
}

// Starts a collective that was checked; the instance scheduler begins it.
void Machine::begin(const Checked& checked) {
  ESPALIER_ASSERT(steps_in_flight() == 0 && posts().empty());
  bind(checked);
#if ESPALIER_SHORT_COLLECTIVES
  short_ = nullptr;
#endif
  running_ = true;
  has_moved_ = true;
  if (log_ != nullptr) log_->begin();
  start_tags(checked.digest);
  failure_detector_.start(tags_.probe_word());
}

void Machine::BufferUses::add_operand(bool present, const Operand& operand) {
  if (!present) return;
  input = input || operand.buffer == Buffer::kInput;
  output = output || operand.buffer == Buffer::kOutput;
}

Machine::BufferUses Machine::uses_of(const Program& program) {
  BufferUses uses;
  for (std::uint32_t i = 0; i < program.actions_count; ++i) {
    const Action& action = program.actions[i];
    uses.add_operand(action.has_into, action.into);
    uses.add_operand(action.has_a, action.a);
    uses.add_operand(action.has_b, action.b);
    uses.combines = uses.combines || action.kind == ActionKind::kCombine;
  }
  return uses;
}

Status Machine::check_operator(const Program& program, const BufferUses& uses, const Operator& op) {
  if (element_bytes(op) == 0) return Status::kBadOperator;
  // On all ranks, also on those that combine nothing.
  if (breaks_order(program, commutes(op))) return Status::kBadOperator;
  return !uses.combines || can_combine(op) ? Status::kOk : Status::kBadOperator;
}

// Finds the part of the message in a buffer that the program names.
Status Machine::find_part(const Program& program, const Layout& layout, Buffer::Value buffer,
                          const void* bytes, BufferPart& part) {
  const Span span = buffer_span(program, layout, buffer);
  if (span.bytes == 0) {
    const bool missing =
        ESPALIER_UNEQUAL_COUNTS == 0 || buffer_extent(program, buffer) == Extent::kNothing;
    return missing && layout.count > 0 ? Status::kMalformed : Status::kOk;
  }
  if (bytes == nullptr) return Status::kBadArgument;
  // Inputs are only read: no action may write there (check_program).
  part = {static_cast<std::uint8_t*>(const_cast<void*>(bytes)),
          static_cast<std::size_t>(span.bytes), span.offset};
  return part.size == span.bytes ? Status::kOk : Status::kTooLarge;
}

Status Machine::check_scratch(std::uint64_t needed, const Buffers& buffers) {
  if (needed == 0) return Status::kOk;
  if (needed != static_cast<std::size_t>(needed)) return Status::kTooLarge;
  const bool good = buffers.scratch != nullptr && buffers.scratch_bytes >= needed &&
                    reinterpret_cast<std::uintptr_t>(buffers.scratch) % 16 == 0;
  return good ? Status::kOk : Status::kBadArgument;
}

// Finds the memory that the endpoint must reach. kBadArgument: buffers overlap other than in place.
Status Machine::find_regions(const BufferPart& input, const BufferPart& output,
                             const BufferPart& scratch, Region* regions, std::uint32_t& count) {
  const bool shared = overlap(input.bytes, input.size, output.bytes, output.size);
  // Compares the addresses that the two would have if they held the whole message.
  const bool in_place = reinterpret_cast<std::uintptr_t>(input.bytes) - input.offset ==
                        reinterpret_cast<std::uintptr_t>(output.bytes) - output.offset;
  if ((shared && !in_place) || overlap(scratch.bytes, scratch.size, input.bytes, input.size) ||
      overlap(scratch.bytes, scratch.size, output.bytes, output.size)) {
    return Status::kBadArgument;
  }
  const auto add = [&](const BufferPart& part) { regions[count++] = {part.bytes, part.size}; };
  // The endpoint only reads the input: the program sends from it and writes nothing there. In
  // place, the longer of the two buffers contains the other, so only the longer one is added.
  if (output.size > 0 && !(shared && input.size > output.size)) add(output);
  if (scratch.size > 0) add(scratch);
  if (input.size > 0 && !(shared && input.size <= output.size)) add(input);
  return Status::kOk;
}

// Returns the limit on steps in flight for this program.
std::uint8_t Machine::window_of(const Program& program) const {
  const std::uint32_t window =
      std::min<std::uint32_t>({program.window, window_limit_, endpoint_->window()});
  return static_cast<std::uint8_t>(std::max<std::uint32_t>(1, window));
}

// Finds the endpoint's link to each of the program's peers.
Status Machine::map_links(const Program& program, std::uint8_t* links) {
  failure_detector_.read_links();
  if (links_count(program) > failure_detector_.links()) return Status::kNoSuchPeer;
  for (std::uint32_t program_link = 0; program_link < links_count(program); ++program_link) {
    const std::uint32_t peer = peer_of(program, program_link);
    std::uint32_t endpoint_link = 0;
    while (endpoint_link < failure_detector_.links() &&
           failure_detector_.peer(endpoint_link) != peer)
      ++endpoint_link;
    if (endpoint_link == failure_detector_.links()) return Status::kNoSuchPeer;
    links[program_link] = static_cast<std::uint8_t>(endpoint_link);
  }
  return Status::kOk;
}

std::uint64_t Machine::digest_of(const Program& program, const Layout& layout, const Operator& op,
                                 [[maybe_unused]] ElementCounts counts) const {
  std::uint64_t hash = digest_u64(kDigestSeed, program.schedule_digest);
#if ESPALIER_UNEQUAL_COUNTS
  hash = digest_u64(hash, counts.own_only ? UINT64_MAX : layout.count);
  const std::uint64_t compared = counts.own_only ? 0 : counts.entries;
  for (std::uint64_t k = 0; k < compared; ++k) hash = digest_u64(hash, counts.elements[k]);
#else
  hash = digest_u64(hash, layout.count);
#endif
  hash = digest_u64(hash, (std::uint64_t{layout.element_bytes} << 32) | op.custom_id);
  return digest_u64(hash, (static_cast<std::uint64_t>(op.op) << 16) |
                              (static_cast<std::uint64_t>(op.type) << 8) |
                              static_cast<std::uint64_t>(check_blocks_));
}

void Machine::start_tags(std::uint64_t digest) {
  ESPALIER_ASSERT(running_);
  const std::uint64_t hash = digest_u64(digest, ++tags_.sequence);
  tags_.hash = (hash ^ (hash >> 48)) & TagBase::kMask;
  for (std::uint32_t link = 0; link < failure_detector_.links(); ++link) {
    sends_[link].next_number = 0;
    receives_[link].next_number = 0;
    expected_receives_[link] = 0;
    if (!unexpected_links_.contains(link) || tags_.collectives_ahead(unexpected_tags_[link]) > 0)
      continue;
    unexpected_links_.erase(link);
    handle_unexpected(link, unexpected_tags_[link]);
  }
}

#if ESPALIER_SHORT_COLLECTIVES
// Finds what the steps of a collective issue, which prepare() has checked. Nothing is kept of a
// collective that is not short, or that a machine with a log runs.
void Machine::find_short(Prepared& prepared) {
  ShortCollective& found = prepared.short_;
  found = ShortCollective();
  if (log_ != nullptr) return;
  ESPALIER_ASSERT(!running_);
  bind(prepared.checked_);
  std::copy_n(prepared.endpoint_links_, links_count(*program_), endpoint_links_);
  instance_scheduler_.start_as(prepared.instance_scheduler_);
  if (!find_messages(found) || !find_operations(found)) found.steps_count = 0;
}

// Finds the steps with their messages; of combines and copies, the rows. False if they are too many
// to be in flight at once, or if the program is malformed, which the machine then finds as it runs.
bool Machine::find_messages(ShortCollective& found) {
  std::uint8_t on_link[2][kMaxLinks] = {};
  for (; instance_scheduler_.next_step() != InstanceScheduler::kNever;
       instance_scheduler_.take_step()) {
    const std::int64_t number = instance_scheduler_.next_step();
    ESPALIER_ASSERT(found.steps_count == 0 || found.steps[found.steps_count - 1].number < number);
    if (found.steps_count > 0 && number - found.steps[0].number >= window_) return false;
    ESPALIER_ASSERT(found.steps_count < kMaxWindow);
    Step& step = found.steps[found.steps_count];
    step.number = number;
    for (Rows rows = instance_scheduler_.next_rows(); rows != 0; rows &= rows - 1) {
      const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
      const Action& action = instance_scheduler_.action(row);
      if (action.kind == ActionKind::kCombine || action.kind == ActionKind::kCopy) {
        step.ops |= row_bit(row);
        continue;
      }
      const bool send = action.kind == ActionKind::kSend;
      std::uint32_t instances = instance_scheduler_.in_step(row);
      if (instances > InstanceScheduler::kMaxInStep) return false;
      for (; instances > 0; --instances, instance_scheduler_.advance(row)) {
        if (!instance_scheduler_.exists(row)) continue;
        std::uint32_t link = 0;
        Block block;
        if (!find_link(row, 0, link) || !locate(row, send ? action.a : action.into, block)) {
          return false;
        }
        if (block.size == 0 && leaves_out_empty()) continue;
        if (found.messages_count == ShortCollective::kMaxMessages ||
            ++on_link[send][link] > ring_limit_) {
          return false;
        }
        found.messages[found.messages_count++] = {
            {block.size, block.bytes, static_cast<std::uint8_t>(found.steps_count),
             static_cast<std::uint8_t>(instance_scheduler_.first_action() + row)},
            static_cast<std::uint8_t>(link),
            send};
        ++(send ? step.sends : step.receives);
        step.unposted = step.sends;
      }
    }
    ++found.steps_count;
  }
  return instance_scheduler_.good() && instance_scheduler_.in_last_phase();
}

// Finds the combines and copies of the steps, in the order in which they run. False as above.
bool Machine::find_operations(ShortCollective& found) {
  for (Step& step : found.steps) {
    Rows rows = std::exchange(step.ops, 0);
    while (rows != 0) {
      const auto row = static_cast<std::uint32_t>(std::countr_zero(rows));
      if (instance_scheduler_.exists(row)) {
        if (found.operations_count == ShortCollective::kMaxOperations ||
            !find_operation(row, found.operations[found.operations_count])) {
          return false;
        }
        step.ops |= row_bit(found.operations_count++);
      }
      instance_scheduler_.advance(row);
      if (!instance_scheduler_.runs_again(row, step.number)) rows &= rows - 1;
    }
  }
  return true;
}

// Issues all steps.
void Machine::issue_short(const ShortCollective& all) {
  ESPALIER_ASSERT(all.steps_count <= window_);
  short_ = &all;
  instance_scheduler_.start_at_end(*program_);
  for (std::uint32_t i = 0; i < all.messages_count; ++i) {
    const auto& [message, link, send] = all.messages[i];
    ESPALIER_ASSERT(message.step < all.steps_count && link < failure_detector_.links());
    MessageRing& ring = send ? sends_[link] : receives_[link];
    ring.add({message.size, message.bytes, static_cast<std::uint8_t>(end_step_ + message.step),
              message.action});
    (send ? unposted_sends_ : unposted_receives_).insert(link);
    check_link(link);
  }
  for (std::uint32_t i = 0; i < all.steps_count; ++i) step(end_step_++) = all.steps[i];
  post_refused_ = true;  // the next poll posts them
}
#endif

}  // namespace espalier
