#pragma once
// A program as progressions: the form of a program that does not depend on N. Internal to
// collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/schedule/expand.h"
#include "collectives/verify/properties/proof_result.h"

namespace espalier::verify {

// The proof for every N covers every N up to this. Generators place instances that must never exist
// at blocks below -kMaxProvenBlocks.
inline constexpr std::int64_t kMaxProvenBlocks = std::int64_t{1} << 29;

// Upper limit, in blocks, of the stride and of the period after which scratch slots repeat.
inline constexpr std::int64_t kMaxStride = 4096;

// a + b*N.
struct Linear {
  std::int64_t a = 0, b = 0;
  friend bool operator==(const Linear&, const Linear&) = default;
};
// Whether `count` is linear in N. Sets `line` if so.
[[nodiscard]] bool is_linear(const Count& count, Linear& line);

// Upper limit of RankProgressions::head.
inline constexpr std::int64_t kMaxHead = 4;

// The actions of one phase that advance at the same rate. A stage begins slope * (N - 1) steps
// after its phase. Each of its progressions advances by the schedule's stride, in blocks, every
// `period` steps.
struct Stage {
  std::uint32_t phase = 0;
  std::int64_t slope = 0;
  std::int64_t period = 1;
  friend bool operator==(const Stage&, const Stage&) = default;
};

// A part of an action. Instance k = 0, 1, ... exists if and only if block + stride * k < N. A
// progression that is `once` has instance 0 only. It moves block number block + stride * k of one
// segment over one link, in step first + period * k of its stage.
struct Progression {
  std::int64_t first = 0;         // step of its first block, counted from the stage's start; >= 0
  std::int64_t turn = 0;          // order among the instances of its action in one step
  std::int32_t block = 0;         // its first block, below stride * (head + 1)
  std::int32_t link = -1;         // position among the program's links; SEND, RECEIVE
  std::int32_t segment = 0;       // of the block that it moves
  std::int32_t from_segment = 0;  // of its first operand that is read, if any
  std::int32_t into_slot = -1, a_slot = -1, b_slot = -1;  // of its first block; SCRATCH only
  std::uint16_t part = 0, segment_count = 1;  // position in an operand, and its segment count
  std::uint8_t action = 0;                    // position in Program.actions
  std::uint8_t stage = 0;                     // position in RankProgressions::stages
  ActionKind kind = ActionKind::kNone;
  bool once = false;  // it is a single instance, which exists for every N > block
};

// One node's program as progressions.
struct RankProgressions {
  // Stage by stage. Within a stage in time order: by first mod period, then sends, receives,
  // operations, then by action, then by turn. Instances of one step run in this order, for every N.
  std::vector<Progression> all;
  std::vector<Progression> spare;        // memory that sort_by_time() reuses
  std::vector<Stage> stages;             // by (phase, appearance)
  std::vector<std::size_t> stage_begin;  // first progression of each stage; then all.size()
  std::int64_t stride = 1;               // blocks
  // An operand in `slot` moves to next_slot[slot] when its progression advances by one stride. This
  // is a permutation of the slots in use. Empty if every operand keeps its slot.
  std::vector<std::int32_t> next_slot;
  bool single = false;  // only N = stride occurs: every progression is one instance
  // The smallest number such that every progression begins below block stride * (head + 1), and
  // every progression that is `once` below stride * head. So from there on each stride of blocks
  // has the same progressions. 0 in most programs.
  std::int64_t head = 0;
  // The blocks that stand for all: from the head's end onward, one stride stands for every other.
  [[nodiscard]] std::int64_t blocks_that_differ() const { return stride * (head + 1); }
};

// The program is wrong for the smallest N >= blocks that occurs.
struct WrongFrom {
  std::int64_t blocks = 0;
};
// Passed: the program was read.
using ReadResult = CheckResult<WrongFrom>;

// Reads `program`, which check_program() accepts. Passes if the program is periodic for every N
// that the residue allows:
//  * all actions consist of progressions of one stride;
//  * every link, segment, buffer and slot that they name exists;
//  * paces keep their rules.
// The stride becomes a multiple of the given ranks.stride. If a larger one is needed, the result is
// passed, but only ranks.stride is set.
[[nodiscard]] ReadResult read_progressions(const Program& common, const Program& program,
                                           RankProgressions& ranks);

// Reads the instances of `program` for the only N that occurs, blocks. Each instance becomes one
// progression per segment. `instances` must have passed check_instances().
void read_single(const Program& program, const std::vector<Instance>& instances,
                 std::int64_t blocks, RankProgressions& ranks);

// Sorts the progressions of each stage into the time order that RankProgressions describes, and
// sets ranks.stage_begin. Before the call Progression::turn is the number of the first instance;
// after it, the order in its step. `every`: instances per round, by action.
void sort_by_time(RankProgressions& ranks, const std::vector<std::int64_t>& every);

}  // namespace espalier::verify
