#include "hal/fabric/ofi/lanes/lane_writer.h"

#include <algorithm>

namespace espalier::ofi {
namespace {

constexpr std::uint32_t kFastRetries = 256;  // consecutive refusals before retries slow down
constexpr std::uint64_t kDelayPerRefusalNs = 1'000;
constexpr std::uint64_t kMaxRetryDelayNs = 5'000'000;

}  // namespace

bool LaneWriter::write_message(Lane& lane, Domain::Target to, const Immediate& immediate,
                               const void* bytes, std::uint64_t size, std::uint64_t address,
                               std::uint64_t key) {
  Domain& domain = *state_.domain;
  Outgoing& out = lane.out;
  const std::uint64_t position = state_.position(out.sent);
  const std::uint64_t data = pack(immediate);
  ESPALIER_ASSERT(lane.is_open && out.sent < out.posted);
  // What is pending on a port for long messages is known by its completion.
  const bool has_completion = size > domain.inject_bytes() || to.port != lane.target.port;
  if (!has_completion) return accepted(lane, domain.inject(to, bytes, size, data, address, key));
  ESPALIER_ASSERT((out.writing & bit(position)) == 0);
  WriteContext& context = state_.contexts[lane.index * state_.layout.ring() + position];
  ESPALIER_ASSERT(context.lane == lane.index && context.position == position);
  ESPALIER_ASSERT(context.owner == state_.parts);
  if (!accepted(lane, domain.write(to, bytes, size, data, address, key, &context))) return false;
  out.writing |= bit(position);
  return true;
}

bool LaneWriter::write_entry(Lane& lane, const Immediate& immediate, std::uint64_t offset,
                             const void* bytes, std::size_t size) {
  ESPALIER_ASSERT(lane.is_open && lane.remote_lane < kMaxLinks);
  return accepted(lane, state_.domain->inject(lane.target, bytes, size, pack(immediate),
                                              lane.remote_base + offset, lane.remote_key));
}

bool LaneWriter::write_header(Lane& lane, Domain::Target to, std::uint64_t offset,
                              const void* bytes, std::size_t size) {
  ESPALIER_ASSERT(lane.is_open && size == sizeof(MessageHeader));
  return accepted(lane, state_.domain->inject_silently(to, bytes, size, lane.remote_base + offset,
                                                       lane.remote_key));
}

bool LaneWriter::write_greeting(Lane& lane, const GreetingEntry& entry) {
  ESPALIER_ASSERT(entry.node == state_.config.node);
  const std::uint64_t offset =
      greeting_offset(lane.remote_member, entry.node, lane.remote_greetings_count);
  return accepted(
      lane, state_.domain->inject(lane.target, &entry, sizeof(entry),
                                  pack({Opcode::kGreeting, lane.remote_member, 0, entry.node}),
                                  lane.remote_greetings + offset, lane.remote_greetings_key));
}

bool LaneWriter::write_immediate(Lane& lane, Opcode opcode, std::uint64_t number) {
  const std::uint64_t nothing = 0;
  const std::uint64_t code = state_.authentication.word_code(lane.send_key, opcode, number);
  return write_entry(lane, {opcode, lane.remote_id, static_cast<std::uint8_t>(number), code},
                     state_.layout.sink(lane.remote_lane), &nothing, sizeof(nothing));
}

// A broken link is retried like a full one: the machine's keepalive probes decide whether a link is
// dead, and a peer's libfabric may only be slow to start. Retries slow down so that they cost
// little.
bool LaneWriter::accepted(Lane& lane, Domain::Result result) {
  if (result == Domain::Result::kDone) {
    lane.refusals = 0;
    ++state_.writes;
    return true;
  }
  if (++lane.refusals > kFastRetries) {
    lane.retry_at_ns =
        monotonic_ns() + std::min(kMaxRetryDelayNs, lane.refusals * kDelayPerRefusalNs);
  }
  return false;
}

}  // namespace espalier::ofi
