#pragma once
// A program as progressions: the form of it that does not change with N. Internal to
// collectives/verify.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/expand.h"

namespace espalier::verify {

// The proof for every N is for every N up to this. Generators keep instances that are not meant to
// exist at blocks further below 0 than that.
inline constexpr std::int64_t kMaxProvenBlocks = std::int64_t{1} << 29;

// Upper limit, in blocks, of the stride and of the period after which scratch slots repeat.
inline constexpr std::int64_t kMaxStride = 4096;

// a + b*N.
struct Linear {
  std::int64_t a = 0, b = 0;
  friend bool operator==(const Linear&, const Linear&) = default;
};
// Whether `count` is linear in N, and which line.
[[nodiscard]] bool is_linear(const Count& count, Linear& line);

// Actions of one phase that go on alike. A stage begins `slope` * N steps after its phase; each of
// its progressions goes on by the schedule's stride, in blocks, every `period` steps.
struct Stage {
  std::uint32_t phase = 0;
  std::int64_t slope = 0;
  std::int64_t period = 1;
  friend bool operator==(const Stage&, const Stage&) = default;
};

// Instances of an action that are exactly the blocks block + stride*k below N, k = 0, 1, ..., of
// one segment over one link, for every N. Block block + stride*k is moved in step
// first + period*k of the stage.
struct Progression {
  std::int64_t first = 0;         // step of its first block, from the stage's beginning; >= 0
  std::int64_t turn = 0;          // orders the instances of one action in one step
  std::int32_t block = 0;         // its first: 0 .. stride-1
  std::int32_t link = -1;         // position among the program's links; SEND, RECEIVE
  std::int32_t segment = 0;       // of the block it moves
  std::int32_t from_segment = 0;  // of the place it reads first, if any
  std::int32_t into_slot = -1, a_slot = -1, b_slot = -1;  // of its first block; SCRATCH only
  std::uint16_t part = 0, run = 1;  // position in a run of segments, and its length
  std::uint8_t action = 0;          // position in Program.actions
  std::uint8_t stage = 0;           // position in RankProgressions::stages
  Kind kind = espalier_Kind_KIND_NONE;
};

// One node's program as progressions.
struct RankProgressions {
  // Stage by stage; in a stage in time order: by (first mod period, sends before receives before
  // operations, action, turn). Instances of one step run in this order, for every N.
  std::vector<Progression> all;
  std::vector<Progression> spare;        // memory that sort_by_time() keeps
  std::vector<Stage> stages;             // by (phase, appearance)
  std::vector<std::size_t> stage_begin;  // first progression of each stage; then all.size()
  std::int64_t stride = 1;               // blocks
  // The slot of a place moves on to next_slot[slot] whenever its progression goes on by one stride;
  // a permutation of the slots in use. Empty where no slot moves.
  std::vector<std::int32_t> next_slot;
  bool single = false;  // the one N that occurs: every progression is one instance
};

// Why a program was not read.
struct Unread {
  std::string why;              // not of the form that is proven for every N; empty otherwise
  std::int64_t wrong_from = 0;  // above 0: the program is wrong for the least N from here on
  [[nodiscard]] bool none() const { return why.empty() && wrong_from == 0; }
};

// Reads `program`, which check_program accepts. It is periodic if all actions consist of
// progressions of one stride for every N that the residue allows; if every link, segment, buffer
// and slot that they name exists; and if paces keep their rules for every N. The stride is a
// multiple of `ranks.stride` as given; if a larger one is needed, only ranks.stride is set.
[[nodiscard]] Unread read_progressions(const Program& common, const Program& program,
                                       RankProgressions& ranks);

// Reads the instances of `program` for the only N that occurs, each as a progression of its own
// (of a run: one for each of its segments). `instances` passed check_instances.
void read_single(const Program& program, const std::vector<Instance>& instances,
                 std::int64_t blocks, RankProgressions& ranks);

}  // namespace espalier::verify
