#include "collectives/verify/streams.h"

#include <numeric>

#include "collectives/schedule/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMostSlotPeriod = 4096;
constexpr std::int64_t kMostFirst = std::int64_t{1} << 40;  // steps; nothing real is near

std::int64_t or_one(std::uint32_t divisor) { return divisor == 0 ? 1 : divisor; }

bool is_constant(const Index& index) { return index.coef == 0 && index.terms == 0; }

// Whether the index is i + shift.
bool counts_instances(const Index& index, std::int64_t& shift) {
  shift = std::int64_t{index.base} + index.off;
  return index.coef == 1 && index.terms == 0 && index.div <= 1 && index.mod == 0;
}

void join(std::int64_t& period, std::int64_t other) {
  // Beyond the most it only needs to stay beyond.
  if (period <= kMostSlotPeriod) period = std::lcm(period, other);
}

// A number of instances after which the index repeats; more than kMostSlotPeriod if unknown.
std::int64_t period_of(const Program& program, const Index& index) {
  if (is_constant(index)) return 1;
  // One round of the outer division and modulus, by which any whole step may be added.
  const std::int64_t round = or_one(index.div) * or_one(index.mod);
  std::int64_t period = 1;
  if (index.coef != 0) {
    if (index.mod == 0) return kMostSlotPeriod + 1;
    join(period, round);
  }
  for (std::uint32_t k = 0; k < index.terms; ++k) {
    const Term& term = program.terms[index.first_term + k];
    if (term.mod == 0) return kMostSlotPeriod + 1;
    join(period, or_one(term.div) * term.mod);
  }
  return period;
}

// Reads one place of `stream`'s action; empty if it fits the stream.
std::string read_place(const Program& program, const Place& place, const Stream& stream,
                       std::int64_t& slot_period) {
  const Index& segment = program.indices[place.segment_ref];
  if (!is_constant(segment)) return "its segment changes with the instance";
  if (finish_index(segment, segment.off) != stream.segment) return "it mixes segments";
  std::int64_t shift = 0;
  if (!counts_instances(program.indices[place.block_ref], shift)) {
    return "its block is not its instance's number, shifted";
  }
  if (shift != stream.shift) return "it mixes blocks";
  if (place.buffer == espalier_Buffer_SCRATCH) {
    join(slot_period, period_of(program, program.indices[place.slot_ref]));
    if (slot_period > kMostSlotPeriod) return "its slots do not repeat soon";
  }
  return {};
}

std::string read_action(const Program& program, std::uint32_t at, std::int64_t period,
                        Stream& stream, std::int64_t& slot_period) {
  const Action& action = program.actions[at];
  if (action.pace_ref != 0) return "it has a pace";
  stream.kind = action.kind;
  stream.action = at;
  const Place& moved = action.kind == espalier_Kind_SEND ? action.a : action.into;
  const Index& segment = program.indices[moved.segment_ref];
  if (!is_constant(segment)) return "its segment changes with the instance";
  stream.segment = finish_index(segment, segment.off);
  if (!counts_instances(program.indices[moved.block_ref], stream.shift)) {
    return "its block is not its instance's number, shifted";
  }
  for (const auto& [present, place] :
       {std::pair(action.has_into, &action.into), std::pair(action.has_a, &action.a),
        std::pair(action.has_b, &action.b)}) {
    if (!present) continue;
    std::string why = read_place(program, *place, stream, slot_period);
    if (!why.empty()) return why;
  }
  Linear begin, instances;
  if (!is_linear(program.counts[action.t0_ref], begin) || begin.b != 0) {
    return "its first step changes with N";
  }
  stream.first = begin.a - period * stream.shift;
  const bool known = is_linear(program.counts[action.instances_ref], instances);
  const std::int64_t beyond = instances.a + stream.shift;  // instances of blocks from N on
  if (!known || instances.b != 1 || stream.shift > 0 || beyond < 0 ||
      (action.clamp && beyond != 0) || stream.first < 0 || stream.first > kMostFirst) {
    return "its instances are not blocks 0 .. N-1";
  }
  if (action.kind == espalier_Kind_SEND || action.kind == espalier_Kind_RECEIVE) {
    const Index& link = program.indices[action.link_ref];
    if (!is_constant(link)) return "its link changes with the instance";
    stream.link = finish_index(link, link.off);
  }
  return {};
}

}  // namespace

bool is_linear(const Count& count, Linear& line) {
  line = {count.a, count.b};
  if (count.c == 0) return true;
  if (count.e > 1) return false;
  line.a += std::int64_t{count.c} * count.d;
  line.b += count.c;
  return true;
}

std::string read_streams(const Program& common, const Program& program, Streams& streams) {
  streams.all.clear();
  streams.slot_period = 1;
  std::uint32_t action = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t period = program.phases[phase].period;
    if (period != common.phases[phase].period) {
      return "phase " + std::to_string(phase) + " has a period of " + std::to_string(period) +
             ", rank 0's one of " + std::to_string(common.phases[phase].period);
    }
    for (std::uint32_t end = action + program.phases[phase].actions; action < end; ++action) {
      Stream stream;
      stream.phase = phase;
      const std::string why = read_action(program, action, period, stream, streams.slot_period);
      if (!why.empty()) return "action " + std::to_string(action) + ": " + why;
      streams.all.push_back(stream);
    }
  }
  return {};
}

}  // namespace espalier::verify
