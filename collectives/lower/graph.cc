#include "collectives/lower/graph.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "collectives/schedule/expand.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier::lower {
namespace {

// The content of memory: the task that last wrote it.
struct Memory {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> output;  // by segment and block
  std::map<std::int64_t, std::int32_t> scratch;                          // by slot
};

// Executes in lock step for one N, on values only.
class Reader {
 public:
  Reader(const Programs& routed, std::int64_t blocks)
      : routed_(routed), blocks_(blocks), memory_(routed.size()) {}

  Result<Graph> read() {
    std::vector<std::vector<Instance>> all;
    std::int64_t steps = 0;
    std::size_t instances = 0;
    for (const Program& program : routed_) {
      all.push_back(expand(program, blocks_));
      instances += all.back().size();
      // Each is one task, but a message is two instances.
      if (instances > 3 * kMaxTasks) return fail(too_many());
      if (!all.back().empty()) steps = std::max(steps, all.back().back().step + 1);
    }
    std::vector<std::size_t> begin(all.size(), 0), end(all.size(), 0);
    for (std::int64_t step = 0; step < steps && !wrong_; ++step) {
      for (std::uint32_t node = 0; node < all.size(); ++node) {
        begin[node] = end[node];
        while (end[node] < all[node].size() && all[node][end[node]].step == step) ++end[node];
      }
      for (int turn = 0; turn < 3; ++turn) {
        for (std::uint32_t node = 0; node < all.size(); ++node) {
          for (std::size_t k = begin[node]; k < end[node]; ++k) follow(node, all[node][k], turn);
        }
      }
      if (tasks_.size() > kMaxTasks) return fail(too_many());
    }
    if (wrong_) return fail(*wrong_);
    for (Memory& memory : memory_) {
      for (const auto& [operand, task] : memory.output) tasks_[as_index(task)].output = true;
    }
    return Graph{static_cast<std::int32_t>(blocks_), std::move(tasks_), {}};
  }

 private:
  using Values = std::vector<TaskInput>;  // of consecutive segments

  static std::string too_many() {
    return "it has more than " + std::to_string(kMaxTasks) + " messages and operations";
  }
  // Sends read the data from before the step, receives write, then operations run.
  void follow(std::uint32_t node, const Instance& one, int turn) {
    const bool transfer = one.kind == ActionKind::kSend || one.kind == ActionKind::kReceive;
    if (wrong_ || turn != (one.kind == ActionKind::kSend ? 0 : transfer ? 1 : 2)) return;
    if (transfer && (one.peer < 0 || at_node(one.peer) >= routed_.size())) {
      return refuse(node, one, "a peer has no program");
    }
    if (one.kind == ActionKind::kSend) {
      on_way_[{node, at_node(one.peer)}].push_back(read_operand(node, one, one.a));
    } else if (one.kind == ActionKind::kReceive) {
      receive(node, one);
    } else {
      operate(node, one);
    }
  }

  static std::uint32_t at_node(std::int64_t peer) { return static_cast<std::uint32_t>(peer); }

  void refuse(std::uint32_t node, const Instance& one, const std::string& what) {
    wrong_ = Error{"rank " + std::to_string(node) + ", step " + std::to_string(one.step) + ": " +
                   what + "; verify the routed schedule first"};
  }

  Values read_operand(std::uint32_t node, const Instance& one, const OperandAt& operand) {
    Values values;
    for (std::int64_t part = 0; part < operand.segment_count; ++part) {
      TaskInput input{-1, static_cast<std::int32_t>(operand.segment_at(part))};
      if (operand.buffer != Buffer::kInput) {
        input.task = holds(node, operand, part);
        if (input.task < 0 || tasks_[as_index(input.task)].block != operand.block) {
          refuse(node, one, "it reads an operand that does not hold its block");
        } else {
          input.segment = tasks_[as_index(input.task)].segment;
        }
      }
      values.push_back(input);
    }
    return values;
  }

  std::int32_t holds(std::uint32_t node, const OperandAt& operand, std::int64_t part) const {
    const Memory& memory = memory_[node];
    if (operand.buffer == Buffer::kScratch) {
      const auto found = memory.scratch.find(operand.slot + part);
      return found == memory.scratch.end() ? -1 : found->second;
    }
    const auto found = memory.output.find({operand.segment + part, operand.block});
    return found == memory.output.end() ? -1 : found->second;
  }

  void write(std::uint32_t node, const OperandAt& operand, std::int64_t part, Task task) {
    task.to = node;
    task.block = static_cast<std::int32_t>(operand.block);
    task.segment = static_cast<std::int32_t>(operand.segment_at(part));
    const auto number = static_cast<std::int32_t>(tasks_.size());
    if (operand.buffer == Buffer::kScratch) {
      memory_[node].scratch[operand.slot + part] = number;
    } else {
      memory_[node].output[{operand.segment + part, operand.block}] = number;
    }
    tasks_.push_back(task);
  }

  void receive(std::uint32_t node, const Instance& one) {
    std::deque<Values>& coming = on_way_[{at_node(one.peer), node}];
    if (coming.empty() || coming.front().size() != one.into.segment_count) {
      return refuse(node, one, "nothing like it is sent");
    }
    for (std::size_t part = 0; part < one.into.segment_count; ++part) {
      Task task;
      task.kind = ActionKind::kSend;
      task.from = at_node(one.peer);
      task.a = coming.front()[part];
      task.step = one.step;
      write(node, one.into, static_cast<std::int64_t>(part), task);
    }
    coming.pop_front();
  }

  void operate(std::uint32_t node, const Instance& one) {
    const bool combine = one.kind == ActionKind::kCombine;
    const Values left = read_operand(node, one, one.a);
    const Values right = combine ? read_operand(node, one, one.b) : Values(left.size());
    if (left.size() != one.into.segment_count || right.size() != one.into.segment_count) {
      return refuse(node, one, "its places have runs of different lengths");
    }
    for (std::size_t part = 0; part < one.into.segment_count && !wrong_; ++part) {
      Task task{
          .kind = one.kind, .from = node, .a = left[part], .b = right[part], .step = one.step};
      write(node, one.into, static_cast<std::int64_t>(part), task);
    }
  }

  const Programs& routed_;
  std::int64_t blocks_;
  std::vector<Memory> memory_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Values>> on_way_;
  std::vector<Task> tasks_;
  std::optional<Error> wrong_;  // the last
};

// The history of each block, as numbers that are equal for equal tasks; sorted by block.
std::vector<std::vector<std::int32_t>> outlines_of(const Graph& graph) {
  std::map<std::array<std::int64_t, 10>, std::int32_t> numbers;
  std::vector<std::int32_t> of_task;
  std::vector<std::vector<std::int32_t>> outlines(static_cast<std::size_t>(graph.blocks));
  for (const Task& task : graph.tasks) {
    // A task comes after the tasks that it reads from.
    ESPALIER_ASSERT(task.a.task < static_cast<std::int32_t>(of_task.size()));
    ESPALIER_ASSERT(task.b.task < static_cast<std::int32_t>(of_task.size()));
    ESPALIER_ASSERT(0 <= task.block && task.block < graph.blocks);
    const auto source = [&](const TaskInput& operand) -> std::int64_t {
      return operand.task < 0 ? -1 : of_task[static_cast<std::size_t>(operand.task)];
    };
    const auto [entry, fresh] =
        numbers.try_emplace({task.kind, task.from, task.to, task.segment, task.output ? 1 : 0,
                             source(task.a), task.a.segment, source(task.b), task.b.segment, 0},
                            static_cast<std::int32_t>(numbers.size()));
    of_task.push_back(entry->second);
    outlines[static_cast<std::size_t>(task.block)].push_back(entry->second);
  }
  for (auto& outline : outlines) std::sort(outline.begin(), outline.end());
  return outlines;
}

bool repeats(const Graph& graph) {
  const auto outlines = outlines_of(graph);
  const std::size_t half = outlines.size() / 2;
  return std::equal(outlines.begin(), outlines.begin() + static_cast<std::ptrdiff_t>(half),
                    outlines.begin() + static_cast<std::ptrdiff_t>(half));
}

// Keeps `blocks` blocks from `first` onward, and numbers them from 0. Each task reads only from its
// own block.
void keep_blocks(Graph& graph, std::int32_t first, std::int32_t blocks) {
  std::vector<std::int32_t> moved(graph.tasks.size(), -1);
  std::vector<Task> kept;
  for (std::size_t k = 0; k < graph.tasks.size(); ++k) {
    Task task = graph.tasks[k];
    task.block -= first;
    if (task.block < 0 || task.block >= blocks) continue;
    for (TaskInput* operand : {&task.a, &task.b}) {
      if (operand->task >= 0) operand->task = moved[static_cast<std::size_t>(operand->task)];
    }
    ESPALIER_ASSERT((task.a.task < 0) == (graph.tasks[k].a.task < 0));
    ESPALIER_ASSERT((task.b.task < 0) == (graph.tasks[k].b.task < 0));
    moved[k] = static_cast<std::int32_t>(kept.size());
    kept.push_back(task);
  }
  graph = {blocks, std::move(kept), {}};
}

// Whether `one` is `other`, or reads it directly or through further operations of the same node.
bool made_of(const Graph& graph, std::int32_t one, std::int32_t other) {
  if (one == other) return true;
  if (one < other) return false;
  const Task& task = graph.tasks[static_cast<std::size_t>(one)];
  return task.kind != ActionKind::kSend &&
         (made_of(graph, task.a.task, other) || made_of(graph, task.b.task, other));
}

// Whether the routed schedule reads before it writes. A receive writes before the operations of its
// step run; an operation writes after its step's sends.
bool is_before(const Graph& graph, const InPlace& order) {
  ESPALIER_ASSERT(order.first != order.then);
  const Task& first = graph.tasks[static_cast<std::size_t>(order.first)];
  const Task& then = graph.tasks[static_cast<std::size_t>(order.then)];
  if (then.kind == ActionKind::kSend) return first.step < then.step;
  return first.kind == ActionKind::kSend ? first.step <= then.step : order.first < order.then;
}

void find_in_place(Graph& graph) {
  using OperandOf = std::array<std::int64_t, 3>;  // node, segment, block
  std::map<OperandOf, std::vector<std::int32_t>> readers;
  for (std::size_t k = 0; k < graph.tasks.size(); ++k) {
    const Task& task = graph.tasks[k];
    for (const TaskInput& operand : {task.a, task.b}) {
      if (operand.segment < 0 || operand.task >= 0) continue;
      readers[{task.from, operand.segment, task.block}].push_back(static_cast<std::int32_t>(k));
    }
  }
  for (std::size_t k = 0; k < graph.tasks.size(); ++k) {
    const Task& task = graph.tasks[k];
    const auto found = readers.find({task.to, task.segment, task.block});
    const bool same = task.kind == ActionKind::kCopy && task.a.task < 0 &&
                      task.a.segment == task.segment;  // changes nothing in place
    if (!task.output || same || found == readers.end()) continue;
    for (const std::int32_t reader : found->second) {
      const InPlace order{reader, static_cast<std::int32_t>(k)};
      if (made_of(graph, order.then, reader)) continue;
      if (!is_before(graph, order)) {
        graph.in_place.clear();
        return;
      }
      graph.in_place.push_back(order);
    }
  }
}

bool always_one_block(const Program& program) {
  bool cuts = program.residue_mod > 1;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    cuts = cuts || program.blocks[rule].block_bytes != 0;
  }
  return !cuts;
}

}  // namespace

Result<Graph> find_graph(const Programs& routed) {
  if (routed.empty()) return fail("there are no programs");
  if (always_one_block(routed[0])) {
    auto graph = Reader(routed, 1).read();
    if (graph) find_in_place(*graph);
    return graph;
  }
  const std::uint32_t mod = routed[0].residue_mod;
  for (std::int32_t blocks = 1; blocks <= kMaxBlocks; ++blocks) {
    for (const std::int32_t first : {0, 1}) {
      const std::int32_t all = first + 2 * blocks;
      if (mod > 1 && static_cast<std::uint32_t>(all) % mod != routed[0].residue) continue;
      auto graph = Reader(routed, all).read();
      if (!graph) return graph;
      keep_blocks(*graph, first, 2 * blocks);
      if (!repeats(*graph)) continue;
      keep_blocks(*graph, 0, blocks);
      find_in_place(*graph);
      return graph;
    }
  }
  return fail("what it does with a block does not repeat after any number of blocks up to " +
              std::to_string(kMaxBlocks) + ", so there is no period to lower");
}

}  // namespace espalier::lower
