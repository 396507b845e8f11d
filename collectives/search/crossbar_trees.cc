// Broadcast and commutative reduce on a hierarchical crossbar by one fractional tree whose groups
// lie within modules. A reduce is the broadcast reversed in time: channels into a module become
// channels out of it.
//
// Steps: d + N + ceil(N/r) - 1, where d is the step in which the last rank gets its first block. On
// 256 modules of 64 ranks, d is 96 (r = 8) and 176 (r = 16) with variant A, 129 and 235 with
// variant B. The same ranks on a complete graph have 91 and 163. With the 256 modules in 16 modules
// of 16 and r = 8, d is 100 with variant A, 163 with variant B. Cost: steps * (alpha + beta*m/N),
// N as in fractional.cc.
//
// The global tree uses the links between modules as soon as they can be fed, earliest first. A: a
// group with one successor feeds the local tree of its module over its other link. A group without
// successors feeds its local tree to the right. Its down link serves the local tree of a module
// whose group has two successors, the earliest first. (There is one such leaf more than there are
// groups with two successors.) B: in each module a first group has a second group to its right. The
// second group has the local tree to its right. Both groups feed other modules down.
//
// Modules of modules. A: the local tree of a module is again a tree of groups, one in each of its
// modules except the first, which has the outer group. These groups have as many free links as the
// module has modules, so each gets its own local tree. Every module of every level has at most two
// streams in, the group's and the local tree's, and the two of its first group out. B: the first
// module's two links out of it are the outer module's first link out and the link to the second
// module. Its first link out is the outer module's second one. All other links stay inside. So
// every module of every level has one stream in and two out.

#include "collectives/search/crossbar_trees.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "base/counted.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/search/searches.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

// A module and the ranks in it that are in no group yet.
struct Module {
  std::vector<Module> parts;         // its modules; none: an innermost module, which has ranks
  std::vector<std::uint32_t> ranks;  // in order; the first `taken` are in groups
  std::uint32_t taken = 0;

  [[nodiscard]] Module& innermost() { return parts.empty() ? *this : parts.front().innermost(); }
  [[nodiscard]] std::uint32_t left() const {
    if (parts.empty()) return static_cast<std::uint32_t>(ranks.size()) - taken;
    std::uint32_t sum = 0;
    for (const Module& part : parts) sum += part.left();
    return sum;
  }
  // The next `size` ranks of the first innermost module.
  [[nodiscard]] std::span<const std::uint32_t> take(std::uint32_t size) {
    Module& module = innermost();
    module.taken += size;
    return std::span(module.ranks).subspan(module.taken - size, size);
  }
};

// The module of `sizes` whose first rank is `first`. The root's modules and the root are in front,
// if the module has the root.
Module module_of(std::span<const std::uint32_t> sizes, std::uint32_t first, std::uint32_t root) {
  std::uint32_t ranks = 1, inside = 1;  // in the module, and in each of its modules
  for (const std::uint32_t size : sizes) ranks *= size;
  for (const std::uint32_t size : sizes.subspan(1)) inside *= size;
  const bool has_root = root >= first && root - first < ranks;
  const std::uint32_t front = has_root ? (root - first) / inside : 0;
  Module module;
  for (std::uint32_t i = 0; i < sizes.front(); ++i) {
    const std::uint32_t next = first + (front + i) % sizes.front() * inside;
    if (sizes.size() == 1) {
      module.ranks.push_back(next);
    } else {
      module.parts.push_back(module_of(sizes.subspan(1), next, root));
    }
  }
  return module;
}

// The whole crossbar, without outer levels of a single module.
Module whole_of(std::span<const std::uint32_t> sizes, std::uint32_t root) {
  while (sizes.size() > 1 && sizes.front() == 1) sizes = sizes.subspan(1);
  return module_of(sizes, 0, root);
}

// A link that can feed a module not yet reached.
struct Offer {
  std::int32_t arrival;
  std::uint32_t group;
  bool is_right;
  bool operator>(const Offer& other) const {
    return arrival != other.arrival ? arrival > other.arrival : group > other.group;
  }
};
using Offers = std::priority_queue<Offer, std::vector<Offer>, std::greater<>>;

Offer down_of(const FractionalForest& forest, std::uint32_t group) {
  return {forest.down_arrival(group), group, false};
}
Offer right_of(const FractionalForest& forest, std::uint32_t group) {
  return {forest.right_arrival(group), group, true};
}
Offer take_first(Offers& offers) {
  const Offer offer = offers.top();
  offers.pop();
  return offer;
}

class VariantA {
 public:
  explicit VariantA(std::uint32_t run_length) : forest_{.run_length = run_length, .groups = {}} {}

  // The tree of all ranks.
  FractionalForest lay_out(Module& whole) {
    if (whole.parts.empty()) {
      (void)forest_.add_tree(whole.ranks, -1);
    } else {
      span(whole.parts, nullptr, std::nullopt);
    }
    return std::move(forest_);
  }

 private:
  void connect(const Offer& link, std::uint32_t group) {
    (link.is_right ? forest_.groups[link.group].right : forest_.groups[link.group].down) = group;
  }

  // Adds a tree of groups, one in each of the modules, and the trees of the ranks left in them and
  // in `before`. `link` feeds the first group; without it that is the source's.
  void span(std::span<Module> modules, Module* before, std::optional<Offer> link) {
    Offers offers;
    std::vector<std::uint32_t> group_of;
    for (Module& module : modules) {
      if (!offers.empty()) link = take_first(offers);
      const std::uint32_t group =
          forest_.add_group(module.take(forest_.run_length), link ? link->arrival : -1);
      if (link) connect(*link, group);
      group_of.push_back(group);
      offers.push(down_of(forest_, group));
      offers.push(right_of(forest_, group));
    }
    std::vector<Module*> waiting;
    std::vector<std::uint32_t> leaves;
    if (before != nullptr) waiting.push_back(before);
    for (std::size_t i = 0; i < modules.size(); ++i) {
      const FractionalGroup& group = forest_.groups[group_of[i]];
      const bool has_down = group.down != kNoGroup, has_right = group.right != kNoGroup;
      if (has_down && has_right) {
        waiting.push_back(&modules[i]);
        continue;
      }
      if (!has_down && !has_right) leaves.push_back(group_of[i]);
      cover(modules[i], has_right ? down_of(forest_, group_of[i]) : right_of(forest_, group_of[i]));
    }
    std::stable_sort(leaves.begin(), leaves.end(), [&](std::uint32_t a, std::uint32_t b) {
      return forest_.groups[a].arrival < forest_.groups[b].arrival;
    });
    ESPALIER_ASSERT(waiting.size() <= leaves.size());
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      cover(*waiting[i], down_of(forest_, leaves[i]));
    }
  }

  // Feeds the ranks left in a module whose first innermost module has a group.
  void cover(Module& module, const Offer& link) {
    if (module.left() == 0) return;
    if (module.parts.empty()) {
      const std::uint32_t left = module.left();
      connect(link, forest_.add_tree(module.take(left), link.arrival));
    } else if (module.parts.size() == 1) {
      cover(module.parts[0], link);
    } else {
      span(std::span(module.parts).subspan(1), &module.parts[0], link);
    }
  }

  FractionalForest forest_;
};

class VariantB {
 public:
  explicit VariantB(std::uint32_t run_length) : forest_{.run_length = run_length, .groups = {}} {}

  // The tree of all ranks.
  FractionalForest lay_out(Module& whole) {
    if (whole.parts.empty()) {
      (void)forest_.add_tree(whole.ranks, -1);
    } else {
      Offers offers;
      for (const std::uint32_t group : place(whole.parts[0], std::nullopt)) {
        offers.push(down_of(forest_, group));
      }
      fill(std::span(whole.parts).subspan(1), offers);
    }
    return std::move(forest_);
  }

 private:
  // Two groups whose down links lead out of a module, the earlier one first.
  using Exits = std::array<std::uint32_t, 2>;

  // Adds the groups and trees of a module, fed by the link; without it, it has the source.
  Exits place(Module& module, std::optional<Offer> link) {
    if (module.parts.empty()) return place_innermost(module, link);
    const Exits first = place(module.parts[0], link);
    if (module.parts.size() == 1) return first;
    const Exits second = place(module.parts[1], down_of(forest_, first[1]));
    Offers offers;
    offers.push(down_of(forest_, second[1]));
    fill(std::span(module.parts).subspan(2), offers);
    return {first[0], second[0]};
  }

  Exits place_innermost(Module& module, std::optional<Offer> link) {
    const std::uint32_t run_length = forest_.run_length;
    const std::uint32_t first =
        forest_.add_group(module.take(run_length), link ? link->arrival : -1);
    if (link) forest_.set_down(link->group, first);
    const std::uint32_t second =
        forest_.add_group(module.take(run_length), forest_.right_arrival(first));
    forest_.set_right(first, second);
    if (const std::uint32_t left = module.left(); left > 0) {
      const std::int32_t arrival = forest_.right_arrival(second);
      forest_.set_right(second, forest_.add_tree(module.take(left), arrival));
    }
    return {first, second};
  }

  // Places each module at the earliest offer.
  void fill(std::span<Module> modules, Offers& offers) {
    for (Module& module : modules) {
      for (const std::uint32_t group : place(module, take_first(offers))) {
        offers.push(down_of(forest_, group));
      }
    }
  }

  FractionalForest forest_;
};

}  // namespace

FractionalForest crossbar_a(std::span<const std::uint32_t> sizes, std::uint32_t root,
                            std::uint32_t run_length) {
  ESPALIER_ASSERT(run_length <= sizes.back());
  Module whole = whole_of(sizes, root);
  return VariantA(run_length).lay_out(whole);
}

FractionalForest crossbar_b(std::span<const std::uint32_t> sizes, std::uint32_t root,
                            std::uint32_t run_length) {
  ESPALIER_ASSERT(2 * run_length <= sizes.back());
  Module whole = whole_of(sizes, root);
  return VariantB(run_length).lay_out(whole);
}

namespace {

struct Variant {
  const char* name;
  std::uint32_t groups;                     // groups per module
  std::uint32_t channels_in, channels_out;  // of a broadcast
  ContentionGuarantee contention;
  FractionalForest (*lay_out)(std::span<const std::uint32_t> sizes, std::uint32_t root,
                              std::uint32_t run_length);
};

// In variant A all ranks of a group feed a head in another module, in turn: over one channel, but
// only in lock step. In variant B all blocks that leave a module go from one rank to one other
// rank.
constexpr Variant kVariantA = {"crossbar-a", 1, 2, 2, ContentionGuarantee::kSlot, crossbar_a};
constexpr Variant kVariantB = {"crossbar-b", 2, 1, 2, ContentionGuarantee::kAsync, crossbar_b};

std::uint32_t least(const std::vector<std::uint32_t>& channels) {
  return *std::min_element(channels.begin(), channels.end());
}

bool on_crossbar(const topology::Topology& topology) { return !topology.shape().crossbar.empty(); }

template <const Variant& variant>
Result<Programs> search(Collective collective, const topology::Topology& topology,
                        const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const topology::Shape shape = topology.shape();
  const std::string who = std::string(variant.name) + " on " + topology.title() + ": ";
  if (shape.crossbar.empty()) return fail(who + "expected crossbar:AxB[xC..]");
  const bool reduces = collective == Collective::kReduce;
  const bool several = shape.crossbar.back() < topology.ranks();  // modules
  const std::uint32_t in = reduces ? variant.channels_out : variant.channels_in;
  const std::uint32_t out = reduces ? variant.channels_in : variant.channels_out;
  if (several && (least(shape.channels_in) < in || least(shape.channels_out) < out)) {
    return fail(who + "expected at least " + counted(in, "channel") + " in and " +
                std::to_string(out) + " out of a module");
  }
  const std::uint32_t room = reduces ? kMaxReduceRunLength : kMaxRunLength;
  const std::uint32_t longest = std::min(room, shape.crossbar.back() / variant.groups);
  if (longest == 0 || parameters.run_length > longest) {
    return fail(who + "runs of " +
                std::to_string(parameters.run_length == 0 ? 1 : parameters.run_length) +
                " do not fit; expected r at most " + std::to_string(room) +
                " and modules of at least " + std::to_string(variant.groups) + " r ranks");
  }
  const std::uint32_t run_length = std::min(longest, fractional_run_length(parameters));
  const FractionalForest forest = variant.lay_out(shape.crossbar, parameters.root, run_length);
  const Broadcast broadcast =
      forest.broadcast({.collective = collective,
                        .algorithm = variant.name,
                        .needs_commutative = reduces,
                        .contention = several ? variant.contention : ContentionGuarantee::kAsync});
  return reduces ? write_reduce(parameters, broadcast) : write_broadcast(parameters, broadcast);
}

}  // namespace

const SearchedAlgorithm kCrossbarRows[] = {
    row("crossbar-a", Collective::kBroadcast, search<kVariantA>,
        "a fractional tree, --run-length r, two channels in and out of a module: d+N+ceil(N/r)-1 "
        "steps",
        {.topologies = "crossbar:AxB[xC..]",
         .applies = on_crossbar,
         .max_run_length = kMaxRunLength}),
    row("crossbar-b", Collective::kBroadcast, search<kVariantB>,
        "a fractional tree, --run-length r, one channel in and two out of a module: "
        "d+N+ceil(N/r)-1 steps",
        {.topologies = "crossbar:AxB[xC..]",
         .applies = on_crossbar,
         .max_run_length = kMaxRunLength}),
    row("crossbar-a", Collective::kReduce, search<kVariantA>,
        "a fractional tree, --run-length r, two channels in and out of a module: d+N+ceil(N/r)-1 "
        "steps",
        {.needs_commutative = true,
         .topologies = "crossbar:AxB[xC..]",
         .applies = on_crossbar,
         .max_run_length = kMaxReduceRunLength}),
    row("crossbar-b", Collective::kReduce, search<kVariantB>,
        "a fractional tree, --run-length r, two channels in and one out of a module: "
        "d+N+ceil(N/r)-1 steps",
        {.needs_commutative = true,
         .topologies = "crossbar:AxB[xC..]",
         .applies = on_crossbar,
         .max_run_length = kMaxReduceRunLength}),
};

}  // namespace espalier::searched
