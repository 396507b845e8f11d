#include "collectives/verify/port_residues.h"

#include <algorithm>
#include <array>

#include "espalier/base/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::size_t kMaxTogether = 4096;  // transfers compared in pairs

bool is_send(const Progression& one) { return one.kind == espalier_Kind_SEND; }
// Of a run one message is sent: that of its first segment.
bool is_message(const Progression& one) { return one.link >= 0 && one.part == 0; }

std::size_t channel_of(const Progression& one) {
  return 2 * static_cast<std::size_t>(one.link) + (is_send(one) ? 1 : 0);
}

// The least N for which two progressions of a stage (or one with itself) share a port in some step,
// on links of `lanes`; 0: none. Above one lane blocks_to_fill() counts them.
std::int64_t blocks_to_collide(const Program& program, const RankProgressions& ranks,
                               const Progression& one, const Progression& other,
                               std::uint32_t lanes) {
  const bool send = is_send(one), other_send = is_send(other);
  const bool same_lane = send == other_send && one.link == other.link && lanes == 1;
  if (!same_lane && !share_port(program.port_model, send, other_send)) return 0;
  const std::int64_t held = send_ticks(program), period = ranks.stages[one.stage].period;
  // The least N for which `other` has the block that is `rounds` of its own ahead of one of `one`.
  const auto both = [&](std::int64_t rounds) {
    const std::int64_t here = one.block + (rounds < 0 ? -rounds * ranks.stride : 0);
    const std::int64_t there = other.block + (rounds > 0 ? rounds * ranks.stride : 0);
    return std::max(here, there) + 1;
  };
  // A progression that returns before its port is free meets itself.
  if (&one == &other) return period < held ? both(1) : 0;
  const std::int64_t apart =
      port_begin(program, send, one.first) - port_begin(program, other_send, other.first);
  const std::int64_t rest = floor_mod(apart, period), rounds = (apart - rest) / period;
  std::int64_t least = 0;
  if (rest < held) least = both(rounds);
  if (period - rest < held) {
    const std::int64_t later = both(rounds + 1);
    least = least == 0 ? later : std::min(least, later);
  }
  return least;
}

// The least N for which more progressions of `together`, all in the same step of the period, than
// the link has lanes need it in the step of `one`'s first block; S = 1. 0: none.
std::int64_t blocks_to_fill(const RankProgressions& ranks, const Progression& one,
                            const std::vector<const Progression*>& together, std::uint32_t lanes) {
  const std::int64_t period = ranks.stages[one.stage].period;
  std::vector<std::int64_t> blocks;  // that others on the lanes have in the step of its first
  for (const Progression* other : together) {
    const bool same = other->kind == one.kind && other->link == one.link;
    const std::int64_t apart = one.first - other->first;
    if (same && other != &one && apart >= 0) {
      blocks.push_back(other->block + apart / period * ranks.stride);
    }
  }
  if (blocks.size() < lanes) return 0;
  std::nth_element(blocks.begin(), blocks.begin() + (lanes - 1), blocks.end());
  return std::max<std::int64_t>(one.block, blocks[lanes - 1]) + 1;
}

// The steps in which a stage's progressions may use a port or link, for every N: from
// slope * N + first on, up to slope * N + (last + period * (N - 1)) / stride.
struct Times {
  std::int64_t slope = 0, period = 1, first = INT64_MAX, last = INT64_MIN;
  void add(const RankProgressions& ranks, const Progression& one) {
    first = std::min(first, one.first);
    last = std::max(last, one.first * ranks.stride - period * one.block);
  }
};

// Whether `earlier` ends at least `steps` steps before `later` begins, for every N: the distance is
// at least a line in N, which is not negative for N = 1 and does not fall.
bool is_before(const Times& earlier, const Times& later, std::int64_t stride, std::int64_t steps) {
  const std::int64_t growth = stride * (later.slope - earlier.slope) - earlier.period;
  const std::int64_t at_one =
      stride * (later.slope - earlier.slope + later.first - steps) - earlier.last;
  return growth >= 0 && at_one >= 0;
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

std::int64_t PortResidues::least_collision(const Program& program, const RankProgressions& ranks,
                                           std::string& why) {
  begin_node(program);
  const bool unit = send_ticks(program) == 1;
  std::int64_t least = 0;
  Group group;
  const auto flush = [&] {
    count_loads(program, group);
    if (!ranks.single && (!unit || !suffice(program, group))) {
      const std::int64_t blocks = collision(program, ranks, group, why);
      if (blocks > 0 && (least == 0 || blocks < least)) least = blocks;
    }
    group.clear();
  };
  for (std::size_t stage = 0; stage < ranks.stages.size(); ++stage) {
    const std::int64_t period = ranks.stages[stage].period;
    std::int64_t step = -1;  // of the group, in the period
    for (std::size_t k = ranks.stage_begin[stage]; k < ranks.stage_begin[stage + 1]; ++k) {
      const Progression& one = ranks.all[k];
      if (!is_message(one)) continue;
      // Where a port is held for one step, only transfers in the same step of the period share it.
      if (unit && one.first % period != step) flush();
      step = one.first % period;
      group.push_back(&one);
    }
    flush();
  }
  return least;
}

void PortResidues::count_loads(const Program& program, const Group& group) {
  for (const Progression* one : group) {
    if (!is_send(*one)) continue;
    const std::uint32_t load = ++loads_[channel_of(*one)];
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
    lanes_suffice = ++loads_[channel_of(*one)] <= lanes_at(program, *one) && lanes_suffice;
  }
  for (const Progression* one : group) loads_[channel_of(*one)] = 0;
  const bool alone = group.size() <= 1;
  if (sends > 1 && share_port(program.port_model, true, true)) return false;
  if (receives > 1 && share_port(program.port_model, false, false)) return false;
  return lanes_suffice && (alone || !share_port(program.port_model, true, false));
}

std::int64_t PortResidues::collision(const Program& program, const RankProgressions& ranks,
                                     const Group& group, std::string& why) {
  if (group.size() > kMaxTogether) {
    why = "too many transfers to compare";
    return 0;
  }
  std::int64_t least = 0;
  const auto collide = [&least](std::int64_t blocks) {
    if (blocks > 0 && (least == 0 || blocks < least)) least = blocks;
  };
  for (const Progression* one : group) {
    const std::uint32_t lanes = lanes_at(program, *one);
    for (const Progression* other : group) {
      collide(blocks_to_collide(program, ranks, *one, *other, lanes));
    }
    if (lanes <= 1) continue;
    if (send_ticks(program) != 1) why = "links of several lanes in the postal model";
    collide(blocks_to_fill(ranks, *one, group, lanes));
  }
  return least;
}

std::string PortResidues::stages_meet(const Program& program, const RankProgressions& ranks) {
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
        return "actions that go on at different paces may share a port or link";
      }
    }
  }
  return {};
}

}  // namespace espalier::verify
