#include "collectives/verify/every_n/port_residues.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::verify {
namespace {

constexpr std::size_t kMaxTogether = 4096;  // transfers, or pairs of them, that are compared

bool is_send(const Progression& one) { return one.kind == ActionKind::kSend; }
// The segments of one operand travel in one message: the one of part 0.
bool is_message(const Progression& one) { return one.link >= 0 && one.part == 0; }

std::size_t channel_of(const Progression& one) {
  return 2 * static_cast<std::size_t>(one.link) + (is_send(one) ? 1 : 0);
}

// Returns the smallest N for which two progressions of a stage, or one with itself, share a port in
// some step, on links of `lanes`; 0: none. With several lanes blocks_to_fill() counts instead.
std::int64_t blocks_to_collide(const Program& program, const RankProgressions& ranks,
                               const Progression& one, const Progression& other,
                               std::uint32_t lanes) {
  const bool send = is_send(one), other_send = is_send(other);
  const bool same_lane = send == other_send && one.link == other.link && lanes == 1;
  if (!same_lane && !share_port(program.port_model, send, other_send)) return 0;
  const std::int64_t held = send_ticks(program), period = ranks.stages[one.stage].period;
  // The smallest N for which `other` has a block `rounds` rounds ahead of a block of `one`.
  // 0: there is none.
  const auto both = [&](std::int64_t rounds) {
    if ((one.once && rounds < 0) || (other.once && rounds > 0)) return std::int64_t{0};
    const std::int64_t here = one.block + (rounds < 0 ? -rounds * ranks.stride : 0);
    const std::int64_t there = other.block + (rounds > 0 ? rounds * ranks.stride : 0);
    return std::max(here, there) + 1;
  };
  if (&one == &other && one.once) return 0;
  // A progression whose period is shorter than the time of a send collides with itself.
  if (&one == &other) return period < held ? both(1) : 0;
  const std::int64_t apart =
      port_begin(program, send, one.first) - port_begin(program, other_send, other.first);
  const std::int64_t rest = floor_mod(apart, period), rounds = (apart - rest) / period;
  const std::int64_t here = rest < held ? both(rounds) : 0;
  const std::int64_t later = period - rest < held ? both(rounds + 1) : 0;
  return here == 0 || later == 0 ? here + later : std::min(here, later);
}

// Returns the smallest N for which more than `most` progressions of `together` are of the kind of
// `one`, and on its link unless `any_link`, in the step of its first block; 0: none. All are in the
// same step of the period, and S = 1. (Progressions that are once are only in their first step, so
// no later step has more.)
std::int64_t blocks_to_fill(const RankProgressions& ranks, const Progression& one,
                            const std::vector<const Progression*>& together, std::uint32_t most,
                            bool any_link) {
  const std::int64_t period = ranks.stages[one.stage].period;
  std::vector<std::int64_t> blocks;  // of the others in the step of its first block
  for (const Progression* other : together) {
    const bool same = other->kind == one.kind && (any_link || other->link == one.link);
    const std::int64_t apart = one.first - other->first;
    if (same && other != &one && (apart == 0 || (apart > 0 && !other->once))) {
      blocks.push_back(other->block + apart / period * ranks.stride);
    }
  }
  if (blocks.size() < most) return 0;
  std::nth_element(blocks.begin(), blocks.begin() + (most - 1), blocks.end());
  return std::max<std::int64_t>(one.block, blocks[most - 1]) + 1;
}

// The steps in which progressions of a stage may use a port or link, for every N: from
// slope * (N - 1) + first to slope * (N - 1) + (last + period * (N - 1)) / stride.
struct Times {
  std::int64_t slope = 0, period = 1, first = INT64_MAX, last = INT64_MIN;
  void add(const RankProgressions& ranks, const Progression& one) {
    first = std::min(first, one.first);
    last = std::max(last, one.first * ranks.stride - (one.once ? 0 : period * one.block));
  }
};

// Whether `earlier` ends at least `steps` steps before `later` begins, for every N. The distance is
// at least a line in N; that line must be >= 0 for N = 1 and must not decrease.
bool is_before(const Times& earlier, const Times& later, std::int64_t stride, std::int64_t steps) {
  const std::int64_t growth = stride * (later.slope - earlier.slope) - earlier.period;
  const std::int64_t at_one = stride * (later.first - steps) - earlier.last;
  return growth >= 0 && at_one >= 0;
}

// The times of one progression.
Times times_of(const RankProgressions& ranks, const Progression& one) {
  const Stage& stage = ranks.stages[one.stage];
  Times times{stage.slope, one.once ? 0 : stage.period};
  times.add(ranks, one);
  return times;
}

// Whether two progressions of different stages of a phase share no step for any N that the residue
// allows, modulo a number that both periods and their distance repeat with: N = residue +
// residue_mod * k.
bool in_other_residues(const Program& program, const RankProgressions& ranks,
                       const Progression& one, const Progression& other) {
  const Times a = times_of(ranks, one), b = times_of(ranks, other);
  const std::int64_t mod = std::max<std::int64_t>(1, program.residue_mod);
  const std::int64_t common = std::gcd(std::gcd(a.period, b.period), (b.slope - a.slope) * mod);
  const std::int64_t apart =
      b.first - a.first + (b.slope - a.slope) * (std::int64_t{program.residue} - 1);
  return common != 0 && apart % common != 0;
}

}  // namespace

void PortResidues::begin_node(const Program& program) {
  lanes_.assign(2 * std::size_t{links_count(program)}, 0);
  loads_.assign(lanes_.size(), 0);
}

std::uint32_t PortResidues::lanes_at(const Program& program, const Progression& one) {
  std::uint32_t& lanes = lanes_[channel_of(one)];
  if (lanes == 0) {
    const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(one.link));
    lanes = is_send(one) ? lanes_of(topology_, program.node, peer)
                         : lanes_of(topology_, peer, program.node);
  }
  return lanes;
}

ReadResult PortResidues::check_stages(const Program& program, const RankProgressions& ranks) {
  begin_node(program);
  const bool unit = send_ticks(program) == 1;
  std::optional<WrongFrom> first;  // the smallest N of all groups
  std::optional<Undecided> undecided;
  Group group;
  const auto flush = [&] {
    count_loads(program, ranks, group);
    if (!ranks.single && (!unit || !suffice(program, group))) {
      const ReadResult result = check_group(program, ranks, group);
      if (result.undecided() != nullptr) undecided = *result.undecided();
      const WrongFrom* const wrong = result.error();
      if (wrong != nullptr && (!first || wrong->blocks < first->blocks)) first = *wrong;
    }
    group.clear();
  };
  for (std::size_t stage = 0; stage < ranks.stages.size(); ++stage) {
    const std::int64_t period = ranks.stages[stage].period;
    std::int64_t step = -1;  // of the group, modulo the period
    for (std::size_t k = ranks.stage_begin[stage]; k < ranks.stage_begin[stage + 1]; ++k) {
      const Progression& one = ranks.all[k];
      if (!is_message(one)) continue;
      // If a port is held for one step, only transfers in the same step of the period share it.
      if (unit && one.first % period != step) flush();
      step = one.first % period;
      group.push_back(&one);
    }
    flush();
  }
  return undecided ? ReadResult(*undecided) : ReadResult(first);
}

void PortResidues::count_loads(const Program& program, const RankProgressions& ranks,
                               const Group& group) {
  // With a head, progressions of a group may have no step in common: the load of a step is the
  // greatest where one of them begins (see blocks_to_fill).
  const auto load_at_first = [&group](const Progression& one) {
    return static_cast<std::uint32_t>(
        std::count_if(group.begin(), group.end(), [&one](const Progression* other) {
          return is_send(*other) && other->link == one.link &&
                 (other->first == one.first || (other->first < one.first && !other->once));
        }));
  };
  for (const Progression* one : group) {
    if (!is_send(*one)) continue;
    const std::uint32_t load = ranks.head > 0 ? load_at_first(*one) : ++loads_[channel_of(*one)];
    const std::uint32_t lanes = lanes_at(program, *one);
    if (std::uint64_t{load} * busiest_.capacity <= std::uint64_t{busiest_.load} * lanes) continue;
    busiest_ = {program.node, peer_of(program, static_cast<std::uint32_t>(one->link)), load, lanes};
  }
  for (const Progression* one : group) loads_[channel_of(*one)] = 0;
}

bool PortResidues::suffice(const Program& program, const Group& group) {
  std::size_t sends = 0, receives = 0;
  bool lanes_suffice = true;
  for (const Progression* one : group) {
    ++(is_send(*one) ? sends : receives);
    const std::uint32_t most = std::min(lanes_at(program, *one), kMaxLinkMessages);
    lanes_suffice = ++loads_[channel_of(*one)] <= most && lanes_suffice;
  }
  for (const Progression* one : group) loads_[channel_of(*one)] = 0;
  if (sends > kMaxStepMessages || receives > kMaxStepMessages) return false;
  const bool alone = group.size() <= 1;
  if (sends > 1 && share_port(program.port_model, true, true)) return false;
  if (receives > 1 && share_port(program.port_model, false, false)) return false;
  return lanes_suffice && (alone || !share_port(program.port_model, true, false));
}

ReadResult PortResidues::check_group(const Program& program, const RankProgressions& ranks,
                                     const Group& group) {
  if (group.size() > kMaxTogether) return Undecided{"too many transfers to compare"};
  std::int64_t least = 0;
  const auto collide = [&least](std::int64_t blocks) {
    if (blocks > 0 && (least == 0 || blocks < least)) least = blocks;
  };
  for (const Progression* one : group) {
    const std::uint32_t lanes = lanes_at(program, *one);
    for (const Progression* other : group) {
      collide(blocks_to_collide(program, ranks, *one, *other, lanes));
    }
    if (group.size() > kMaxStepMessages && send_ticks(program) == 1) {
      collide(blocks_to_fill(ranks, *one, group, kMaxStepMessages, true));
    }
    if (lanes <= 1) continue;
    if (send_ticks(program) != 1) return Undecided{"links of several lanes in the postal model"};
    collide(blocks_to_fill(ranks, *one, group, std::min(lanes, kMaxLinkMessages), false));
  }
  return least > 0 ? ReadResult(WrongFrom{least}) : ReadResult();
}

namespace {

// Whether no transfer of stage `first` that `uses` a port shares a step with one of stage `second`
// that does, for any N. A port is held for one step.
template <typename Uses>
bool pairs_are_apart(const Program& program, const RankProgressions& ranks, std::size_t first,
                     std::size_t second, const Uses& uses) {
  std::vector<const Progression*> of_first, of_second;
  for (const Progression& each : ranks.all) {
    if (!uses(each)) continue;
    if (each.stage == first) of_first.push_back(&each);
    if (each.stage == second) of_second.push_back(&each);
  }
  if (of_first.size() * of_second.size() > kMaxTogether) return false;
  for (const Progression* one : of_first) {
    for (const Progression* other : of_second) {
      const Times times = times_of(ranks, *one), other_times = times_of(ranks, *other);
      if (!is_before(times, other_times, ranks.stride, 1) &&
          !is_before(other_times, times, ranks.stride, 1) &&
          !in_other_residues(program, ranks, *one, *other)) {
        return false;
      }
    }
  }
  return true;
}

// Returns the maximum of sends, or of receives, of a stage in one step. Every progression counts as
// if it began at once and did not end.
std::uint32_t messages_in_step(const RankProgressions& ranks, std::size_t stage, bool sends) {
  std::uint32_t most = 0, count = 0;
  std::int64_t step = -1;
  for (std::size_t k = ranks.stage_begin[stage]; k < ranks.stage_begin[stage + 1]; ++k) {
    const Progression& one = ranks.all[k];
    if (!is_message(one) || is_send(one) != sends) continue;
    if (one.first % ranks.stages[stage].period != step) count = 0;
    step = one.first % ranks.stages[stage].period;
    most = std::max(most, ++count);
  }
  return most;
}

// Whether a node counts all sends, or all receives, of stages that may share a step. `times`: of
// these messages, by stage.
bool are_counted(const RankProgressions& ranks, const Times* times, bool sends) {
  const std::size_t stages = ranks.stages.size();
  std::vector<std::uint32_t> messages;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    messages.push_back(messages_in_step(ranks, stage, sends));
  }
  for (std::size_t one = 0; one < stages; ++one) {
    std::uint32_t together = 0;
    for (std::size_t other = 0; other < stages; ++other) {
      if (ranks.stages[one].phase != ranks.stages[other].phase) continue;
      if (times[one].first == INT64_MAX || times[other].first == INT64_MAX) continue;
      if (other != one && (is_before(times[one], times[other], ranks.stride, 1) ||
                           is_before(times[other], times[one], ranks.stride, 1))) {
        continue;
      }
      together += messages[other];
    }
    if (together > kMaxStepMessages) return false;
  }
  return true;
}

}  // namespace

std::optional<Undecided> PortResidues::stages_meet(const Program& program,
                                                   const RankProgressions& ranks) {
  const std::size_t channels = 2 * std::size_t{links_count(program)};
  const std::size_t stages = ranks.stages.size();
  // By channel (each link and direction, then all sends, all receives, both), then stage.
  std::vector<Times> times((channels + 3) * stages);
  for (std::size_t k = 0; k < times.size(); ++k) {
    times[k].slope = ranks.stages[k % stages].slope;
    times[k].period = ranks.stages[k % stages].period;
  }
  for (const Progression& one : ranks.all) {
    if (!is_message(one)) continue;
    for (const std::size_t channel :
         {channel_of(one), channels + (is_send(one) ? 0 : 1), channels + 2}) {
      times[channel * stages + one.stage].add(ranks, one);
    }
  }
  const std::array<bool, 3> shared{share_port(program.port_model, true, true),
                                   share_port(program.port_model, false, false),
                                   share_port(program.port_model, true, false)};
  const std::int64_t steps = 2 * send_ticks(program) - 1;
  for (std::size_t channel = 0; channel < channels + 3; ++channel) {
    if (channel >= channels && !shared[channel - channels]) continue;
    const Times* const all = &times[channel * stages];
    for (std::size_t one = 0; one < stages; ++one) {
      for (std::size_t other = one + 1; other < stages; ++other) {
        if (ranks.stages[one].phase != ranks.stages[other].phase) continue;
        if (all[one].first == INT64_MAX || all[other].first == INT64_MAX) continue;
        if (is_before(all[one], all[other], ranks.stride, steps) ||
            is_before(all[other], all[one], ranks.stride, steps)) {
          continue;
        }
        const auto uses = [&](const Progression& each) {
          return is_message(each) &&
                 (channel < channels
                      ? channel_of(each) == channel
                      : channel == channels + 2 || (channel == channels) == is_send(each));
        };
        if (steps == 1 && pairs_are_apart(program, ranks, one, other, uses)) continue;
        return Undecided{"actions that go on at different paces may share a port or link"};
      }
    }
  }
  for (const bool sends : {true, false}) {
    if (!are_counted(ranks, &times[(channels + (sends ? 0 : 1)) * stages], sends)) {
      return Undecided{
          "actions that go on at different paces may have more messages in a step "
          "than nodes count"};
    }
  }
  return std::nullopt;
}

}  // namespace espalier::verify
