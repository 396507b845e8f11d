#pragma once
// One node's program of the all-to-all `leaf-single`; leaf_single.cc has the schedule. Host only.

#include <cstdint>

#include "collectives/algorithms/trees/leaf_tree.h"
#include "collectives/build/builder.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {

// coef * floor((i + add) / div) mod mod
[[nodiscard]] inline Term leaf_term(std::int64_t coef, std::int64_t add, std::uint32_t div,
                                    std::uint32_t mod = 0) {
  return floor_term(static_cast<std::int32_t>(coef), static_cast<std::int32_t>(add), div, mod);
}

// The steps of the messages of one kind, over all blocks: message i leaves its leaf in step
// first + coef * i + the sum of the terms.
class LeafTimes {
 public:
  LeafTimes(std::uint32_t round, std::int64_t first, std::int64_t coef)
      : round_(round), first_(first), coef_(coef) {}

  // All messages are this many steps earlier.
  LeafTimes& advance(std::int64_t steps) {
    first_ -= steps;
    return *this;
  }
  // Adds coef * floor((i + ahead) / div).
  LeafTimes& add(std::int64_t coef, std::uint32_t div, std::uint32_t ahead = 0) {
    if (div == 1) {
      coef_ += coef;
      first_ += coef * ahead;
    } else if (coef != 0) {
      terms_[count_++] = leaf_term(coef, ahead, div);
    }
    return *this;
  }

  [[nodiscard]] std::uint32_t round() const { return round_; }  // messages per block
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::uint8_t pace(Builder& builder) const {
    if (coef_ == 1 && count_ == 0) return 0;
    Index row{};
    row.coef = static_cast<std::int32_t>(coef_);
    return builder.index(row, terms_, count_);
  }
  [[nodiscard]] std::uint8_t block(Builder& builder) const {
    Index row{};
    row.coef = 1;
    row.div = round_;
    return builder.index(row);
  }

 private:
  std::uint32_t round_;
  std::int64_t first_, coef_;
  Term terms_[6] = {};
  std::uint32_t count_ = 0;
};

// One node's program.
class LeafExchange {
 public:
  // Stages of levels up to `split_levels` have an action for each run. This takes fewer terms than
  // one action for all runs.
  LeafExchange(Builder& builder, const LeafNode& node, std::uint32_t split_levels)
      : builder_(builder), node_(node), split_levels_(split_levels) {}

  void add();
  [[nodiscard]] Status finish();

 private:
  // A stage as the node takes part in it, below the router of level `level`.
  struct Stage {
    std::uint32_t level;
    std::uint32_t k;       // the router's branches
    std::uint32_t m;       // leaves of a branch
    std::uint32_t branch;  // of the router, with this node; 0 for the router itself
    std::uint32_t inside;  // the first leaf below this node, counted from the branch's first
    std::int64_t first;    // the first step
    std::int64_t early[2] = {0, 0};  // messages 0 and 1 are this many steps before their runs

    [[nodiscard]] std::int64_t run() const { return std::int64_t{m} * m; }
    [[nodiscard]] bool pairs() const { return k == 2 && level > 1; }
    [[nodiscard]] std::int64_t steps_early(std::int64_t message) const {
      return message < 2 ? early[message] : 0;
    }
  };
  static constexpr std::int64_t kNotEarly = 2;  // a message that is in its run

  // Stages L and L-1 together, seen from inside of the router's branch v.
  struct Pair {
    std::uint32_t k;       // branches w of v
    std::uint32_t m;       // leaves of each
    std::uint32_t turn;    // messages go to branch w in this order: (w + turn) mod k
    std::uint32_t branch;  // of v, with this node; 0 for v itself
    std::uint32_t inside;  // the first leaf below this node, counted from that branch's first

    [[nodiscard]] std::int64_t run() const { return std::int64_t{m} * m; }
    [[nodiscard]] std::uint32_t place() const { return (branch + turn) % k; }
  };

  // Leaf first + (off + i) mod count is the i-th.
  struct Leaves {
    std::uint32_t first = 0, off = 0, count = 1;
  };

  // Steps per block.
  [[nodiscard]] std::int64_t period() const {
    const Stage top = stage(node_.height, 0);
    if (!top.pairs()) return top.k * (top.k - 1) * top.run();
    const Stage below = stage(node_.height - 1, 0);
    return 2 * top.run() + below.k * (below.k - 1) * below.run();
  }
  [[nodiscard]] Stage stage(std::uint32_t level, std::int64_t first) const {
    const std::uint32_t m = leaves_below(node_, level - 1), k = node_.arity(level);
    const std::uint32_t leaf = node_.index * node_.leaves;
    return {level, k, m, leaf / m % k, leaf % m, first};
  }
  [[nodiscard]] Pair pair(const Stage& stage) const {
    const std::uint32_t k = node_.arity(stage.level - 1), m = stage.m / k;
    return {k, m, k == 2 ? 1u : 0u, stage.inside / m, stage.inside % m};
  }
  // The first leaf below the stage's router, or below its branch.
  [[nodiscard]] std::uint32_t origin(const Stage& stage, std::uint32_t branch) const {
    const std::uint32_t all = stage.m * stage.k;
    return node_.index * node_.leaves / all * all + branch * stage.m;
  }

  void add_stage(const Stage& stage);
  void add_rank(const Stage& stage);
  void add_runs(const Stage& stage);
  void add_below(const Stage& stage);
  void add_turn(const Stage& stage);
  void add_pair(const Stage& stage);
  void add_pair_top(const Stage& stage);
  void add_pair_branch(const Stage& stage);
  void add_pair_below(const Stage& stage);
  [[nodiscard]] static Stage half(const Stage& stage, std::uint32_t from);
  void add_halves(const Stage& stage);
  void add_halves_below(const Stage& stage);

  [[nodiscard]] LeafTimes up(const Stage& stage) const;
  [[nodiscard]] LeafTimes down(const Stage& stage) const;
  // The times of all blocks, from the times of a block's messages, which take `steps` steps of the
  // stage's runs. `second`: the number of their second message, or kNotEarly.
  [[nodiscard]] LeafTimes repeated(const Stage& stage, LeafTimes times, std::int64_t steps,
                                   std::int64_t second) const;

  // base + (off + i / div) mod mod
  [[nodiscard]] std::uint8_t digit(std::uint32_t base, std::uint32_t off, std::uint32_t div,
                                   std::uint32_t mod) {
    Index row{};
    row.base = as_int(base);
    row.coef = 1;
    row.off = as_int(off * div);
    row.div = div;
    row.mod = mod;
    return builder_.index(row);
  }
  // Adds a message that has made `hops` hops when it leaves this router.
  void forward(const LeafTimes& times, std::uint32_t hops, std::uint8_t from, std::uint8_t to);
  // Adds messages from the leaves below this node in turn, `each` from each leaf, or one to each
  // leaf. They turn at level `turn`. A leaf exchanges them with `others` in turn.
  void rise(const LeafTimes& times, std::uint32_t each, const Leaves& others);
  void fall(const LeafTimes& times, std::uint32_t turn, const Leaves& others);
  void send(const LeafTimes& times, std::uint8_t segment);
  void receive(const LeafTimes& times, std::uint32_t hops, std::uint8_t segment);
  void time(Action& action, const LeafTimes& times, std::int64_t later, std::uint8_t pace) {
    action.t0_ref = builder_.count(static_cast<std::int32_t>(times.first() + later), 0);
    action.instances_ref = builder_.count(0, as_int(times.round()));
    action.pace_ref = pace;
  }

  Builder& builder_;
  const LeafNode& node_;
  std::uint32_t split_levels_;
};

}  // namespace espalier::searched
