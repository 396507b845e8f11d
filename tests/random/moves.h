#pragma once
// How blocks move and combine: trees, ways, prefixes, runs, at random. Part of recipes.h.

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/random/sketch.h"

namespace espalier::random {

using Nodes = std::vector<std::uint32_t>;

// A tree in an order in which a node comes after its parent.
struct Tree {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // parent, node
};

// One stage's sketch, a segment and a block of a round, and the dice for them.
struct Spool {
  Sketch& sketch;
  Dice dice;
  std::uint32_t segment = 0, block = 0;
};

class Moves {
 public:
  using Cell = std::int32_t;

  // `hop_by_hop`: routers have programs, every message goes to a neighbour; `neighbours`: the
  // latter.
  Moves(const Plan& plan, bool hop_by_hop, bool neighbours, Dice& dice);

  // The dice of one segment and block: the same for all of them if they must look alike.
  [[nodiscard]] Spool spool(Sketch& sketch, std::uint32_t segment, std::uint32_t block);
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] bool is_free() const { return free_; }  // any rank reaches any
  [[nodiscard]] Nodes all_ranks() const { return range(0, ranks_); }

  // The cell that the rank's caller gives, or with `output_before` the one that an earlier stage
  // left; and the cell of its result.
  [[nodiscard]] Cell given(Spool& spool, std::uint32_t node, bool output_before) const;
  [[nodiscard]] Cell result(Spool& spool, std::uint32_t node) const;

  // Moves the block from `source` of the root to the nodes `to`; with `keep` into their results, if
  // they have any. Returns its cell by node.
  std::vector<Cell> down(Spool& spool, std::uint32_t root, Cell source, const Nodes& to,
                         bool keep) const;
  // Combines the blocks of all ranks, into the cell `final` of the root (-1: into any cell of the
  // root).
  [[nodiscard]] Cell up(Spool& spool, std::uint32_t root, Cell final) const;
  // Moves one block along a way from rank to rank.
  void path(Spool& spool, std::uint32_t from, std::uint32_t to, Cell source, Cell final) const;
  // Ranks first .. end-1 get the combination of the ranks from `first` to themselves, in place of
  // their own in `prefix`: halves first, then the sum of the left half goes to all ranks of the
  // right half.
  void prefixes(Spool& spool, std::uint32_t first, std::uint32_t end,
                std::vector<Cell>& prefix) const;
  // With one block per segment: `head` holds the segments of ranks first .. end-1 in `held`, whose
  // first segment belongs to rank held_first, and passes runs of them on; and the reverse.
  void spread_runs(Spool& spool, std::uint32_t first, std::uint32_t end, std::uint32_t head,
                   Cell held, std::uint32_t held_first) const;
  void gather_runs(Spool& spool, std::uint32_t first, std::uint32_t end, std::uint32_t head,
                   Cell held, std::uint32_t held_first) const;

 private:
  static constexpr std::uint32_t kAlways = 5;  // of what is received

  static Nodes range(std::uint32_t first, std::uint32_t end);
  [[nodiscard]] Tree tree(Dice& dice, std::uint32_t root, const Nodes& wanted) const;
  [[nodiscard]] bool has(std::uint32_t node, Buffer buffer, std::uint32_t segment) const;
  [[nodiscard]] Cell up_ordered(Spool& spool, std::uint32_t first, std::uint32_t end,
                                std::uint32_t head, Cell final) const;
  [[nodiscard]] Cell up_tree(Spool& spool, std::uint32_t root, Cell final) const;
  // Divides first .. end-1, without `head`, into parts, each with a rank of its own: calls
  // part(from, many, rank).
  template <typename Part>
  static void each_part(Dice& dice, std::uint32_t first, std::uint32_t end, std::uint32_t head,
                        const Part& part);

  const Plan& plan_;
  Dice& dice_;
  std::uint32_t ranks_;
  std::vector<Nodes> peers_;
  bool free_ = true;
  std::uint32_t style_ = 0;  // of trees; 0: chains
  bool in_order_ = false;    // a chain's nodes
  std::uint32_t through_scratch_ = 0, same_ = 0;
};

}  // namespace espalier::random
