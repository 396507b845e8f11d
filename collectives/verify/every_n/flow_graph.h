#pragma once
// Property data flow for every N: the set of ranks that each progression carries. Internal to
// collectives/verify.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/every_n/rank_proof.h"
#include "collectives/verify/properties/data_flow.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/rank_sets.h"

namespace espalier::verify {

// The progressions of all nodes as cells, each with the cells that its data comes from. RankProofs
// shows that each operand always comes from the same progression, LinkMatch that both ends of each
// link name the same messages. So a cell carries one set of ranks, for all its blocks and every N.
// A source is earlier in a lock-step run, so the graph has no cycle.
class FlowGraph {
 public:
  void begin(const Program& common);
  // Adds the cells of the next node. Returns the number of its first cell.
  std::uint32_t add_node(std::uint32_t node, const RankProgressions& ranks, const RankFlow& flow);
  // Makes `send` the source of `receive`.
  void connect(std::uint32_t send, std::uint32_t receive) {
    cells_[receive].a = static_cast<std::int32_t>(send);
  }
  [[nodiscard]] std::size_t size() const { return cells_.size(); }

  // A combine whose operands must not be combined: a rank would count twice, or out of order.
  struct BadCombine {
    std::uint32_t cell = 0;
    RankSet left = RankSets::kNone, right = RankSets::kNone;
  };
  // Computes the sets of all cells. Stops early if the sets take more than
  // schedule.max_instances.
  [[nodiscard]] std::optional<BadCombine> follow(const ExpandedSchedule& schedule);
  // An output block whose final value is not the one that the collective must give.
  struct BadResult {
    std::uint32_t node = 0;
    std::int64_t segment = 0, block = 0;
    Value value;
    RankSet expected = RankSets::kNone;
  };
  [[nodiscard]] std::optional<BadResult> check_results();
  // Returns the first rank that does not receive from all ranks in a barrier, directly or not, and
  // the ranks that it does receive from.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, RankSet>> check_barrier();

  // Returns the node of a cell, and the cell's position among the progressions of that node.
  [[nodiscard]] std::pair<std::uint32_t, std::size_t> place_of(std::uint32_t cell) const;
  [[nodiscard]] const RankSets& sets() const { return sets_; }

 private:
  static constexpr RankSet kUnknown = -2, kBegun = -3;
  static constexpr std::int32_t kNoSource = INT32_MIN;
  [[nodiscard]] RankSet set_of(std::int32_t source) const {
    if (source >= 0) return cells_[static_cast<std::size_t>(source)].value;
    if (source == kNoSource) return RankSets::kNone;
    const auto node = static_cast<std::uint32_t>(-1 - source);
    return RankSets::range(node, node);
  }
  [[nodiscard]] std::optional<BadCombine> resolve(std::uint32_t cell);
  [[nodiscard]] bool push(std::int32_t source);
  [[nodiscard]] std::optional<BadCombine> finish(std::uint32_t cell);
  [[nodiscard]] bool is_ready(std::int32_t source) const {
    return source < 0 || cells_[static_cast<std::size_t>(source)].value != kUnknown;
  }
  [[nodiscard]] bool is_combine(std::uint32_t cell) const {
    return combines_ && kinds_[cell] == ActionKind::kCombine;
  }

  OwnedProgram common_;
  Join join_ = Join::kOrdered;
  bool combines_ = false, all_to_all_ = false;
  // A source is the number of a cell, or -1 - node for the input of that node.
  struct Cell {
    std::int32_t a = kNoSource;
    std::int32_t b = kNoSource;  // in an all-to-all: the input segment of its data
    RankSet value = kUnknown;    // the set that it moves or computes
  };
  // Grows without moving or doubling, because there may be tens of millions of cells.
  class Cells {
   public:
    void push_back(const Cell& cell) {
      if (size_ % kChunk == 0) chunks_.emplace_back(new Cell[kChunk]);
      (*this)[size_++] = cell;
    }
    [[nodiscard]] Cell& operator[](std::size_t i) { return chunks_[i / kChunk][i % kChunk]; }
    [[nodiscard]] const Cell& operator[](std::size_t i) const {
      return chunks_[i / kChunk][i % kChunk];
    }
    [[nodiscard]] std::size_t size() const { return size_; }

   private:
    static constexpr std::size_t kChunk = 1 << 16;
    std::vector<std::unique_ptr<Cell[]>> chunks_;
    std::size_t size_ = 0;
  };
  Cells cells_;
  std::vector<ActionKind> kinds_;          // by cell, only if operations combine
  std::vector<std::uint32_t> node_begin_;  // first cell of each node
  // Cells by node, output segment and block below node_blocks_; -1: none.
  std::vector<std::int32_t> results_;
  std::vector<std::int64_t> node_blocks_;  // RankProgressions::blocks_that_differ() of each node
  std::vector<std::uint32_t> stack_;
  RankSets sets_;
};

}  // namespace espalier::verify
