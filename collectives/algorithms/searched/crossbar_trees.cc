// Broadcast and commutative reduce on a hierarchical crossbar by one fractional tree whose groups
// lie within modules. A reduce is the broadcast reversed in time: channels into a module become
// channels out of it.
//
// Steps: d + N + ceil(N/r) - 1, where d is the step in which the last rank gets its first block. On
// 256 modules of 64 ranks, d is 96 (r = 8) and 176 (r = 16) with variant A, 129 and 235 with
// variant B. The same ranks on a complete graph have 91 and 163. Cost: steps * (alpha + beta*m/N),
// N as in fractional.cc.
//
// The global tree uses the links between modules as soon as they can be fed, earliest first. A: a
// group with one successor feeds the local tree of its module over its other link. A group without
// successors feeds its local tree to the right. Its down link serves the local tree of a module
// whose group has two successors, the earliest first. (There is one such leaf more than there are
// groups with two successors.) B: in each module a first group has a second group to its right. The
// second group has the local tree to its right. Both groups feed other modules down.

#include "collectives/algorithms/searched/crossbar_trees.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "collectives/algorithms/searched/searches.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "espalier/base/assert.h"

namespace espalier::searched {
namespace {

// The modules, the root's first, which begins with the root.
std::vector<std::vector<std::uint32_t>> modules_of(const CrossbarShape& shape, std::uint32_t root) {
  std::vector<std::vector<std::uint32_t>> modules(shape.modules);
  for (std::uint32_t index = 0; index < shape.modules; ++index) {
    const std::uint32_t module = (root / shape.ranks + index) % shape.modules;
    for (std::uint32_t i = 0; i < shape.ranks; ++i) {
      const std::uint32_t first = index == 0 ? root % shape.ranks : 0;
      modules[index].push_back(module * shape.ranks + (first + i) % shape.ranks);
    }
  }
  return modules;
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

std::span<const std::uint32_t> part(const std::vector<std::uint32_t>& module, std::uint32_t first,
                                    std::uint32_t size) {
  return std::span(module).subspan(first, size);
}

// Without other modules no link has to be kept for them.
FractionalForest one_module(const std::vector<std::uint32_t>& module, FractionalForest forest) {
  (void)forest.add_tree(module, -1);
  return forest;
}

}  // namespace

FractionalForest crossbar_a(const CrossbarShape& shape, std::uint32_t root,
                            std::uint32_t run_length) {
  ESPALIER_ASSERT(run_length <= shape.ranks);
  const auto modules = modules_of(shape, root);
  FractionalForest forest{.run_length = run_length, .groups = {}};
  if (shape.modules == 1) return one_module(modules[0], std::move(forest));
  Offers offers;
  // Module number `module` has group number `module`.
  for (std::uint32_t module = 0; module < shape.modules; ++module) {
    std::int32_t arrival = -1;
    if (module > 0) {
      const Offer offer = offers.top();
      offers.pop();
      arrival = offer.arrival;
      (offer.is_right ? forest.groups[offer.group].right : forest.groups[offer.group].down) =
          module;
    }
    forest.add_group(part(modules[module], 0, run_length), arrival);
    offers.push({forest.down_arrival(module), module, false});
    offers.push({forest.right_arrival(module), module, true});
  }
  const std::uint32_t local = shape.ranks - run_length;
  if (local == 0) return forest;
  std::vector<std::uint32_t> leaves, full;
  for (std::uint32_t module = 0; module < shape.modules; ++module) {
    const FractionalGroup& group = forest.groups[module];
    const bool has_down = group.down != kNoGroup, has_right = group.right != kNoGroup;
    if (has_down && has_right) full.push_back(module);
    if (!has_down && !has_right) leaves.push_back(module);
    if (has_down && has_right) continue;
    if (has_down || !has_right) {
      const std::int32_t arrival = forest.right_arrival(module);
      forest.set_right(module, forest.add_tree(part(modules[module], run_length, local), arrival));
    } else {
      const std::int32_t arrival = forest.down_arrival(module);
      forest.set_down(module, forest.add_tree(part(modules[module], run_length, local), arrival));
    }
  }
  std::stable_sort(leaves.begin(), leaves.end(), [&](std::uint32_t a, std::uint32_t b) {
    return forest.groups[a].arrival < forest.groups[b].arrival;
  });
  for (std::size_t i = 0; i < full.size(); ++i) {
    const std::int32_t arrival = forest.down_arrival(leaves[i]);
    const auto ranks = part(modules[full[i]], run_length, local);
    forest.set_down(leaves[i], forest.add_tree(ranks, arrival));
  }
  return forest;
}

FractionalForest crossbar_b(const CrossbarShape& shape, std::uint32_t root,
                            std::uint32_t run_length) {
  ESPALIER_ASSERT(2 * run_length <= shape.ranks);
  const auto modules = modules_of(shape, root);
  FractionalForest forest{.run_length = run_length, .groups = {}};
  if (shape.modules == 1) return one_module(modules[0], std::move(forest));
  Offers offers;
  for (const std::vector<std::uint32_t>& module : modules) {
    std::int32_t arrival = -1;
    if (!offers.empty()) {
      const Offer offer = offers.top();
      offers.pop();
      arrival = offer.arrival;
      forest.set_down(offer.group, static_cast<std::uint32_t>(forest.groups.size()));
    }
    const std::uint32_t first = forest.add_group(part(module, 0, run_length), arrival);
    const std::uint32_t second =
        forest.add_group(part(module, run_length, run_length), forest.right_arrival(first));
    forest.set_right(first, second);
    offers.push({forest.down_arrival(first), first, false});
    offers.push({forest.down_arrival(second), second, false});
    const std::uint32_t local = shape.ranks - 2 * run_length;
    if (local == 0) continue;
    const std::int32_t below = forest.right_arrival(second);
    forest.set_right(second, forest.add_tree(part(module, 2 * run_length, local), below));
  }
  return forest;
}

namespace {

struct Variant {
  const char* name;
  std::uint32_t groups;                     // groups per module
  std::uint32_t channels_in, channels_out;  // of a broadcast
  ContentionGuarantee contention;
  FractionalForest (*lay_out)(const CrossbarShape&, std::uint32_t root, std::uint32_t run_length);
};

// In variant A all ranks of a group feed a head in another module, in turn: over one channel, but
// only in lock step. In variant B all blocks that leave a module go from one rank to one other
// rank.
constexpr Variant kVariantA = {"crossbar-a", 1, 2, 2, ContentionGuarantee::kSlot, crossbar_a};
constexpr Variant kVariantB = {"crossbar-b", 2, 1, 2, ContentionGuarantee::kAsync, crossbar_b};

Result<Programs> search(const Variant& variant, Collective collective,
                        const topology::Topology& topology,
                        const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const topology::Shape shape = topology.shape();
  const std::string who = std::string(variant.name) + " on " + topology.title() + ": ";
  if (shape.modules == 0) return fail(who + "expected crossbar:AxB");
  const bool reduces = collective == Collective::kReduce;
  const bool several = shape.modules > 1;
  const std::uint32_t in = reduces ? variant.channels_out : variant.channels_in;
  const std::uint32_t out = reduces ? variant.channels_in : variant.channels_out;
  if (several && (shape.channels_in < in || shape.channels_out < out)) {
    return fail(who + "expected at least " + std::to_string(in) + " channels in and " +
                std::to_string(out) + " out of a module");
  }
  const std::uint32_t room = reduces ? kMaxReduceRunLength : kMaxRunLength;
  const std::uint32_t longest = std::min(room, shape.module_ranks / variant.groups);
  if (longest == 0 || parameters.run_length > longest) {
    return fail(who + "runs of " +
                std::to_string(parameters.run_length == 0 ? 1 : parameters.run_length) +
                " do not fit; expected r at most " + std::to_string(room) +
                " and modules of at least " + std::to_string(variant.groups) + " r ranks");
  }
  const std::uint32_t run_length = std::min(longest, fractional_run_length(parameters));
  const FractionalForest forest =
      variant.lay_out({shape.modules, shape.module_ranks}, parameters.root, run_length);
  const Outline outline{.collective = collective,
                        .algorithm = variant.name,
                        .needs_commutative = reduces,
                        .contention = several ? variant.contention : ContentionGuarantee::kAsync};
  const Broadcast broadcast = forest.broadcast(outline);
  return reduces ? write_reduce(parameters, broadcast) : write_broadcast(parameters, broadcast);
}

}  // namespace

Result<Programs> crossbar_a_broadcast(const topology::Topology& topology,
                                      const CollectiveParameters& parameters) {
  return search(kVariantA, Collective::kBroadcast, topology, parameters);
}

Result<Programs> crossbar_a_reduce(const topology::Topology& topology,
                                   const CollectiveParameters& parameters) {
  return search(kVariantA, Collective::kReduce, topology, parameters);
}

Result<Programs> crossbar_b_broadcast(const topology::Topology& topology,
                                      const CollectiveParameters& parameters) {
  return search(kVariantB, Collective::kBroadcast, topology, parameters);
}

Result<Programs> crossbar_b_reduce(const topology::Topology& topology,
                                   const CollectiveParameters& parameters) {
  return search(kVariantB, Collective::kReduce, topology, parameters);
}

}  // namespace espalier::searched
