// Broadcast and commutative reduce by a fractional tree for simplex ports, which send or receive in
// a step but not both. A run of r blocks takes 2r+1 steps, as [Sanders03], section 3, promises. A
// reduce is the broadcast reversed in time.
//
// Steps: a + (2r+1) N/r, N a multiple of r. First blocks reach all of 1024 ranks in 14, 23, 34, 45
// steps for r = 1, 2, 3, 4. (Pairs of ranks with runs twice as long have the same period, but need
// 38, 60, 82, 100 steps.) Cost: steps * (alpha + beta*m/N). r is `run_length`, at most
// kMaxDirectRunLength, or 4. Runs up to 4 are searched exhaustively, and for P = 1024, beta*m =
// 4096 alpha r = 4 is the best of these.
//
// In steady state a rank with all successors has no free step: r receives, r sends down, 1 send to
// the right. The assignment of steps must fit from rank to rank and from group to group
// (simplex_family.h). For each group, the tree then takes the passing that reaches the most ranks
// in the remaining steps.

#include "collectives/search/fractional_direct.h"

#include <algorithm>

#include "collectives/search/searches.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kDefaultRunLength = 4;

// The maximum number of ranks in a group's subtree that get their first block within t steps of its
// head, and the passing that achieves it.
class Reach {
 public:
  explicit Reach(const SimplexFamily& family)
      : family_(family),
        arrivals_(family.passings.size()),
        most_(family.passings.size()),
        best_(family.passings.size()) {
    PassingSteps steps{};
    for (std::size_t pattern = 0; pattern < arrivals_.size(); ++pattern) {
      for (const Passing& passing : family.passings[pattern]) {
        std::vector<std::int32_t>& arrivals = arrivals_[pattern].emplace_back();
        if (!pass_on(family.patterns[pattern], passing.slots.data(), steps)) continue;
        for (const RunSteps& receives : steps.receives) arrivals.push_back(receives[0]);
      }
    }
  }

  // Computes the values for one more t.
  void extend() {
    const auto t = static_cast<std::int32_t>(steps_++);
    for (std::size_t pattern = 0; pattern < most_.size(); ++pattern) {
      std::uint64_t most = 0;
      std::uint32_t best = 0;
      for (std::uint32_t choice = 0; choice < family_.passings[pattern].size(); ++choice) {
        const std::uint64_t reached = count(pattern, choice, t);
        if (reached > most) {
          most = reached;
          best = choice;
        }
      }
      most_[pattern].push_back(most);
      best_[pattern].push_back(best);
    }
  }
  [[nodiscard]] std::uint64_t most(std::size_t pattern, std::int32_t t) const {
    return t < 0 ? 0 : most_[pattern][static_cast<std::size_t>(t)];
  }
  [[nodiscard]] const Passing& best(std::size_t pattern, std::int32_t t) const {
    return family_.passings[pattern][best_[pattern][static_cast<std::size_t>(t)]];
  }
  // A pattern that reaches the most ranks.
  [[nodiscard]] std::size_t best_pattern() const {
    std::size_t best = 0;
    for (std::size_t pattern = 1; pattern < most_.size(); ++pattern) {
      if (most_[pattern].back() > most_[best].back()) best = pattern;
    }
    return best;
  }

 private:
  // A group has successors only if it is complete.
  [[nodiscard]] std::uint64_t count(std::size_t pattern, std::uint32_t choice,
                                    std::int32_t t) const {
    const Passing& passing = family_.passings[pattern][choice];
    if (t >= passing.last_arrival) {
      return family_.run_length + most(passing.down, t - passing.down_delay) +
             most(passing.right, t - passing.right_delay);
    }
    const std::vector<std::int32_t>& arrivals = arrivals_[pattern][choice];
    std::uint64_t reached = 0;
    while (reached < arrivals.size() && arrivals[reached] <= t) ++reached;
    return reached;
  }

  const SimplexFamily& family_;
  std::size_t steps_ = 0;
  // [pattern][choice][i]: when rank i of a group gets its first block; empty: that does not fit
  std::vector<std::vector<std::vector<std::int32_t>>> arrivals_;
  std::vector<std::vector<std::uint64_t>> most_;  // [pattern][t]
  std::vector<std::vector<std::uint32_t>> best_;
};

// A group of the largest tree within the steps, before superfluous ranks are removed.
struct Sketch {
  std::uint32_t pattern = 0;
  std::int32_t arrival = -1, left = 0;  // `left`: remaining steps after the head's arrival
  std::uint32_t parent = 0;
  bool is_right = false;
  PassingSteps steps{};
  std::int32_t size = 0;  // ranks reached within the remaining steps; later: ranks wanted
};

std::vector<Sketch> sketch(const SimplexFamily& family, const Reach& reach, std::size_t start,
                           std::int32_t depth) {
  std::vector<Sketch> all;
  all.push_back({.pattern = static_cast<std::uint32_t>(start), .left = depth});
  for (std::uint32_t index = 0; index < all.size(); ++index) {
    const Passing& passing = reach.best(all[index].pattern, all[index].left);
    const bool fits =
        pass_on(family.patterns[all[index].pattern], passing.slots.data(), all[index].steps);
    const std::int32_t left = all[index].left, arrival = all[index].arrival;
    for (std::uint32_t position = 0; fits && position < family.run_length; ++position) {
      all[index].size += all[index].steps.receives[position][0] <= left;
    }
    if (left < passing.last_arrival) continue;
    const auto add = [&](std::uint32_t pattern, std::int32_t delay, bool is_right) {
      if (reach.most(pattern, left - delay) == 0) return;
      all.push_back({.pattern = pattern,
                     .arrival = arrival + delay,
                     .left = left - delay,
                     .parent = index,
                     .is_right = is_right});
    };
    add(passing.down, passing.down_delay, false);
    add(passing.right, passing.right_delay, true);
  }
  return all;
}

// Keeps the `ranks` ranks that are reached first. A group whose parent is not complete is removed
// too.
void keep(std::vector<Sketch>& all, std::uint32_t ranks) {
  struct Arrival {
    std::int32_t step;
    std::uint32_t group;
  };
  std::vector<Arrival> arrivals;
  // Step in which the last rank of a group, and of all groups above it, is reached.
  std::vector<std::int32_t> whole;
  for (std::uint32_t group = 0; group < all.size(); ++group) {
    const std::int32_t above = group == 0 ? -1 : whole[all[group].parent];
    std::int32_t step = -1;
    for (std::int32_t position = 0; position < all[group].size; ++position) {
      step = std::max(above, all[group].arrival +
                                 all[group].steps.receives[static_cast<std::size_t>(position)][0]);
      arrivals.push_back({step, group});
    }
    whole.push_back(step);
    all[group].size = 0;
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const Arrival& a, const Arrival& b) { return a.step < b.step; });
  for (std::size_t i = 0; i < ranks; ++i) ++all[arrivals[i].group].size;
}

}  // namespace

DirectTree direct_tree(const SimplexFamily& family, std::uint32_t ranks) {
  Reach reach(family);
  std::int32_t depth = 0;
  for (reach.extend(); reach.most(reach.best_pattern(), depth) < ranks; ++depth) reach.extend();
  std::vector<Sketch> all = sketch(family, reach, reach.best_pattern(), depth);
  keep(all, ranks);
  DirectTree tree{
      .run_length = family.run_length, .groups = {}, .depth = static_cast<std::uint32_t>(depth)};
  std::uint32_t next = 0;
  std::vector<std::uint32_t> position(all.size());
  for (std::size_t group = 0; group < all.size(); ++group) {
    if (all[group].size == 0) continue;
    position[group] = static_cast<std::uint32_t>(tree.groups.size());
    const auto size = static_cast<std::uint32_t>(all[group].size);
    tree.groups.push_back({.first = next,
                           .size = size,
                           .arrival = all[group].arrival,
                           .steps = std::move(all[group].steps)});
    if (group > 0) {
      DirectTree::TreeGroup& parent = tree.groups[position[all[group].parent]];
      (all[group].is_right ? parent.right : parent.down) = next;
    }
    next += size;
  }
  return tree;
}

namespace {

Broadcast plan(const CollectiveParameters& parameters, Collective collective,
               const DirectTree& tree) {
  Broadcast broadcast{.outline = {.collective = collective,
                                  .algorithm = "fractional-direct",
                                  .needs_commutative = collective == Collective::kReduce,
                                  .port_model = PortModel::kSimplex},
                      .period = 2 * tree.run_length + 1,
                      .every = tree.run_length,
                      .whole_runs = true};
  std::uint32_t last = 0;
  const auto rank = [&](std::uint32_t virtual_rank) {
    return (parameters.root + virtual_rank) % parameters.ranks;
  };
  for (const DirectTree::TreeGroup& tree_group : tree.groups) {
    const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t block,
                         const RunSteps& steps) {
      const auto step = static_cast<std::uint32_t>(tree_group.arrival + steps[block]);
      broadcast.streams.push_back(
          {.from = rank(from), .to = rank(to), .first = block, .step = step});
      last = std::max(last, step);
    };
    for (std::uint32_t block = 0; block < tree.run_length; ++block) {
      for (std::uint32_t i = 1; i < tree_group.size; ++i) {
        add(tree_group.first + i - 1, tree_group.first + i, block, tree_group.steps.receives[i]);
      }
      if (tree_group.down != 0)
        add(tree_group.first + tree_group.size - 1, tree_group.down, block,
            tree_group.steps.receives[tree_group.size]);
      if (tree_group.right != 0)
        add(tree_group.first + tree_group.steps.sender[block], tree_group.right, block,
            tree_group.steps.right);
    }
  }
  // The source, which receives nothing, may be ready before the first step of its pattern is free.
  std::uint32_t first = last;
  for (const Stream& stream : broadcast.streams) first = std::min(first, stream.step);
  for (Stream& stream : broadcast.streams) stream.step -= first;
  broadcast.steps.a =
      static_cast<std::int32_t>(last + 1 - first) - static_cast<std::int32_t>(broadcast.period);
  broadcast.steps.c = static_cast<std::int32_t>(broadcast.period);
  broadcast.steps.e = tree.run_length;
  return broadcast;
}

Result<Programs> direct(Collective collective, const topology::Topology& topology,
                        const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  if (parameters.run_length > kMaxDirectRunLength) {
    return fail("fractional-direct: runs of " + std::to_string(parameters.run_length) +
                "; expected r at most " + std::to_string(kMaxDirectRunLength) +
                " (fractional-simplex has longer ones)");
  }
  const SimplexFamily& family =
      simplex_family(parameters.run_length == 0 ? kDefaultRunLength : parameters.run_length);
  const Broadcast broadcast = plan(parameters, collective, direct_tree(family, parameters.ranks));
  return collective == Collective::kReduce ? write_reduce(parameters, broadcast)
                                           : write_broadcast(parameters, broadcast);
}

}  // namespace

const SearchedAlgorithm kFractionalDirectRows[] = {
    row("fractional-direct", Collective::kBroadcast, direct,
        "a fractional tree for simplex ports, --run-length r: a+(2r+1)N/r steps, N a multiple of r",
        {.max_run_length = kMaxDirectRunLength, .any_topology = true}),
    row("fractional-direct", Collective::kReduce, direct,
        "a fractional tree for simplex ports, --run-length r: a+(2r+1)N/r steps, N a multiple of r",
        {.needs_commutative = true, .max_run_length = kMaxDirectRunLength, .any_topology = true}),
};

}  // namespace espalier::searched
