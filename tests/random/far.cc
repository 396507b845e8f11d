#include "tests/random/far.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "espalier/internal/collectives/machine/detail/instance_scheduler.h"
#include "tests/mutation/formulas.h"

namespace espalier::random {
namespace {

constexpr std::int64_t kFarBlocks = std::int64_t{1} << 29;
constexpr std::int64_t kWindow = 160;     // steps: longer than any block stays in a slot
constexpr std::int64_t kFirstSteps = 48;  // compared with the instance scheduler

// At most 2^29, and allowed by the residue.
std::int64_t choose_blocks(const Program& program, contention::Dice& dice) {
  static constexpr std::int64_t kMost[] = {kFarBlocks,     kFarBlocks, kFarBlocks - 1,
                                           kFarBlocks / 2, 1 << 20,    1 << 14};
  std::int64_t blocks = kMost[dice.number(0, 5)] - dice.number(0, 9);
  if (program.residue_mod == 0) return blocks;
  while (blocks % program.residue_mod != program.residue % program.residue_mod) --blocks;
  return blocks;
}

using Row = std::tuple<std::int64_t, std::uint32_t, std::int64_t>;  // step, action, block

// Within a step in the order of actions; instances of one action in one step keep their order.
void sort_by_action(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  });
}

// The actions of the machine in the first steps, within a step in the order of actions.
std::vector<Row> first_rows(const Program& program, std::int64_t blocks) {
  std::vector<Row> rows;
  const auto scheduler = std::make_unique<InstanceScheduler>();
  if (!InstanceScheduler::fits(program, static_cast<std::uint32_t>(blocks))) return rows;
  scheduler->start(program, static_cast<std::uint32_t>(blocks));
  // Adds the row's next instance if it exists, and goes to the following one.
  const auto take = [&](std::int64_t step, std::uint32_t row) {
    const Action& action = scheduler->action(row);
    const bool send = action.kind == ActionKind::kSend;
    const std::uint32_t ref = send ? action.a.block_ref : action.into.block_ref;
    if (scheduler->exists(row)) {
      rows.emplace_back(step, scheduler->first_action() + row, scheduler->block(row, ref));
    }
    scheduler->advance(row);
  };
  while (scheduler->good() && scheduler->next_step() < kFirstSteps) {
    const std::int64_t step = scheduler->next_step();
    Rows later = scheduler->next_rows();
    for (std::uint32_t row = 0; row < kMaxActions; ++row) {
      if ((later >> row & 1) == 0) continue;
      const Action& action = scheduler->action(row);
      const bool transfer = action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive;
      if (action.pace_ref == 0 || !transfer) continue;
      for (std::uint32_t left = scheduler->in_step(row); left > 0; --left) take(step, row);
      later &= ~(Rows{1} << row);
    }
    scheduler->take_step();
    for (std::uint32_t row = 0; row < kMaxActions; ++row) {
      if ((later >> row & 1) == 0) continue;
      do {
        take(step, row);
      } while (scheduler->runs_again(row, step));
    }
  }
  sort_by_action(rows);
  return rows;
}

std::string check_timetable(const NodeEvents& node) {
  const auto& program = static_cast<const Program&>(*node.program);
  const std::vector<Row> rows = first_rows(program, node.blocks);
  std::vector<Row> wanted;
  const std::int64_t end = node.phase_ends.empty() ? 0 : node.phase_ends[0];
  for (const Event& event : node.events) {
    if (event.step >= std::min(end, kFirstSteps)) continue;
    const Memory& moved = event.is_send() ? event.a : event.into;
    wanted.emplace_back(event.step, event.action, moved.block);
  }
  sort_by_action(wanted);
  std::vector<Row> first_phase;
  for (const Row& row : rows) {
    if (std::get<0>(row) < end) first_phase.push_back(row);
  }
  return first_phase == wanted ? std::string()
                               : "node " + std::to_string(program.node) +
                                     ": the machine's timetable does something else";
}

}  // namespace

std::string check_slots(const NodeEvents& node) {
  const bool named = node.program->collective != Collective::kAllToAll;
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> holds;  // segment, block; by slot
  const auto read = [&](const Memory& place) {
    if (place.buffer != Buffer::kScratch) return true;
    const auto at = holds.find(place.slot);
    if (at == holds.end()) return true;
    return (!named || at->second.first == place.segment) && at->second.second == place.block;
  };
  const std::vector<Event>& events = node.events;
  for (const Event& event : events) {
    if (!read(event.a) || !read(event.b)) {
      return "node " + std::to_string(node.program->node) +
             " reads a slot of another block in step " + std::to_string(event.step);
    }
    if (event.into.buffer != Buffer::kScratch) continue;
    holds[event.into.slot] = {event.into.segment, event.into.block};
  }
  return {};
}

std::string check_far(const Programs& programs, Brute& brute, contention::Dice& dice) {
  const Program& common = programs[0];
  const std::int64_t blocks = choose_blocks(common, dice);
  std::int64_t begin = 0;
  for (std::uint32_t phase = 0; phase < common.phases_count; ++phase) {
    const std::int64_t steps =
        mutation::count_at(common.counts[common.phases[phase].steps_ref], blocks);
    const std::int64_t end = begin + steps;
    const std::int64_t middle = begin + static_cast<std::int64_t>(static_cast<double>(steps) *
                                                                  (dice.number(0, 999) / 1000.0));
    for (const std::int64_t first : {begin, middle, end - kWindow}) {
      const Brute::Window window{std::max(begin, first),
                                 std::min(end, std::max(begin, first) + kWindow)};
      std::string wrong = brute.check_window(blocks, window);
      if (!wrong.empty()) return wrong;
      bool used = window.end < end;
      for (const NodeEvents& node : brute.nodes()) {
        used = used || (!node.events.empty() && node.events.back().step == end - 1);
        if (wrong.empty() && first == 0) wrong = check_timetable(node);
      }
      if (!used) wrong = "a phase claims more steps than it takes";
      if (!wrong.empty()) return "N = " + std::to_string(blocks) + ": " + wrong;
    }
    begin = end;
  }
  return {};
}

}  // namespace espalier::random
