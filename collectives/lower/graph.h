#pragma once
// The messages and operations of a routed schedule with their true dependences, independent of its
// steps. Host only.

#include <cstdint>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::lower {

// An operand of a task.
struct TaskInput {
  std::int32_t task = -1;     // the task that made it, at this node; -1: it is the node's input
  std::int32_t segment = -1;  // of the operand's location; -1: there is no such operand
};

// A message of one block from one rank to another, or an operation of a rank on one block. A task
// makes one value, at `to`, which is never overwritten: scratch is renamed by value, and so is
// every value in OUTPUT except the final one. Therefore no task must wait for memory to become
// free.
struct Task {
  ActionKind kind = ActionKind::kNone;  // SEND (and its receive), COMBINE or COPY
  std::uint32_t from = 0, to = 0;       // ranks; for an operation both are its own rank
  std::int32_t block = 0;
  std::int32_t segment = 0;  // of the location that it writes
  bool output = false;       // writes OUTPUT, otherwise scratch
  TaskInput a, b;            // b: COMBINE only
  std::int64_t step = 0;     // step of the routed schedule
};

// `then` writes the output block that may share memory with the input block that `first` reads.
struct InPlace {
  std::int32_t first = 0, then = 0;  // tasks
};

// Tasks of the blocks 0 .. blocks-1. A task comes after the tasks that it reads from.
struct Graph {
  std::int32_t blocks = 1;
  std::vector<Task> tasks;
  // Filled if the routed schedule satisfies all of them: input and output may then still be the
  // same memory. Otherwise empty.
  std::vector<InPlace> in_place;
};

// Finds the graph for the smallest number u <= 64 of blocks after which the programs repeat. In an
// expansion of 2u blocks, blocks u .. 2u-1 then do the same as blocks 0 .. u-1, in any steps. Where
// block 0 is an exception (as in circulant schedules), the blocks are counted from block 1: any
// block may take the way of any other. If the programs have one block for every message, u = 1.
// Operands of several segments are split into single segments. `routed`: the valid programs of all
// ranks (nothing is proven here). Errors: there is no such u, or the programs are not one schedule.
[[nodiscard]] Result<Graph> find_graph(const Programs& routed);

inline constexpr std::int32_t kMaxBlocks = 64;
// Maximum number of messages and operations of a graph.
inline constexpr std::size_t kMaxTasks = std::size_t{1} << 20;

}  // namespace espalier::lower
