#pragma once
// What a direct schedule does with its blocks, whatever its steps: messages and operations with
// their true dependences. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::lower {

// What a task reads.
struct Operand {
  std::int32_t task = -1;     // the one that made it, at this node; -1: it is the node's input
  std::int32_t segment = -1;  // of the place it lies in; -1: there is no such operand
};

// A message of one block from one rank to another, or an operation of a rank on one block. It makes
// one value, at `to`, which nothing overwrites: scratch is renamed by value, as is output that is
// not what stays there in the end. So no task must wait for a place to become free.
struct Task {
  Kind kind = espalier_Kind_KIND_NONE;  // SEND (and its receive), COMBINE or COPY
  std::uint32_t from = 0, to = 0;       // ranks; of an operation both are its own
  std::int32_t block = 0;
  std::int32_t segment = 0;  // of the place it writes
  bool output = false;       // that is OUTPUT, else scratch
  Operand a, b;              // b: COMBINE only
  std::int64_t step = 0;     // in which the direct schedule has it
};

// `then` writes the output block that may lie where the input block does that `first` reads.
struct InPlace {
  std::int32_t first = 0, then = 0;  // tasks
};

// Tasks of the blocks 0 .. blocks-1, each after those that it reads of.
struct Graph {
  std::int32_t blocks = 1;
  std::vector<Task> tasks;
  // Where the direct schedule keeps to all of them: so that input and output may be the same memory
  // still. Else none.
  std::vector<InPlace> in_place;
};

// The graph of the smallest number u <= 64 of blocks for which blocks u .. 2u-1 of an expansion of
// 2u blocks do what blocks 0 .. u-1 do, whatever the steps; of one block where the programs have
// one for every message. Runs of segments are split into single segments. `direct`: the programs of
// all ranks, valid (nothing is proven here). A line that says why, where there is no such number or
// the programs are not one schedule.
[[nodiscard]] std::string find_graph(const Programs& direct, Graph& graph);

inline constexpr std::int32_t kMostBlocks = 64;
// Messages and operations of a graph; more are refused.
inline constexpr std::size_t kMostTasks = std::size_t{1} << 20;

}  // namespace espalier::lower
