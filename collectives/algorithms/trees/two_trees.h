#pragma once
// The two trees of the two-tree algorithms and the colours of their edges. Each is computed in
// O(log n) from a rank's number alone. Freestanding. Sources: [SST09] and [SST07], sections 3 and
// 5.1. For shifting with any n, an open question in [SST09]: the colouring below.
//
// The ranks (`pe`, after the papers' PEs) are numbered 1 .. n and form two binary trees, T1 (tree
// 0) and T2 (tree 1). Both are in order, and inner nodes of one tree are leaves of the other: even
// ranks are inner in T1, odd ranks in T2. An edge has colour 0 or 1. The two edges into a rank have
// different colours, and so have the edges from a rank to its two children. Transfers of colour c
// take place in every second step.

#include <cstdint>

namespace espalier {

enum class Pairing : std::uint8_t {
  kShift,   // T2 is T1 for n+1 nodes, shifted left by one, without its first leaf. Any n >= 1.
  kMirror,  // T2 is the mirror image of T1. n even.
};

// The edges that carry data. The two phases of a scan use fewer edges than a broadcast or a reduce.
// Without the edges into a spine (the root and its chain of right, or left, children) each subtree
// below the spine has its own timing.
enum class Use : std::uint8_t {
  kAll,   // also the edges from the external source into the roots
  kUp,    // all except those into right spines
  kDown,  // all except those into left spines
  // kUp in the colours of kAll and kDown; Pairing::kShift only. For some n kUp has other colours,
  // with which a scan is one step shorter.
  kUpSameColours,
};

class TwoTrees {
 public:
  TwoTrees(std::uint32_t n, Pairing pairing, Use use = Use::kAll);

  // The rank at the root of the tree.
  [[nodiscard]] std::uint32_t root(unsigned tree) const;
  [[nodiscard]] bool is_inner(unsigned tree, std::uint32_t pe) const;
  // The parent of `pe`; 0 for the tree's root.
  [[nodiscard]] std::uint32_t parent(unsigned tree, std::uint32_t pe) const;

  // The edge into a rank; into the root it comes from the source outside the trees.
  struct Edge {
    std::uint32_t pe = 0;     // the rank at its lower end; 0: no edge
    std::uint8_t colour = 0;  // 1 into T1's root, 0 into T2's
    // The step of a broadcast in which the rank gets its first block; meaningless if the edge is
    // not in use.
    std::uint32_t arrival = 0;
  };
  [[nodiscard]] Edge edge(unsigned tree, std::uint32_t pe) const;
  struct Both {
    Edge of[2];
  };
  // The edges into a rank in T1 and in T2.
  [[nodiscard]] Both edges(std::uint32_t pe) const;
  // The edges to the children of the rank whose own edge is `from`: first the smaller child, then
  // the larger.
  [[nodiscard]] Both children(unsigned tree, const Edge& from) const;

  // Whether the edge into the rank carries data.
  [[nodiscard]] bool in_use(unsigned tree, std::uint32_t pe) const {
    return !on_unused_spine(tree, node(tree, pe));
  }

  // The tree whose root gets its first block in step 0; the root of the other tree gets its first
  // block in step 1. Chosen so that the broadcast ends as early as possible. Use::kAll only.
  [[nodiscard]] unsigned first() const { return first_; }
  // The step in which the last rank gets its first block in either tree, over the edges in use.
  // With N blocks per tree, a broadcast takes last_arrival() + 1 + 2(N-1) steps.
  [[nodiscard]] std::uint32_t last_arrival() const { return last_arrival_; }

 private:
  // Nodes are the trees' own numbers, in order, in trees of one shape with size_[tree] nodes.
  [[nodiscard]] std::uint32_t node(unsigned tree, std::uint32_t pe) const;
  [[nodiscard]] std::uint32_t pe(unsigned tree, std::uint32_t node) const;
  [[nodiscard]] bool changes_colour(unsigned tree, std::uint32_t parent, bool left) const;
  struct Path;
  [[nodiscard]] Path path(unsigned tree, std::uint32_t index) const;
  void add_turns(unsigned tree, std::uint32_t index, std::uint32_t top, Path& path) const;
  [[nodiscard]] Edge inner_edge(unsigned tree, std::uint32_t pe) const;
  [[nodiscard]] Edge leaf_edge(unsigned tree, const Edge& other) const;
  [[nodiscard]] Edge child(unsigned tree, const Edge& from, std::uint32_t node, bool left) const;
  // Whether the edges that a phase of a scan does not use are those into the nodes' right spine.
  [[nodiscard]] bool unused_is_right(unsigned tree) const;
  [[nodiscard]] bool goes_up() const { return use_ == Use::kUp || use_ == Use::kUpSameColours; }
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
  std::uint32_t start_[2] = {0, 0};  // step in which the tree's root gets its first block
  // Edges to right (otherwise left) inner children change colour.
  bool turns_right_[2] = {false, false};
  bool spine_differs_ = false;  // for T1's right spine this is reversed
  // Not kAll: colour of the edges on which subtrees begin in step 0 (the other colour: step 1).
  unsigned early_colour_ = 0;
  unsigned first_ = 0;
  std::uint32_t last_arrival_ = 0;
};

}  // namespace espalier
