// Lower bounds on the steps of any schedule of a collective.
//
// K = segments * N blocks in all; a transfer carries one block (or one partial result of one). In
// the postal model a send holds its port S steps and its receive is L - 1 steps later; S = L = 1
// elsewhere. F(p): the steps in which one block can reach p ranks, ceil(log2 p) where S = L = 1.
// * Broadcast, one send a step: the root sends K different blocks, so one of them leaves it for the
//   first time in step (K - 1) S + 1 at the earliest; from then on its holders can at most do what
//   is best for one block: (K - 1) S + F(p). (algorithms.md, section 5; Bar-Noy and Kipnis 1992.)
// * Reduce, one receive a step: the same, reversed in time. Each block's last message reaches the
//   root in a step of its own, so some block is complete there (K - 1) S steps before the end, and
//   it took F(p) steps to combine p inputs. Every rank of an allreduce is such a root.
// * Allreduce: for each block everyone learns of everyone, which takes 2 (p - 1) one-way messages
//   (Harary and Schwenk 1974, the one-way gossip). A rank begins at most one send in S steps, the
//   last L steps before the end: p ((T - L) / S + 1) >= messages.
// * Simplex: a transfer holds two ports, so at most floor(p / 2) run in a step.
// * Links: K blocks leave the root of a broadcast, or partial results of K blocks reach that of a
//   reduce, over the root's own links, so many lanes in all.

#include <algorithm>

#include "collectives/schedule/arithmetic.h"
#include "collectives/verify/check.h"

namespace espalier::verify {
namespace {

// In how many steps one block can reach p ranks: holders(t) = holders(t - S) + holders(t - L).
std::int64_t steps_to_reach(std::int64_t p, std::int64_t send, std::int64_t latency) {
  std::vector<std::int64_t> holders;
  for (std::int64_t t = 0;; ++t) {
    const auto back = [&](std::int64_t by) { return holders[static_cast<std::size_t>(t - by)]; };
    holders.push_back(t < latency ? 1 : back(send) + back(latency));
    if (holders.back() >= p) return t;
  }
}

std::int64_t lanes_at(const topology::Topology& topology, std::uint32_t node) {
  std::int64_t lanes = 0;
  for (std::uint32_t other = 0; other < topology.nodes(); ++other) {
    lanes += topology.capacity(node, other);
  }
  return lanes;
}

}  // namespace

std::vector<Witness> witnesses(const topology::Topology& topology, const Program& common) {
  const std::int64_t p = common.ranks, segments = common.segments;
  const std::int64_t s = send_ticks(common), l = latency_ticks(common);
  if (p == 1) return {{"one rank: nothing", 0, 0, 1}};
  const PortModel model = common.port_model;
  const bool broadcast = common.collective == espalier_Collective_BROADCAST;
  const bool allreduce = common.collective == espalier_Collective_ALLREDUCE;
  const std::int64_t each = (allreduce ? 2 : 1) * (p - 1);  // messages a block
  std::vector<Witness> all = {{"latency: some message must arrive", l, 0, 1}};
  if (model == espalier_PortModel_MULTIPORT) {
    if (!allreduce) {
      all.push_back({"links: every block passes the root's own", 0, segments,
                     std::max<std::int64_t>(1, lanes_at(topology, common.root))});
    }
    return all;
  }
  const std::int64_t reach = steps_to_reach(p, s, l);
  if (broadcast || model != espalier_PortModel_SINGLE_SEND) {
    all.push_back(
        {"port and log p: the root's port serves every block, the last must still reach "
         "(come from) all",
         reach - s, segments * s, 1});
  } else {
    all.push_back({"port: each rank sends for every block", l - s, segments * s, 1});
    if (allreduce) all.push_back({"log p: one block reaches all", reach, 0, 1});
  }
  if (model == espalier_PortModel_SIMPLEX) {
    const bool whole = s == 1 && l == 1;
    all.push_back({"messages: each holds two ports", 0, each * segments * (whole ? 1 : 2 * s),
                   whole ? p / 2 : p});
  } else if (allreduce) {
    all.push_back(
        {"messages: two a rank and block, less two in all", (l - s) * p, s * each * segments, p});
  }
  return all;
}

std::vector<std::string> describe(const std::vector<Witness>& all) {
  std::vector<std::string> lines;
  for (const Witness& witness : all) {
    std::string formula = std::to_string(witness.a);
    if (witness.b != 0) formula += " + " + std::to_string(witness.b) + " N";
    if (witness.d != 1) formula = "ceil((" + formula + ") / " + std::to_string(witness.d) + ")";
    lines.push_back(formula + " steps: " + witness.reason);
  }
  return lines;
}

Finding check_bound(const Case& at, std::int64_t steps) {
  const Program& common = *at.common;
  const std::int64_t bound = count_value(common.counts[common.bound_ref], at.blocks);
  std::int64_t known = 0;
  std::string reason;
  for (const Witness& witness : witnesses(*at.topology, common)) {
    if (witness.steps(at.blocks) < known) continue;
    known = witness.steps(at.blocks);
    reason = witness.reason;
  }
  if (bound <= known && bound <= steps) return std::nullopt;
  return found(Point::kSteps, at, -1, nullptr,
               "a lower bound of " + std::to_string(bound) +
                   " steps is claimed; ports and log p prove " + std::to_string(known) + " (" +
                   reason + "), and the schedule takes " + std::to_string(steps));
}

// The claim is above a witness on one half line of N; it is wrong where it is above all of them.
Finding check_bound(Case& at, const Linear& steps, std::string& limited) {
  const Program& common = *at.common;
  Linear claim;
  if (!is_linear(common.counts[common.bound_ref], claim)) {
    limited = "the claimed lower bound is not linear in N";
    return std::nullopt;
  }
  const auto wrong_from = [&claim](const std::vector<Witness>& all) {
    std::int64_t low = 1, high = kMaxBlocks;
    for (const Witness& witness : all) {
      // d (a + b N) > witness.a + witness.b N + d - 1
      const std::int64_t slope = witness.d * claim.b - witness.b;
      const std::int64_t rest = witness.a + witness.d - 1 - witness.d * claim.a;
      if (slope > 0) low = std::max(low, floor_div(rest, slope) + 1);
      if (slope < 0) high = std::min(high, ceil_div(-rest, -slope) - 1);
      if (slope == 0 && rest >= 0) high = 0;
    }
    return low <= high ? low : 0;
  };
  for (const std::int64_t blocks :
       {wrong_from(witnesses(*at.topology, common)), wrong_from({{"", steps.a, steps.b, 1}})}) {
    if (blocks == 0) continue;
    set_blocks(at, blocks);
    return check_bound(static_cast<const Case&>(at), steps.a + steps.b * blocks);
  }
  return std::nullopt;
}

}  // namespace espalier::verify
