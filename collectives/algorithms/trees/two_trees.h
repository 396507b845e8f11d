#pragma once
// The two trees of the two-tree algorithms and the colours of their edges, each found in O(log n)
// from a PE's number alone. Freestanding. Sources: 001/003 (Sanders, Speck, Traff) sections 3 and
// 5.1; for shifting with any n, 001's open question, the colouring below.
//
// n PEs, numbered 1 .. n, stand in two binary trees, T1 (tree 0) and T2 (tree 1), both in order, so
// that inner nodes of one are leaves of the other: even PEs are inner in T1, odd ones in T2. An
// edge has colour 0 or 1; the two edges into a PE differ, and so do the edges from a PE to its two
// children. Transfers of colour c take place in every second step.

#include <cstdint>

namespace espalier {

enum class Pairing : std::uint8_t {
  kShift,   // T2 is T1 of n+1 nodes, shifted left by one, without its first leaf. Any n >= 1.
  kMirror,  // T2 is the mirror image of T1. n even.
};

// Which edges carry anything. A scan's two phases leave out what a broadcast or reduce needs: with
// no edge into a spine (the root and its right, or left, children down), each subtree that hangs
// from the spine has times of its own.
enum class Use : std::uint8_t {
  kAll,   // the edges from a source outside into the roots too
  kUp,    // all but those into right spines; Pairing::kShift only
  kDown,  // all but those into left spines; Pairing::kShift only
};

class TwoTrees {
 public:
  TwoTrees(std::uint32_t n, Pairing pairing, Use use = Use::kAll);

  // The PE at the root of the tree.
  [[nodiscard]] std::uint32_t root(unsigned tree) const;
  [[nodiscard]] bool is_inner(unsigned tree, std::uint32_t pe) const;
  // The PE above `pe`; 0 at the tree's root.
  [[nodiscard]] std::uint32_t parent(unsigned tree, std::uint32_t pe) const;

  // The edge into a PE (into the root: from the source outside the trees).
  struct Edge {
    std::uint32_t pe = 0;       // the PE it leads to; 0: no edge
    std::uint8_t colour = 0;    // 1 into T1's root, 0 into T2's
    std::uint32_t arrival = 0;  // the step of a broadcast in which the PE gets its first block; of
                                // no meaning where the edge is not in use
  };
  [[nodiscard]] Edge edge(unsigned tree, std::uint32_t pe) const;
  struct Both {
    Edge of[2];
  };
  // The edges into a PE in T1 and in T2.
  [[nodiscard]] Both edges(std::uint32_t pe) const;
  // The edges to the children of a PE whose own edge is `from`: the smaller PE, then the larger.
  [[nodiscard]] Both children(unsigned tree, const Edge& from) const;

  // Whether the edge into the PE carries anything.
  [[nodiscard]] bool in_use(unsigned tree, std::uint32_t pe) const {
    return !on_unused_spine(tree, node(tree, pe));
  }

  // The tree whose root gets its first block in step 0; the other's follows in step 1. Chosen so
  // that the broadcast ends as early as it can. Use::kAll only.
  [[nodiscard]] unsigned first() const { return first_; }
  // The step in which the last PE gets its first block in either tree, over the edges in use: with
  // N blocks a tree, a broadcast takes last_arrival() + 1 + 2(N-1) steps.
  [[nodiscard]] std::uint32_t last_arrival() const { return last_arrival_; }

 private:
  // Nodes: T1's and T2's own numbers, in order, in trees of size_[tree] nodes of one shape.
  [[nodiscard]] std::uint32_t node(unsigned tree, std::uint32_t pe) const;
  [[nodiscard]] std::uint32_t pe(unsigned tree, std::uint32_t node) const;
  [[nodiscard]] bool changes_colour(unsigned tree, std::uint32_t parent, bool left) const;
  struct Path;
  [[nodiscard]] Path path(unsigned tree, std::uint32_t at) const;
  void add_turns(unsigned tree, std::uint32_t at, std::uint32_t top, Path& path) const;
  [[nodiscard]] Edge inner_edge(unsigned tree, std::uint32_t pe) const;
  [[nodiscard]] Edge leaf_edge(unsigned tree, const Edge& other) const;
  [[nodiscard]] Edge child(unsigned tree, const Edge& from, std::uint32_t node, bool left) const;
  [[nodiscard]] bool on_unused_spine(unsigned tree, std::uint32_t node) const;
  [[nodiscard]] std::uint32_t arrival(unsigned tree, const Edge& from, unsigned colour) const;
  [[nodiscard]] Edge root_edge(unsigned tree) const;
  [[nodiscard]] std::uint32_t latest_from(unsigned tree, Edge top) const;
  [[nodiscard]] std::uint32_t latest_right_of_left_spine(unsigned tree) const;
  [[nodiscard]] std::uint32_t latest(unsigned tree) const;
  void start_source();
  void start_subtrees();

  std::uint32_t n_;
  Pairing pairing_;
  Use use_;
  std::uint32_t size_[2];
  std::uint32_t root_[2];
  std::uint32_t start_[2] = {0, 0};       // step in which the tree's root gets its first block
  bool turns_right_[2] = {false, false};  // edges to right, not left, inner children change colour
  bool spine_differs_ = false;            // T1's right spine does it the other way round
  unsigned early_colour_ = 0;  // kUp, kDown: of the edges on which subtrees begin in step 0, not 1
  unsigned first_ = 0;
  std::uint32_t last_arrival_ = 0;
};

}  // namespace espalier
