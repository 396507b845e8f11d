#include <algorithm>
#include <map>
#include <tuple>

#include "collectives/embed/placement.h"
#include "collectives/schedule/expand.h"

namespace espalier::embed {
namespace {

// Enough blocks that every action of a period has an instance, even with runs of kMaxRunLength
// blocks.
constexpr std::int64_t kBlocks = 64;

struct PhaseTime {
  std::int64_t begin = 0;  // step of the schedule, for N = kBlocks
  std::uint32_t slots = 1;
  bool repeats = false;
};

std::vector<PhaseTime> phases_of(const Program& program) {
  std::vector<PhaseTime> phases;
  std::int64_t begin = 0;
  for (std::uint32_t i = 0; i < program.phases_count; ++i) {
    const Phase& phase = program.phases[i];
    const Count& steps = program.counts[phase.steps_ref];
    const std::int64_t length = count_value(steps, kBlocks);
    const bool repeats = steps.b != 0 || steps.c != 0;
    phases.push_back({begin, repeats ? phase.period : static_cast<std::uint32_t>(length), repeats});
    begin += length;
  }
  return phases;
}

}  // namespace

Traffic traffic_of(const Programs& programs) {
  Traffic traffic;
  traffic.ranks = static_cast<std::uint32_t>(programs.size());
  const std::vector<PhaseTime> phases = phases_of(programs.front());
  for (const PhaseTime& phase : phases) traffic.slots.push_back(phase.slots);
  // From, to, segment, slot, phase.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Key, std::int64_t> first;
  for (const Program& program : programs) {
    for (const Instance& send : expand(program, kBlocks)) {
      if (send.kind != ActionKind::kSend) continue;
      const PhaseTime& phase = phases[send.phase];
      const std::int64_t step = send.step - phase.begin;
      const auto slot = static_cast<std::uint32_t>(phase.repeats ? step % phase.slots : step);
      const Key key{program.node, static_cast<std::uint32_t>(send.peer),
                    static_cast<std::uint32_t>(send.a.segment), slot, send.phase};
      first.insert({key, step});  // instances are in the order of their steps
    }
  }
  for (const auto& [key, step] : first) {
    const auto& [from, to, segment, slot, phase] = key;
    traffic.transfers.push_back({from, to, segment, slot, phase, step});
  }
  std::stable_sort(traffic.transfers.begin(), traffic.transfers.end(),
                   [](const Transfer& a, const Transfer& b) {
                     return std::tie(a.phase, a.first) < std::tie(b.phase, b.first);
                   });
  return traffic;
}

}  // namespace espalier::embed
