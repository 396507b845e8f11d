#include "collectives/verify/streams.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "collectives/schedule/arithmetic.h"
#include "collectives/verify/check.h"
#include "collectives/verify/repeat.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMostStreams = 1 << 16;              // of a node
constexpr std::int64_t kMostFirst = std::int64_t{1} << 40;  // steps; nothing real is near

std::int64_t or_one(std::uint32_t divisor) { return divisor == 0 ? 1 : divisor; }

const Place& moved_by(const Action& action) {
  return action.kind == espalier_Kind_SEND ? action.a : action.into;
}

bool is_transfer(const Action& action) {
  return action.kind == espalier_Kind_SEND || action.kind == espalier_Kind_RECEIVE;
}

// How an action goes on: every `every` instances by `blocks` blocks and `periods` periods, all else
// the same.
struct Round {
  std::int64_t every = 1, blocks = 1, periods = 1;
};

}  // namespace

class StreamReader {
 public:
  StreamReader(const Program& common, const Program& program, Streams& streams)
      : common_(common), program_(program), streams_(streams) {}

  std::string read() {
    const std::int64_t least = streams_.stride;
    streams_ = {};
    streams_.stride = least;
    rounds_.resize(program_.actions_count);
    streams_.residues_.resize(program_.actions_count);
    std::string why =
        each_action([this](std::uint32_t at, std::uint32_t) { return read_round(at); });
    if (!why.empty()) return why;
    if (streams_.stride > kMostStride) return "its blocks take too many turns";
    streams_.pace.assign(program_.phases_count, 0);
    why =
        each_action([this](std::uint32_t at, std::uint32_t phase) { return read_pace(at, phase); });
    if (!why.empty()) return why;
    return each_action(
        [this](std::uint32_t at, std::uint32_t phase) { return add_streams(at, phase); });
  }

 private:
  template <typename Read>
  std::string each_action(const Read& read) {
    std::uint32_t action = 0;
    for (std::uint32_t phase = 0; phase < program_.phases_count; ++phase) {
      if (program_.phases[phase].period != common_.phases[phase].period) {
        return "phase " + std::to_string(phase) + " has a period of " +
               std::to_string(program_.phases[phase].period) + ", rank 0's one of " +
               std::to_string(common_.phases[phase].period);
      }
      for (std::uint32_t end = action + program_.phases[phase].actions; action < end; ++action) {
        const std::string why = read(action, phase);
        if (!why.empty()) return "action " + std::to_string(action) + ": " + why;
      }
    }
    return {};
  }

  [[nodiscard]] Repeat repeat(std::uint32_t ref) const {
    return repeat_of(program_, program_.indices[ref]);
  }
  [[nodiscard]] std::int64_t value(std::uint32_t ref, std::int64_t i) const {
    return index_value(program_, ref, i);
  }

  std::string read_round(std::uint32_t at) {
    const Action& action = program_.actions[at];
    const Repeat block = repeat(moved_by(action).block_ref);
    if (block.every == 0 || block.add <= 0) return "its blocks do not ascend in equal rounds";
    std::int64_t every = block.every;
    if (is_transfer(action)) {
      const Repeat link = repeat(action.link_ref);
      if (link.every == 0 || link.add != 0) return "its links do not repeat";
      every = common_every(every, link.every);
    }
    for (const auto& [present, place] : places(action)) {
      if (!present) continue;
      const Repeat segment = repeat(place->segment_ref);
      if (segment.every == 0 || segment.add != 0) return "its segments do not repeat";
      const Repeat other = repeat(place->block_ref);
      if (other.every == 0 || other.add * block.every != block.add * other.every) {
        return "it mixes blocks";
      }
      every = common_every(common_every(every, segment.every), other.every);
    }
    Repeat pace{1, 1};
    if (action.pace_ref != 0) {
      pace = repeat(action.pace_ref);
      if (pace.every == 0 || pace.add <= 0) return "its pace does not ascend in equal rounds";
      every = common_every(every, pace.every);
    }
    if (every == 0) return "its rounds are too long";
    rounds_[at] = {every, block.add * (every / block.every), pace.add * (every / pace.every)};
    const std::int64_t stride = common_every(streams_.stride, rounds_[at].blocks);
    streams_.stride = stride == 0 ? kMostStride + 1 : stride;
    return {};
  }

  std::string read_pace(std::uint32_t at, std::uint32_t phase) {
    Round& round = rounds_[at];
    const std::int64_t rounds = streams_.stride / round.blocks;
    round = {round.every * rounds, streams_.stride, round.periods * rounds};
    if (round.every > kMostStreams) return "its rounds are too long";
    if (round.periods > kMostFirst / program_.phases[phase].period) return "its pace is too slow";
    const std::int64_t pace = program_.phases[phase].period * round.periods;
    if (streams_.pace[phase] != 0 && streams_.pace[phase] != pace) {
      return "its blocks follow one another at another pace than those of other actions";
    }
    streams_.pace[phase] = pace;
    return read_slots(program_.actions[at], round);
  }

  std::string read_slots(const Action& action, const Round& round) {
    for (const auto& [present, place] : places(action)) {
      if (!present || place->buffer != espalier_Buffer_SCRATCH) continue;
      const Repeat slot = repeat(place->slot_ref);
      if (slot.every == 0 || slot.add != 0) return "its slots do not repeat";
      const std::int64_t every = common_every(slot.every, round.every);
      const std::int64_t period =
          every == 0 ? 0 : common_every(streams_.slot_period, every / round.every * round.blocks);
      if (period == 0 || period > kMostStride) return "its slots do not repeat soon";
      streams_.slot_period = period;
    }
    return {};
  }

  static std::array<std::pair<bool, const Place*>, 3> places(const Action& action) {
    return {
        {{action.has_into, &action.into}, {action.has_a, &action.a}, {action.has_b, &action.b}}};
  }

  std::string add_streams(std::uint32_t at, std::uint32_t phase) {
    const Action& action = program_.actions[at];
    const Round& round = rounds_[at];
    Linear begin;
    if (!is_linear(program_.counts[action.t0_ref], begin) || begin.b != 0) {
      return "its first step changes with N";
    }
    streams_.residues_[at] = {streams_.streams_.size(), round.every};
    if (static_cast<std::int64_t>(streams_.streams_.size()) + round.every > kMostStreams) {
      return "it is too many streams";
    }
    for (std::int64_t residue = 0; residue < round.every; ++residue) {
      Stream stream;
      stream.kind = action.kind;
      stream.phase = phase;
      stream.action = at;
      stream.block = value(moved_by(action).block_ref, residue);
      stream.instance = residue;
      if (never(action, round, stream.block)) {
        streams_.streams_.push_back(-1);
        continue;
      }
      if (stream.block < 0) {
        const std::int64_t rounds = ceil_div(-stream.block, round.blocks);
        if (rounds > kMostFirst / kMostStreams) return "its blocks begin too far below 0";
        stream.instance += rounds * round.every;
        stream.block += rounds * round.blocks;
      }
      if (stream.instance > kMostFirst / program_.phases[phase].period) return "it begins too late";
      std::int64_t turn = stream.instance;
      if (action.pace_ref != 0) turn = value(action.pace_ref, stream.instance);
      if (std::abs(turn) > kMostFirst / program_.phases[phase].period) return "it begins too late";
      stream.first = begin.a + program_.phases[phase].period * turn;
      stream.every = round.every;
      std::string why = check_instances(action, round, stream);
      if (why.empty()) why = read_places(action, stream);
      if (!why.empty()) return why;
      streams_.streams_.push_back(static_cast<std::int32_t>(streams_.all.size()));
      streams_.all.push_back(stream);
    }
    return {};
  }

  // Whether instances whose first round has this block never reach block 0.
  [[nodiscard]] bool never(const Action& action, const Round& round, std::int64_t block) const {
    const Count& count = program_.counts[action.instances_ref];
    const std::int64_t most =
        std::max(count_value(count, 1), count_value(count, kMostStreamBlocks)) + kMaxSlope;
    return block < 0 && ceil_div(most, round.every) < -block / round.blocks;
  }

  // That the instances are those of all the stream's blocks below N, for every N that can be.
  std::string check_instances(const Action& action, const Round& round,
                              const Stream& stream) const {
    const std::string wrong = "its instances are not all of its blocks below N";
    if (stream.block >= round.blocks || stream.first < 0 || stream.first > kMostFirst) return wrong;
    const Count& count = program_.counts[action.instances_ref];
    // Both repeat with this: instances(N + cycle) - instances(N) is the same for all N.
    const std::int64_t cycle = std::lcm(round.blocks, count.c == 0 ? 1 : or_one(count.e));
    if (cycle > kMostStride) return "its instances grow in too long a cycle";
    const std::int64_t grown = count_value(count, 1 + cycle) - count_value(count, 1);
    const std::int64_t needed = cycle / round.blocks * round.every;
    // Of an action with a pace all instances must lie in the phase, for every N.
    const bool exactly = action.clamp || action.pace_ref != 0;
    if (grown < needed || (exactly && grown != needed)) return wrong;
    if (action.pace_ref != 0 && cycle != round.blocks) return wrong;
    for (std::int64_t blocks = 1; blocks <= stream.block + cycle; ++blocks) {
      if (next_blocks(common_, blocks) != blocks) continue;
      const std::int64_t next =
          stream.instance + ceil_div(blocks - stream.block, round.blocks) * round.every;
      const std::int64_t instances = count_value(count, blocks);
      // The last below N is one round before the next; a clamp would make more of that.
      const bool all = blocks <= stream.block || instances > next - round.every;
      if (!all || (action.clamp && instances > (blocks <= stream.block ? stream.instance : next))) {
        return wrong;
      }
    }
    return {};
  }

  std::string read_places(const Action& action, Stream& stream) const {
    const std::int64_t i = stream.instance;
    const Place& moved = moved_by(action);
    stream.segment = value(moved.segment_ref, i);
    stream.from_segment = action.has_a ? value(action.a.segment_ref, i) : stream.segment;
    const bool any_segment = program_.collective == espalier_Collective_ALL_TO_ALL;
    for (const auto& [present, place] : places(action)) {
      if (!present || place == &moved) continue;
      if (value(place->segment_ref, i) != stream.segment && !any_segment) {
        return "it mixes segments";
      }
      if (value(place->block_ref, i) != stream.block) return "it mixes blocks";
    }
    if (is_transfer(action)) stream.link = value(action.link_ref, i);
    return {};
  }

  const Program& common_;
  const Program& program_;
  Streams& streams_;
  std::vector<Round> rounds_;  // by action
};

bool is_linear(const Count& count, Linear& line) {
  line = {count.a, count.b};
  if (count.c == 0) return true;
  if (count.e > 1) return false;
  line.a += std::int64_t{count.c} * count.d;
  line.b += count.c;
  return true;
}

std::string read_streams(const Program& common, const Program& program, Streams& streams) {
  return StreamReader(common, program, streams).read();
}

}  // namespace espalier::verify
