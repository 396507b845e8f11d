// Computes the events for one N from the rows of a program. Part of brute.h.

#include <algorithm>
#include <numeric>

#include "espalier/collectives/schedule/program.h"
#include "tests/mutation/formulas.h"
#include "tests/random/brute.h"

namespace espalier::random {
namespace {

using mutation::count_at;
using mutation::down;

// No phase is this long; and the maximum number of instances examined per action.
constexpr std::int64_t kFar = std::int64_t{1} << 44;
constexpr std::int64_t kMaxEventInstances = 1 << 20;
constexpr std::int32_t kNoLink = -2;
constexpr std::int64_t kSparseSteps = 64;  // steps an event

std::string name(std::uint32_t node) { return "node " + std::to_string(node); }

bool is_transfer(const espalier_Action& action) {
  return action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive;
}

// Clamps a value to 32 bits; one that is out of range stays outside of every table and buffer.
std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -2, 1 << 30));
}

std::int64_t pace_at(Reading& reading, const espalier_Action& action, std::int64_t period,
                     std::int64_t i) {
  return std::clamp(reading.value(action.pace_ref, i), -kFar / period, kFar / period);
}

Memory place_at(Reading& reading, const espalier_Action& action, bool has,
                const espalier_Operand& place, std::int64_t i, std::int64_t blocks) {
  Memory memory;
  if (!has) return memory;
  memory.buffer = static_cast<std::uint8_t>(place.buffer);
  memory.segment = narrow(reading.value(place.segment_ref, i));
  std::int64_t block = reading.value(place.block_ref, i);
  if (action.clamp && block >= blocks) block = blocks - 1;
  memory.block = narrow(block);
  memory.segment_count = std::max<std::int32_t>(1, place.segment_count);
  if (place.buffer == Buffer::kScratch) memory.slot = narrow(reading.value(place.slot_ref, i));
  return memory;
}

std::int32_t peer_at(const Reading& reading, std::int64_t link) {
  const espalier_Program& program = reading.program();
  const bool ring = program.ring_peers > 0;
  const std::int64_t links = ring ? program.ring_peers : program.peers_count;
  if (link < 0 || link >= links) return kNoLink;
  return static_cast<std::int32_t>(ring ? (program.node + 1 + link) % program.ranks
                                        : program.peers[link]);
}

}  // namespace

std::int64_t Reading::read(std::uint32_t ref, std::int64_t i) {
  const std::int64_t value = mutation::index_at(program_, ref, i);
  if (index_value(program_, ref, i) != value) wraps_ = true;
  return value;
}

std::int64_t Reading::value(std::uint32_t ref, std::int64_t i) {
  if (rows_.empty()) rows_.resize(program_.indices_count);
  std::vector<std::int64_t>& row = rows_[ref];
  if (i < 0 || i >= kMaxEventInstances) return read(ref, i);
  // A window's instances are far from those cached so far.
  if (i > static_cast<std::int64_t>(row.size()) + 1024) return read(ref, i);
  while (static_cast<std::int64_t>(row.size()) <= i) {
    row.push_back(read(ref, static_cast<std::int64_t>(row.size())));
  }
  return row[static_cast<std::size_t>(i)];
}

Brute::Window Brute::find_instances(Reading& reading, const espalier_Action& action,
                                    std::int64_t period, Window steps, std::int64_t blocks) {
  const espalier_Program& program = reading.program();
  const std::int64_t start = count_at(program.counts[action.t0_ref], blocks);
  const std::int64_t many = count_at(program.counts[action.instances_ref], blocks);
  if (action.pace_ref == 0) {
    return {std::max<std::int64_t>(0, -down(start - steps.first, period)),
            std::min(many, down(steps.end - 1 - start, period) + 1)};
  }
  // A pace does not decrease, or a whole run shows that it does.
  const auto find = [&](std::int64_t step) {
    std::int64_t low = 0, high = std::max<std::int64_t>(0, many);
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (start + period * pace_at(reading, action, period, middle) < step) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  return {find(steps.first), find(steps.end)};
}

std::string Brute::expand_action(Reading& reading, const espalier_Action& action,
                                 const espalier_Phase& phase, std::int64_t steps, Window window,
                                 NodeEvents& out) {
  const espalier_Program& program = reading.program();
  const std::int64_t start = count_at(program.counts[action.t0_ref], out.blocks);
  const std::int64_t period = phase.period, before = out.phase_ends.back();
  const bool paced = action.pace_ref != 0, whole = window.end == INT64_MAX;
  // Every instance of a pace counts; without a pace, instances outside the phase do not exist.
  Window instances{0, count_at(program.counts[action.instances_ref], out.blocks)};
  if (!paced || !whole) {
    const Window inside{std::max<std::int64_t>(0, window.first - before),
                        std::min(steps, whole ? steps : window.end - before)};
    instances = find_instances(reading, action, period, inside, out.blocks);
  }
  if (instances.end - instances.first > kMaxEventInstances)
    return "more instances than can be looked at";
  const std::uint32_t moved =
      action.kind == ActionKind::kSend ? action.a.block_ref : action.into.block_ref;
  std::int64_t earliest = whole ? 0 : window.first - before, in_step = 0;
  for (std::int64_t i = instances.first; i < instances.end; ++i) {
    const std::int64_t step = start + period * (paced ? pace_at(reading, action, period, i) : i);
    if (paced && (step < earliest || step >= steps)) {
      return name(program.node) + " stalls: the pace of an action falls or leaves its phase";
    }
    in_step = step == earliest ? in_step + 1 : 1;
    if (paced && !is_transfer(action) && in_step > 255) {
      return name(program.node) + " has more operations of an action in a step than it takes";
    }
    earliest = step;
    const std::int64_t block = reading.value(moved, i);
    if (block < 0 || (block >= out.blocks && !action.clamp)) continue;
    Event event;
    event.step = before + step;
    event.kind = static_cast<std::uint8_t>(action.kind);
    event.action = static_cast<std::uint8_t>(&action - program.actions);
    event.phase = static_cast<std::uint8_t>(&phase - program.phases);
    event.after = action.after;
    if (is_transfer(action)) event.peer = peer_at(reading, reading.value(action.link_ref, i));
    if (event.peer == kNoLink) return name(program.node) + " names a link that is not there";
    event.into = place_at(reading, action, action.has_into, action.into, i, out.blocks);
    event.a = place_at(reading, action, action.has_a, action.a, i, out.blocks);
    event.b = place_at(reading, action, action.has_b, action.b, i, out.blocks);
    out.events.push_back(event);
  }
  return {};
}

void Brute::sort_by_time(std::vector<Event>& events) {
  // Events were added in the order of actions and instances, which is also the order within a
  // step's turn.
  if (events.empty()) return;
  const auto [first, last] = std::minmax_element(
      events.begin(), events.end(), [](const Event& a, const Event& b) { return a.step < b.step; });
  const std::int64_t begin = first->step, steps = last->step - begin + 1;
  if (steps > kSparseSteps * static_cast<std::int64_t>(events.size())) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return a.step != b.step ? a.step < b.step : a.turn() < b.turn();
    });
    return;
  }
  // By counting.
  const auto place = [begin](const Event& event) {
    return static_cast<std::size_t>(3 * (event.step - begin) + event.turn());
  };
  begins_.assign(static_cast<std::size_t>(3 * steps + 1), 0);
  for (const Event& event : events) ++begins_[place(event) + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  sorted_.resize(events.size());
  for (const Event& event : events) sorted_[begins_[place(event)]++] = event;
  events.swap(sorted_);
}

std::string Brute::expand(std::uint32_t at, std::int64_t blocks, Window window) {
  NodeEvents& node = nodes_[at];
  const espalier_Program& program = programs_[at];
  node.program = &program;
  node.blocks = blocks;
  node.phase_ends.assign(1, 0);
  node.events.clear();
  std::uint32_t next = 0;
  for (std::uint32_t k = 0; k < program.phases_count; ++k) {
    const espalier_Phase& phase = program.phases[k];
    const std::int64_t steps =
        std::max<std::int64_t>(0, count_at(program.counts[phase.steps_ref], blocks));
    for (std::uint32_t end = next + phase.actions; next < end; ++next) {
      std::string wrong =
          expand_action(readings_[at], program.actions[next], phase, steps, window, node);
      if (!wrong.empty()) return wrong;
    }
    node.phase_ends.push_back(node.phase_ends.back() + steps);
  }
  node.phase_ends.erase(node.phase_ends.begin());
  if (readings_[at].wraps()) return name(at) + " has an index that wraps";
  sort_by_time(node.events);
  for (const Event& event : node.events) {
    for (const Memory* place : {&event.into, &event.a, &event.b}) {
      std::string wrong = check_operand(node, *place);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace espalier::random
