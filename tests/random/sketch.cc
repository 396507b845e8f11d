#include "tests/random/sketch.h"

#include <algorithm>
#include <array>

namespace espalier::random {
namespace {

std::int64_t ceil_of(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// Maximum turns of a ring.
constexpr std::int64_t kMaxTurns = 24;

}  // namespace

std::int32_t Sketch::caller(std::uint32_t node, Buffer buffer, std::uint32_t segment,
                            std::uint32_t block, bool before, std::uint32_t segment_count) {
  const auto [entry, fresh] =
      callers_.try_emplace({{node, buffer}, {segment, block}}, static_cast<int>(cells_.size()));
  if (fresh) {
    Cell cell;
    cell.node = node;
    cell.buffer = buffer;
    cell.segment = segment;
    cell.block = block;
    cell.before = before;
    cell.segment_count = segment_count;
    cells_.push_back(cell);
  }
  return entry->second;
}

std::int32_t Sketch::scratch(std::uint32_t node, std::uint32_t segment, std::uint32_t block,
                             std::uint32_t segment_count) {
  Cell cell;
  cell.node = node;
  cell.buffer = Buffer::kScratch;
  cell.segment = segment;
  cell.block = block;
  cell.segment_count = segment_count;
  cells_.push_back(cell);
  return static_cast<std::int32_t>(cells_.size()) - 1;
}

bool Sketch::is_received(std::int32_t cell) const {
  const std::vector<std::int32_t>& writers = cells_[static_cast<std::size_t>(cell)].writers;
  return !writers.empty() &&
         tasks_[static_cast<std::size_t>(writers.back())].kind == ActionKind::kSend;
}

void Sketch::need(Task& task, std::int32_t other, std::int64_t later) {
  task.needs.emplace_back(other, later);
}

// Tasks are in the order of a lock-step run: in a step sends read, receives write, operations run.
// Operations of one step are kept apart if one needs the other.
void Sketch::read(Task& task, std::int32_t at) {
  Cell& cell = cells_[static_cast<std::size_t>(at)];
  cell.readers.push_back(static_cast<std::int32_t>(tasks_.size()));
  if (cell.writers.empty()) return;
  const bool received = is_received(at);
  const bool send = task.kind == ActionKind::kSend;
  // `after` is for one step; writes before it must have retired.
  for (const std::int32_t writer : cell.writers) need(task, writer, plan_.window);
  task.needs.back().second = send || !received ? 1 : 0;
  if (send || received) task.awaited = cell.writers.back();
}

void Sketch::write(Task& task, std::int32_t at) {
  Cell& cell = cells_[static_cast<std::size_t>(at)];
  const auto self = static_cast<std::int32_t>(tasks_.size());
  if (task.part.segment_count <
      cell.segment_count) {  // parts are disjoint, and all are written before a read
    cell.writers.push_back(self);
    return;
  }
  for (const std::int32_t reader : cell.readers) {
    if (reader == self) continue;
    const bool send = tasks_[static_cast<std::size_t>(reader)].kind == ActionKind::kSend;
    const std::int64_t flight = plan_.latency_ticks;
    need(task, reader, send ? 1 - flight : 1);
  }
  if (!cell.writers.empty()) need(task, cell.writers.back(), is_received(at) ? 0 : 1);
  cell.readers.clear();
  cell.writers = {self};
}

void Sketch::add(ActionKind kind, std::int32_t a, std::int32_t b, std::int32_t into, Part part) {
  Task task;
  task.kind = kind;
  task.a = a;
  task.b = b;
  task.into = into;
  task.part = part;
  read(task, a);
  if (b >= 0) read(task, b);
  write(task, into);
  tasks_.push_back(task);
}

void Sketch::send(std::int32_t from, std::int32_t into, Part part) {
  add(ActionKind::kSend, from, -1, into, part);
}

void Sketch::combine(std::int32_t left, std::int32_t right, std::int32_t into) {
  add(ActionKind::kCombine, left, right, into, {});
}

void Sketch::copy(std::int32_t from, std::int32_t into, Part part) {
  add(ActionKind::kCopy, from, -1, into, part);
}

// The step in which the task's result is available.
std::int64_t Sketch::landed(const Task& task) const {
  return task.kind == ActionKind::kSend ? task.step + plan_.latency_ticks - 1 : task.step;
}

// Calls `use` for each port and lane that a message occupies, in each of its steps: with its count
// of uses and the maximum.
template <typename Use>
void Sketch::each_port(const Task& task, std::int64_t step, std::int64_t pace, const Use& use) {
  const std::uint32_t from = cells_[static_cast<std::size_t>(task.a)].node;
  const std::uint32_t to = cells_[static_cast<std::size_t>(task.into)].node;
  const auto hold = [&](Uses& uses, std::int64_t first, std::int64_t most) {
    uses.resize(static_cast<std::size_t>(pace));
    for (std::int64_t tick = 0; tick < plan_.send_ticks; ++tick) {
      use(uses[static_cast<std::size_t>((first + tick) % pace)], most);
    }
  };
  const std::int64_t arrival = step + plan_.latency_ticks - plan_.send_ticks;
  const PortModel model = plan_.ports;
  if (model != PortModel::kMultiport) hold(ports_[{from, 0}], step, 1);
  if (model == PortModel::kSimplex) hold(ports_[{to, 0}], arrival, 1);
  if (model == PortModel::kOnePortDuplex) hold(ports_[{to, 1}], arrival, 1);
  const std::vector<std::uint32_t> nodes = plan_.topology->route(from, to);
  const bool far = nodes.size() != 2;
  if (far) hold(lanes_[{from, to}], step, 1);
  if (far && !plan_.links) return;
  for (std::size_t hop = 0; hop + 1 < nodes.size(); ++hop) {
    // If links do not count, neighbours still have no more lanes than their link.
    hold(lanes_[{nodes[hop], nodes[hop + 1]}], step,
         plan_.topology->capacity(nodes[hop], nodes[hop + 1]));
  }
}

bool Sketch::fits(const Task& task, std::int64_t step, std::int64_t pace) {
  if (task.kind != ActionKind::kSend) return true;
  bool fits = plan_.send_ticks <= pace;
  each_port(task, step, pace,
            [&](std::int64_t& uses, std::int64_t most) { fits = fits && uses < most; });
  return fits;
}

void Sketch::take(const Task& task, std::int64_t step, std::int64_t pace) {
  if (task.kind != ActionKind::kSend) return;
  each_port(task, step, pace, [](std::int64_t& uses, std::int64_t) { ++uses; });
}

std::int64_t Sketch::least_pace() const {
  std::map<std::uint32_t, std::int64_t> sends, receives;
  std::int64_t most = 1;
  for (const Task& task : tasks_) {
    if (task.kind != ActionKind::kSend) continue;
    std::int64_t& sent = sends[cells_[static_cast<std::size_t>(task.a)].node];
    std::int64_t& got = receives[cells_[static_cast<std::size_t>(task.into)].node];
    most = std::max({most, ++sent, ++got});
  }
  const bool multiport = plan_.ports == PortModel::kMultiport;
  return multiport ? 1 : most * plan_.send_ticks;
}

bool Sketch::schedule(Dice& dice, std::int64_t pace) {
  pace_ = pace;
  ports_.clear();
  lanes_.clear();
  // No slack, the same after every task, or a different one after each.
  const std::uint32_t slack = dice.number(0, plan_.regular ? 1 : 2);
  const std::uint32_t max_slack = dice.number(0, 4);
  for (Task& task : tasks_) {
    std::int64_t earliest = 0;
    for (const auto& [other, later] : task.needs) {
      const Task& needed = tasks_[static_cast<std::size_t>(other)];
      earliest = std::max(earliest, landed(needed) + later);
    }
    if (slack == 1) earliest += max_slack;
    if (slack == 2) earliest += dice.number(0, max_slack);
    task.step = earliest;
    while (!fits(task, task.step, pace)) {
      if (++task.step == earliest + pace) return false;
    }
    take(task, task.step, pace);
    const std::int32_t awaited = task.awaited;
    // A task that waits for nothing may wait for any step before.
    task.after = dice.one_in(6) ? dice.number(0, 5) : 0;
    if (awaited >= 0) task.after = task.step - landed(tasks_[static_cast<std::size_t>(awaited)]);
  }
  return true;
}

void Sketch::touch(std::int32_t at, std::int64_t step) {
  if (at < 0) return;
  Cell& cell = cells_[static_cast<std::size_t>(at)];
  if (cell.first < 0 || step < cell.first) cell.first = step;
  cell.last = std::max(cell.last, step);
}

Spot Sketch::spot(std::int32_t at, std::uint32_t part) const {
  if (at < 0) return {};
  const Cell& cell = cells_[static_cast<std::size_t>(at)];
  const bool slots = cell.buffer == Buffer::kScratch;
  return {cell.buffer, cell.segment + part, cell.ring, slots ? part : 0};
}

bool Sketch::add_to(Plan& plan, std::uint32_t stage, Dice& dice) {
  for (const Task& task : tasks_) {
    touch(task.a, task.step);
    touch(task.b, task.step);
    touch(task.into, landed(task));
  }
  if (!add_rings(plan, dice)) return false;
  add_progressions(plan, stage, dice);
  return true;
}

bool Sketch::add_rings(Plan& plan, Dice& dice) {
  // The turns after which a slot may be written again; a common number keeps its period short.
  std::vector<std::int64_t> turns(cells_.size(), 0), most(plan.nodes.size(), 0);
  std::vector<bool> by_receive(cells_.size(), false);
  for (const Task& task : tasks_) {
    if (task.kind == ActionKind::kSend) by_receive[static_cast<std::size_t>(task.into)] = true;
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = cells_[i];
    if (cell.buffer != Buffer::kScratch || cell.first < 0) continue;
    // A receive may write once its step is issued; an operation waits for the sends before it.
    const std::int64_t held = cell.last - cell.first + (by_receive[i] ? plan.window : 1);
    turns[i] = plan.pipelined ? ceil_of(held, pace_) : 1;
    most[cell.node] = std::max(most[cell.node], turns[i]);
    if (turns[i] > kMaxTurns) return false;
  }
  const std::uint32_t choice = dice.number(0, 4);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    Cell& cell = cells_[i];
    if (turns[i] == 0) continue;
    NodePlan& node = plan.nodes[cell.node];
    std::int64_t many = choice < 3 ? most[cell.node] : turns[i];
    if (choice == 3) {
      static constexpr std::array<std::int64_t, 9> kTurns = {1, 2, 3, 4, 6, 8, 12, 16, 24};
      many = *std::find_if(kTurns.begin(), kTurns.end(), [&](auto k) { return k >= turns[i]; });
    }
    if (plan.pipelined && dice.one_in(12)) ++many;
    cell.ring = static_cast<std::int32_t>(node.rings.size());
    node.rings.push_back({node.taken, cell.segment_count, many});
    node.taken += static_cast<std::uint32_t>(cell.segment_count * many);
    node.scratch = std::max(node.scratch, node.taken);
  }
  return true;
}

void Sketch::add_progressions(Plan& plan, std::uint32_t stage, Dice& dice) {
  std::uint32_t message = 0;
  for (const Task& task : tasks_) {
    const Cell& from = cells_[static_cast<std::size_t>(task.a)];
    const Cell& to = cells_[static_cast<std::size_t>(task.into)];
    Progression one;
    one.stage = stage;
    one.block = to.block;
    one.segment_count = task.part.segment_count;
    one.first = task.step;
    one.message = message;
    one.after = static_cast<std::uint32_t>(task.after);
    // Steps a window back have retired.
    const bool retired = task.awaited >= 0 && one.after >= plan.window;
    if (retired && dice.one_in(3)) one.after = dice.one_in(2) ? 0 : plan.window;
    one.a = spot(task.a, task.part.from);
    if (task.kind == ActionKind::kSend) {
      ++message;
      one.kind = ActionKind::kSend;
      one.peer = to.node;
      plan.nodes[from.node].all.push_back(one);  // `into` is still empty
      one.kind = ActionKind::kReceive;
      one.peer = from.node;
      one.first = landed(task);
      one.after = 0;
      one.a = {};
    } else {
      one.kind = task.kind;
      one.b = spot(task.b, 0);
    }
    one.into = spot(task.into, task.part.into);
    plan.nodes[to.node].all.push_back(one);
  }
}

}  // namespace espalier::random
