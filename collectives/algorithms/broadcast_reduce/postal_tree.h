#pragma once
// A broadcast of one block in the postal model, by a tree over intervals of ranks. The first rank
// of an interval has the block. It gives the end of the interval to the first rank there and keeps
// the rest, with S ticks less. The receiver has its part L ticks later. Freestanding.
//
// Ranks are taken in order from the root onward, cyclically. On a mesh this is the row-major list
// from the source onward. Messages of one step share no link on it, because their intervals are
// disjoint ([Bruck96] section 2.6; valid if a message occupies its links for one step).

#include <cstdint>

#include "collectives/build/builder.h"

namespace espalier {

// Maximum number of sends of a rank other than the root. Each send has its own first step, which
// takes one of a program's counts; four counts are used otherwise. The root's sends share one
// action, and each takes a peer.
inline constexpr std::uint32_t kMaxPostalSends = sizeof(Program::counts) / sizeof(Count) - 4;
inline constexpr std::uint32_t kMaxPostalRootSends = sizeof(Program::peers) / sizeof(std::uint32_t);

// The ranks (counted from the root) first .. first + size - 1. The first one has the block and may
// send it from tick `clock` onward.
struct PostalSubtree {
  std::uint32_t first, size, clock;
};

// A Split says how the first rank of the interval at hand splits it:
//  * given(size): how many of size >= 2 ranks it gives away, 1 .. size - 1;
//  * keep(), give(): the interval at hand becomes the part that was kept, or given.
template <typename Split>
class PostalTree {
 public:
  PostalTree(const CollectiveParameters& parameters, const Split& split, Builder& builder)
      : parameters_(parameters), split_(split), builder_(builder) {}

  // Adds the actions of `me`. Requires at least two ranks.
  void add(std::uint32_t me) {
    const std::uint32_t p = parameters_.ranks;
    const std::uint32_t v = (me + p - parameters_.root) % p;
    PostalSubtree tree{0, p, 0};
    std::uint32_t parent = 0;
    while (tree.first != v) {
      const PostalSubtree given = given_by(tree);
      if (v < given.first) {
        keep_rest(tree, given);
      } else {
        parent = tree.first;
        tree = given;
        split_.give();
      }
    }
    if (v != 0) builder_.receive(tree.clock - 1, rank(parent), builder_.output(0));
    add_sends(tree);
  }

 private:
  [[nodiscard]] std::uint32_t rank(std::uint32_t v) const {
    return (parameters_.root + v) % parameters_.ranks;
  }

  [[nodiscard]] PostalSubtree given_by(const PostalSubtree& tree) {
    const std::uint32_t size = split_.given(tree.size);
    return {tree.first + tree.size - size, size, tree.clock + parameters_.latency_ticks};
  }

  void keep_rest(PostalSubtree& tree, const PostalSubtree& given) {
    tree.size -= given.size;
    tree.clock += parameters_.send_ticks;
    split_.keep();
  }

  // Adds the sends of a subtree's first rank, which reach the whole subtree.
  void add_sends(PostalSubtree tree) {
    const bool source = tree.first == 0;
    const std::uint32_t ready = tree.clock;
    std::uint32_t sends = 0;
    for (; tree.size > 1; ++sends) {
      const PostalSubtree given = given_by(tree);
      if (source) {
        (void)builder_.link(rank(given.first));
      } else {
        // Each send is a separate action, because `after` differs.
        builder_.send(tree.clock, rank(given.first), builder_.output(0), tree.clock + 1 - ready);
      }
      keep_rest(tree, given);
    }
    if (source) builder_.send_to_each(0, 0, sends, builder_.input(0));
  }

  const CollectiveParameters& parameters_;
  Split split_;
  Builder& builder_;
};

[[nodiscard]] inline Status begin_postal_tree(const CollectiveParameters& parameters,
                                              std::uint32_t me, const char* algorithm,
                                              Builder& builder) {
  const std::uint64_t mesh = std::uint64_t{parameters.rows} * parameters.columns;
  return builder.begin(
      parameters, me,
      {.collective = Collective::kBroadcast,
       .algorithm = algorithm,
       .one_block = true,
       .contention = mesh > 0 ? ContentionGuarantee::kSlot : ContentionGuarantee::kAsync,
       .send_ticks = parameters.send_ticks,
       .latency_ticks = parameters.latency_ticks});
}

// Whether a program has room for the sends of every rank. In the tree of `steps` ticks, a rank with
// the block sends every S ticks, and its last send arrives by the end. The first rank that the
// root sends to has `steps` - L ticks, more than any other rank except the root.
[[nodiscard]] inline bool has_room_for_sends(const CollectiveParameters& parameters,
                                             std::uint32_t steps) {
  const std::uint32_t send = parameters.send_ticks, latency = parameters.latency_ticks;
  return steps < 2 * latency || (steps - 2 * latency) / send < kMaxPostalSends;
}

// Adds the tree, which takes `steps` ticks, and finishes the program with the lower bound `bound`.
template <typename Split>
[[nodiscard]] Status finish_postal_tree(const CollectiveParameters& parameters, std::uint32_t me,
                                        const Split& split, std::uint32_t steps,
                                        std::uint32_t bound, Builder& builder) {
  PostalTree<Split>(parameters, split, builder).add(me);
  builder.phase(parameters.send_ticks, static_cast<std::int32_t>(steps), 0);
  return builder.finish(static_cast<std::int32_t>(bound), 0);
}

}  // namespace espalier
