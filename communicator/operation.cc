#include "communicator/operation.h"

#include <string>

#include "base/try.h"
#include "communicator/channel.h"

namespace espalier::communicator {

Operation::~Operation() {
  // Its owner saw whether it is complete; another thread may use the channel now.
  if (channel != nullptr && state != State::kIdle && state != State::kComplete) {
    channel->end(*this);
  }
  if (!kept.empty()) channel->forget(*this);
}

bool are_alike(const Call& a, const Call& b) {
  return a.collective == b.collective && a.send == b.send && a.receive == b.receive &&
         a.count == b.count && a.counts.empty() && b.counts.empty() && a.op.op == b.op.op &&
         a.op.type == b.op.type && a.op.commutes == b.op.commutes &&
         a.op.element_bytes == b.op.element_bytes && a.op.custom_id == b.op.custom_id &&
         a.op.custom == b.op.custom && a.op.context == b.op.context && a.root == b.root &&
         a.send_room == b.send_room && a.receive_room == b.receive_room &&
         a.needs_counts == b.needs_counts && a.is_bool == b.is_bool;
}

ElementCounts counts_of(Operation& operation) {
  const Call& call = operation.call;
  if (call.counts.empty()) return call.count;
  if (operation.padded != nullptr) return operation.padded->equal_call().count;
  ElementCounts counts(call.counts.data(), call.counts.size(), operation.offsets.data());
  counts.own_only = operation.has_own_counts;
  return counts;
}

Result<void> find_memory(Operation& operation, const Place& place) {
  const Call& call = operation.padded == nullptr ? operation.call : operation.padded->equal_call();
  const Program& program = operation.planned->program;
  const std::uint32_t size = element_bytes(call.op);
  operation.offsets.resize(call.counts.empty() ? 0 : unequal_offsets(call.collective, place.ranks));
  const ElementCounts counts = counts_of(operation);
  Layout layout;
  const Status status = make_layout(program, counts, size, layout);
  if (status != Status::kOk) return fail(status_name(status));
  operation.scratch_bytes = scratch_needed(program, layout);
  Buffers& buffers = operation.buffers;
  const bool has_input = buffer_extent(program, Buffer::kInput) != Extent::kNothing;
  const bool has_output = buffer_extent(program, Buffer::kOutput) != Extent::kNothing;
  buffers.input = has_input ? call.send : nullptr;
  buffers.output = has_output ? call.receive : nullptr;
  const std::uint64_t input_bytes = operation.input_bytes =
      size * elements_of(buffer_extent(program, Buffer::kInput), call, place, true);
  const std::uint64_t output_bytes = operation.output_bytes =
      size * elements_of(buffer_extent(program, Buffer::kOutput), call, place, false);
  const auto* input = static_cast<const std::uint8_t*>(buffers.input);
  const auto* output = static_cast<const std::uint8_t*>(buffers.output);
  const bool shared = input_bytes != 0 && output_bytes != 0 && input < output + output_bytes &&
                      output < input + input_bytes;
  const bool unequal_all_to_all = call.collective == Collective::kAllToAll && !call.counts.empty();
  if (shared && (!operation.planned->in_place || unequal_all_to_all)) {
    operation.input_copy.resize(input_bytes);
    operation.copied_from = buffers.input;
    buffers.input = operation.input_copy.data();
  }
  // Copies even if the caller has nothing to send.
  if (operation.padded != nullptr) operation.copied_from = operation.padded.get();
  return {};
}

}  // namespace espalier::communicator
