#include "collectives/verify/every_n/progressions.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "collectives/verify/every_n/slot_turns.h"
#include "collectives/verify/properties/program_facts.h"
#include "collectives/verify/properties/repeat.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMaxProgressions = std::int64_t{1} << 22;  // per node
constexpr std::int64_t kMaxFirst = std::int64_t{1} << 40;  // steps; real schedules stay far below
constexpr std::int64_t kMaxStep = std::int64_t{1} << 62;   // no sum of two overflows
constexpr std::size_t kMaxStages = 200;

const Operand& moved_by(const Action& action) {
  return action.kind == ActionKind::kSend ? action.a : action.into;
}

bool sends_or_receives(const Action& action) {
  return action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive;
}

std::array<std::pair<bool, const Operand*>, 3> places(const Action& action) {
  return {{{action.has_into, &action.into}, {action.has_a, &action.a}, {action.has_b, &action.b}}};
}

// Whether the action has the same number of instances for every N.
bool has_constant_instances(const Program& program, const Action& action) {
  const Count& count = program.counts[action.instances_ref];
  return count.b == 0 && count.c == 0;
}

// The round of an action: after `every` instances it is `blocks` blocks and `periods` periods
// further; everything else repeats. every = 0: its instances are constant in number.
struct Round {
  std::int64_t every = 1, blocks = 1, periods = 1;
};

class ProgressionReader {
 public:
  ProgressionReader(const Program& common, const Program& program, RankProgressions& ranks)
      : common_(common),
        program_(program),
        ranks_(ranks),
        slots_(program),
        input_(buffer_extent(program, Buffer::kInput)),
        output_(buffer_extent(program, Buffer::kOutput)) {}

  ReadResult read() {
    const std::int64_t least = ranks_.stride;
    ranks_.all.clear();
    ranks_.stages.clear();
    ranks_.single = false;
    ranks_.head = 0;
    rounds_.resize(program_.actions_count);
    ReadResult result =
        each_action([this](std::uint32_t number, std::uint32_t) { return read_round(number); });
    if (!result.passed()) return result;
    if (ranks_.stride > kMaxStride) return Undecided{"its blocks take too many turns"};
    if (ranks_.stride != least) return {};
    std::int64_t most = 0;
    for (const Round& round : rounds_) most += round.every * (ranks_.stride / round.blocks);
    ranks_.all.reserve(static_cast<std::size_t>(std::min(most, kMaxProgressions)));
    result = each_action([this](std::uint32_t number, std::uint32_t phase) {
      ReadResult one = scale_round(number, phase);
      if (one.passed()) one = check_pace(number, phase);
      if (one.passed()) one = add_progressions(number, phase);
      return one;
    });
    if (result.passed()) {
      result = each_action(
          [this](std::uint32_t number, std::uint32_t phase) { return add_singles(number, phase); });
    }
    if (!result.passed()) return result;
    if (slots_.rounds() > 1) {  // no permutation: with more blocks per round slots stay
      ranks_.stride *= slots_.rounds();
      return ranks_.stride > kMaxStride ? ReadResult(Undecided{"its slots do not repeat soon"})
                                        : ReadResult();
    }
    ranks_.next_slot = slots_.next();
    std::vector<std::int64_t> every;
    for (const Round& round : rounds_) every.push_back(round.every);
    sort_by_time(ranks_, every);
    return {};
  }

 private:
  template <typename Read>
  ReadResult each_action(const Read& read) {
    std::uint32_t action = 0;
    for (std::uint32_t phase = 0; phase < program_.phases_count; ++phase) {
      if (program_.phases[phase].period != common_.phases[phase].period) {
        return Undecided{"phase " + std::to_string(phase) + " has a period of " +
                         std::to_string(program_.phases[phase].period) + ", rank 0's one of " +
                         std::to_string(common_.phases[phase].period)};
      }
      for (std::uint32_t end = action + program_.phases[phase].actions; action < end; ++action) {
        ReadResult result = read(action, phase);
        if (const Undecided* undecided = result.undecided()) {
          return Undecided{"action " + std::to_string(action) + ": " + undecided->reason};
        }
        if (!result.passed()) return result;
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

  // Returns a number of instances that the action exceeds for no N.
  [[nodiscard]] std::int64_t max_instances(const Action& action) const {
    const Count& count = program_.counts[action.instances_ref];
    return std::max(count_value(count, 1), count_value(count, kMaxProvenBlocks)) + kMaxSlope;
  }

  // Whether the indices of the action do not overflow in any of its instances.
  [[nodiscard]] bool has_exact_indices(const Action& action) const {
    const std::int64_t instances = max_instances(action);
    const auto exact = [&](std::uint32_t ref) {
      return is_exact(program_, program_.indices[ref], instances);
    };
    bool all = (!sends_or_receives(action) || exact(action.link_ref)) &&
               (action.pace_ref == 0 || exact(action.pace_ref));
    for (const auto& [present, operand] : places(action)) {
      if (!present) continue;
      all = all && exact(operand->block_ref) && exact(operand->segment_ref) &&
            (operand->buffer != Buffer::kScratch || exact(operand->slot_ref));
    }
    return all;
  }

  ReadResult read_round(std::uint32_t number) {
    const Action& action = program_.actions[number];
    if (!has_exact_indices(action)) return Undecided{"its indices overflow for large N"};
    if (has_constant_instances(program_, action)) {
      rounds_[number].every = 0;
      return {};
    }
    const Repeat block = repeat(moved_by(action).block_ref);
    if (block.every == 0 || block.add <= 0)
      return Undecided{"its blocks do not ascend in equal rounds"};
    std::int64_t every = block.every;
    if (sends_or_receives(action)) {
      const Repeat link = repeat(action.link_ref);
      if (link.every == 0 || link.add != 0) return Undecided{"its links do not repeat"};
      every = common_every(every, link.every);
    }
    for (const auto& [present, operand] : places(action)) {
      if (!present) continue;
      const Repeat segment = repeat(operand->segment_ref);
      if (segment.every == 0 || segment.add != 0) return Undecided{"its segments do not repeat"};
      const Repeat other = repeat(operand->block_ref);
      if (other.every == 0 || other.add * block.every != block.add * other.every) {
        return Undecided{"it mixes blocks"};
      }
      every = common_every(common_every(every, segment.every), other.every);
    }
    Repeat pace{1, 1};
    if (action.pace_ref != 0) {
      pace = repeat(action.pace_ref);
      if (pace.every == 0 || pace.add <= 0)
        return Undecided{"its pace does not ascend in equal rounds"};
      every = common_every(every, pace.every);
    }
    if (every == 0) return Undecided{"its rounds are too long"};
    rounds_[number] = {every, block.add * (every / block.every), pace.add * (every / pace.every)};
    const std::int64_t stride = common_every(ranks_.stride, rounds_[number].blocks);
    ranks_.stride = stride == 0 ? kMaxStride + 1 : stride;
    return {};
  }

  // Makes the round of the action one stride long.
  ReadResult scale_round(std::uint32_t number, std::uint32_t phase) {
    Round& round = rounds_[number];
    if (round.every == 0) return {};
    const std::int64_t rounds = ranks_.stride / round.blocks;
    if (round.every > kMaxProgressions / rounds) return Undecided{"its rounds are too long"};
    round = {round.every * rounds, ranks_.stride, round.periods * rounds};
    if (round.periods > kMaxFirst / program_.phases[phase].period)
      return Undecided{"its pace is too slow"};
    return {};
  }

  // Returns the smallest N for which the action has instance i.
  [[nodiscard]] std::int64_t blocks_for(const Action& action, std::int64_t i) const {
    const Count& count = program_.counts[action.instances_ref];
    std::int64_t none = 0, some = kMaxProvenBlocks;
    while (some - none > 1) {
      const std::int64_t middle = none + (some - none) / 2;
      (count_value(count, middle) > i ? some : none) = middle;
    }
    return some;
  }

  // Checks the steps of all instances, including those whose block does not exist: they are >= 0,
  // never decrease, and stay inside the phase. All three repeat after a round, so one round and one
  // stride of N are enough. Operations of one step may belong to two rounds.
  ReadResult check_pace(std::uint32_t number, std::uint32_t phase) const {
    const Action& action = program_.actions[number];
    if (action.pace_ref == 0 || rounds_[number].every == 0) return {};
    Linear begin;
    if (!is_linear(program_.counts[action.t0_ref], begin) || begin.b < 0) {
      return Undecided{"its first step does not grow in proportion to N"};
    }
    const std::int64_t period = program_.phases[phase].period;
    const std::int64_t rounds = sends_or_receives(action) ? 1 : 2;
    std::int64_t last = value(action.pace_ref, 0);
    if (std::abs(last) > kMaxFirst / period) return Undecided{"it begins too late"};
    if (begin.a + begin.b + period * last < 0) return WrongFrom{blocks_for(action, 0)};
    // The smallest N for which the pace decreases or a step has too many operations; 0: none.
    std::int64_t falls = 0, in_step = 1;
    for (std::int64_t i = 1; i <= rounds * rounds_[number].every && falls == 0; ++i) {
      const std::int64_t next = value(action.pace_ref, i);
      // A pace that never decreases stays inside the round, which is far shorter.
      if (std::abs(next) > kMaxStep / period) return Undecided{"its pace leaves its round"};
      in_step = next == last ? in_step + 1 : 1;
      const bool too_many = !sends_or_receives(action) && in_step > kMaxStepInstances;
      if (next < last || too_many) falls = blocks_for(action, i);
      last = next;
    }
    return check_last_step(number, phase, falls);
  }

  // The rest of check_pace: the step of the last instance is inside the phase, for every N.
  ReadResult check_last_step(std::uint32_t number, std::uint32_t phase, std::int64_t falls) const {
    const Action& action = program_.actions[number];
    const Count& count = program_.counts[action.instances_ref];
    const Count& steps = common_.counts[common_.phases[phase].steps_ref];
    // Steps left after the last instance.
    const auto left = [&](std::int64_t blocks) {
      const std::int64_t i = count_value(count, blocks) - 1;
      return count_value(steps, blocks) - 1 - count_value(program_.counts[action.t0_ref], blocks) -
             program_.phases[phase].period * value(action.pace_ref, i);
    };
    for (std::int64_t blocks = 1; blocks <= 3 * ranks_.stride; ++blocks) {
      if (falls > 0 && blocks >= falls) return WrongFrom{falls};
      if (next_blocks(common_, blocks) != blocks) continue;
      const bool some = count_value(count, blocks) > 0;
      if (some && left(blocks) < 0) return WrongFrom{blocks};
      if (blocks <= 2 * ranks_.stride) continue;
      const std::int64_t fewer = blocks - ranks_.stride;
      if (count_value(count, fewer) <= 0)
        return Undecided{"its instances begin only with more blocks"};
      if (left(blocks) < left(fewer)) {
        return Undecided{"its instances come nearer to the end of the phase with more blocks"};
      }
    }
    if (falls > 0) return WrongFrom{falls};
    // N up to 3 stride are checked. If the count repeats every stride, so does the result.
    const bool repeats = count.c == 0 || ranks_.stride % or_one(count.e) == 0;
    const std::int64_t grown = count_value(count, 1 + ranks_.stride) - count_value(count, 1);
    if (repeats && grown == rounds_[number].every) return {};
    return Undecided{"its instances do not grow by a round in a stride"};
  }

  std::uint8_t stage_of(const Stage& stage) {
    const auto known = std::find(ranks_.stages.begin(), ranks_.stages.end(), stage);
    const auto position = static_cast<std::uint8_t>(known - ranks_.stages.begin());
    if (known == ranks_.stages.end()) ranks_.stages.push_back(stage);
    return position;
  }

  ReadResult add_progressions(std::uint32_t number, std::uint32_t phase) {
    const Action& action = program_.actions[number];
    const Round& round = rounds_[number];
    if (round.every == 0) return {};
    const std::int64_t period = program_.phases[phase].period;
    Linear begin;
    if (!is_linear(program_.counts[action.t0_ref], begin) || begin.b < 0) {
      return Undecided{"its first step does not grow in proportion to N"};
    }
    if (static_cast<std::int64_t>(ranks_.all.size()) + round.every > kMaxProgressions) {
      return Undecided{"it is too many progressions"};
    }
    if (ranks_.stages.size() > kMaxStages) return Undecided{"its phase has too many stages"};
    Progression one;
    one.kind = action.kind;
    one.action = static_cast<std::uint8_t>(number);
    one.stage = stage_of({phase, begin.b, period * round.periods});
    slots_.begin_action(action, round.every);
    std::int64_t cycle = 0;
    for (std::int64_t residue = 0; residue < round.every; ++residue) {
      std::int64_t block = value(moved_by(action).block_ref, residue);
      if (never(action, round, block)) continue;
      std::int64_t instance = residue;
      if (block < 0) {
        const std::int64_t rounds = ceil_div(-block, round.blocks);
        if (rounds > kMaxFirst / kMaxProgressions)
          return Undecided{"its blocks begin too far below 0"};
        instance += rounds * round.every;
        block += rounds * round.blocks;
      }
      if (instance > kMaxFirst / period) return Undecided{"it begins too late"};
      const std::int64_t pace = action.pace_ref != 0 ? value(action.pace_ref, instance) : instance;
      if (std::abs(pace) > kMaxFirst / period) return Undecided{"it begins too late"};
      one.turn = instance;
      one.first = begin.a + begin.b + period * pace;
      const bool late = block >= round.blocks;
      if (block >= (kMaxHead + 1) * round.blocks || (late && program_.phases_count > 1) ||
          one.first < 0 || one.first > kMaxFirst) {
        return Undecided{kNotAll};
      }
      ranks_.head = std::max(ranks_.head, block / round.blocks);
      one.block = static_cast<std::int32_t>(block);
      ReadResult result = cycle == 0 ? check_growth(action, round, cycle) : ReadResult();
      if (result.passed()) result = check_instances(action, round, cycle, block, instance);
      if (result.passed()) result = read_operands(action, instance, one);
      if (!result.passed()) return result;
      ranks_.all.push_back(one);
    }
    return {};
  }

  // The stage of single instances: one in which other actions of this slope advance. Without one
  // the period is that of any other stage, so that it is the same on all nodes.
  std::uint8_t stage_of_singles(std::uint32_t phase, std::int64_t slope) {
    std::int64_t period = program_.phases[phase].period;
    if (!ranks_.stages.empty()) period = ranks_.stages.front().period;
    for (const Stage& stage : ranks_.stages) {
      if (stage.slope == slope) period = stage.period;
    }
    return stage_of({phase, slope, period});
  }

  // Adds the instances of an action that has the same number of them for every N: each is a
  // progression of its own.
  ReadResult add_singles(std::uint32_t number, std::uint32_t phase) {
    const Action& action = program_.actions[number];
    if (rounds_[number].every != 0) return {};
    const std::int64_t instances = count_value(program_.counts[action.instances_ref], 1);
    if (instances <= 0) return {};
    Linear begin;
    if (program_.phases_count > 1 || action.clamp || action.pace_ref != 0 ||
        !is_linear(program_.counts[action.t0_ref], begin) || begin.b < 0 ||
        instances > kMaxStride) {
      return Undecided{kNotAll};
    }
    Progression one;
    one.kind = action.kind;
    one.action = static_cast<std::uint8_t>(number);
    one.once = true;
    one.stage = stage_of_singles(phase, begin.b);
    for (std::int64_t i = 0; i < instances; ++i) {
      const std::int64_t block = value(moved_by(action).block_ref, i);
      if (block < 0) continue;
      one.turn = i;
      one.first = begin.a + begin.b + program_.phases[phase].period * i;
      if (block >= kMaxHead * ranks_.stride || one.first < 0 || one.first > kMaxFirst) {
        return Undecided{kNotAll};
      }
      one.block = static_cast<std::int32_t>(block);
      ranks_.head = std::max(ranks_.head, block / ranks_.stride + 1);
      ReadResult result = read_operands(action, i, one);
      if (!result.passed()) return result;
      ranks_.all.push_back(one);
    }
    return {};
  }

  // Whether the instances with this block in the first round never reach block 0.
  [[nodiscard]] bool never(const Action& action, const Round& round, std::int64_t block) const {
    return block < 0 && ceil_div(max_instances(action), round.every) < -block / round.blocks;
  }

  static constexpr const char* kNotAll = "its instances are not all of its blocks below N";

  // Sets `cycle` so that instances(N + cycle) - instances(N) is the same for all N: both the
  // instance count and the blocks repeat with it. Checks that difference.
  ReadResult check_growth(const Action& action, const Round& round, std::int64_t& cycle) const {
    const Count& count = program_.counts[action.instances_ref];
    cycle = std::lcm(round.blocks, count.c == 0 ? 1 : or_one(count.e));
    if (cycle > kMaxStride) return Undecided{"its instances grow in too long a cycle"};
    const std::int64_t grown = count_value(count, 1 + cycle) - count_value(count, 1);
    const std::int64_t needed = cycle / round.blocks * round.every;
    if (grown < needed || (action.clamp && grown != needed)) return Undecided{kNotAll};
    return {};
  }

  // Checks for every N that occurs that the instances are exactly the progression's blocks below N.
  ReadResult check_instances(const Action& action, const Round& round, std::int64_t cycle,
                             std::int64_t block, std::int64_t instance) const {
    const Count& count = program_.counts[action.instances_ref];
    for (std::int64_t blocks = 1; blocks <= block + cycle; ++blocks) {
      if (next_blocks(common_, blocks) != blocks) continue;
      const std::int64_t next = instance + ceil_div(blocks - block, round.blocks) * round.every;
      const std::int64_t instances = count_value(count, blocks);
      // The last block below N is one round before `next`; a clamp would add instances of it.
      const bool all = blocks <= block || instances > next - round.every;
      if (!all || (action.clamp && instances > (blocks <= block ? instance : next))) {
        return Undecided{kNotAll};
      }
    }
    return {};
  }

  [[nodiscard]] bool exists(const Operand& operand, std::int64_t segment) const {
    if (segment < 0 || segment >= program_.segments) return false;
    if (operand.buffer == Buffer::kScratch) return true;
    const Extent extent = operand.buffer == Buffer::kInput ? input_ : output_;
    return extent == Extent::kWhole || (extent == Extent::kOwn && segment == program_.node);
  }

  // Returns the slot of an operand of a single instance i, which need not move on. Sets `outside`
  // to 0 if it does not exist.
  [[nodiscard]] std::int32_t only_slot(const Operand& operand, std::int64_t i,
                                       std::int64_t& outside) const {
    const std::int64_t slot = value(operand.slot_ref, i);
    if (slot < 0 || slot >= program_.scratch_blocks) outside = 0;
    return static_cast<std::int32_t>(slot);
  }

  ReadResult read_operands(const Action& action, std::int64_t i, Progression& one) {
    const Operand& moved = moved_by(action);
    const std::int64_t segment = value(moved.segment_ref, i);
    const std::int64_t from =
        action.has_a && &moved != &action.a ? value(action.a.segment_ref, i) : segment;
    const bool any_segment = program_.collective == Collective::kAllToAll;
    std::int32_t* const slots[3] = {&one.into_slot, &one.a_slot, &one.b_slot};
    std::size_t number = 0;
    for (const auto& [present, operand] : places(action)) {
      std::int32_t& slot = *slots[number++];
      if (!present) continue;
      std::int64_t named = segment;
      if (operand != &moved) {
        named = operand == &action.a ? from : value(operand->segment_ref, i);
        if (named != segment && !any_segment) return Undecided{"it mixes segments"};
        if (value(operand->block_ref, i) != one.block) return Undecided{"it mixes blocks"};
      }
      if (!exists(*operand, named)) return WrongFrom{one.block + 1};
      if (operand->buffer != Buffer::kScratch) continue;
      std::int64_t outside = -1;  // the first round in which the slot does not exist; -1: none
      slot = one.once ? only_slot(*operand, i, outside) : slots_.add(number - 1, i, outside);
      if (outside >= 0) return WrongFrom{one.block + outside * ranks_.stride + 1};
      if (slots_.rounds() == 0) return Undecided{"its slots do not repeat"};
    }
    if (action.kind == ActionKind::kCombine && !has_operator(program_.collective)) {
      return WrongFrom{one.block + 1};
    }
    one.segment = static_cast<std::int32_t>(segment);
    one.from_segment = static_cast<std::int32_t>(from);
    if (!sends_or_receives(action)) return {};
    const std::int64_t link = value(action.link_ref, i);
    if (link < 0 || link >= links_count(program_)) return WrongFrom{one.block + 1};
    one.link = static_cast<std::int32_t>(link);
    return {};
  }

  const Program& common_;
  const Program& program_;
  RankProgressions& ranks_;
  SlotTurns slots_;
  Extent input_, output_;
  std::vector<Round> rounds_;  // by action
};

}  // namespace

bool is_linear(const Count& count, Linear& line) {
  line = {count.a, count.b};
  if (count.c == 0) return true;
  if (count.e > 1) return false;
  line.a += std::int64_t{count.c} * count.d;
  line.b += count.c;
  return true;
}

ReadResult read_progressions(const Program& common, const Program& program,
                             RankProgressions& ranks) {
  return ProgressionReader(common, program, ranks).read();
}

void read_single(const Program& program, const std::vector<Instance>& instances,
                 std::int64_t blocks, RankProgressions& ranks) {
  ranks.all.clear();
  ranks.stages.clear();
  ranks.next_slot.clear();
  ranks.single = true;
  ranks.head = 0;
  ranks.stride = blocks;
  std::vector<std::int64_t> phase_first(1, 0);
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps = count_value(program.counts[program.phases[phase].steps_ref], blocks);
    ranks.stages.push_back({phase, 0, std::max<std::int64_t>(1, steps)});
    phase_first.push_back(phase_first.back() + std::max<std::int64_t>(0, steps));
  }
  for (const Instance& instance : instances) {
    const bool send = instance.kind == ActionKind::kSend;
    const OperandAt& operand = send ? instance.a : instance.into;
    Progression one;
    one.kind = instance.kind;
    one.action = static_cast<std::uint8_t>(instance.action);
    one.stage = static_cast<std::uint8_t>(instance.phase);
    one.first = instance.step - phase_first[instance.phase];
    one.turn = instance.i;
    one.block = static_cast<std::int32_t>(operand.block);
    one.link = static_cast<std::int32_t>(instance.link);
    one.segment_count = static_cast<std::uint16_t>(operand.segment_count);
    const auto slot_of = [](const OperandAt& operand, std::uint32_t part) {
      return operand.buffer == Buffer::kScratch ? static_cast<std::int32_t>(operand.slot + part)
                                                : -1;
    };
    for (std::uint32_t part = 0; part < operand.segment_count; ++part) {
      one.part = static_cast<std::uint16_t>(part);
      one.segment = static_cast<std::int32_t>(operand.segment_at(part));
      one.from_segment = static_cast<std::int32_t>(instance.a.segment_at(part));
      one.into_slot = slot_of(instance.into, part);
      one.a_slot = slot_of(instance.a, part);
      one.b_slot = slot_of(instance.b, part);
      ranks.all.push_back(one);
    }
  }
  sort_by_time(ranks, std::vector<std::int64_t>(program.actions_count, 0));
}

}  // namespace espalier::verify
