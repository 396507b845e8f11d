// Lower bounds on the steps of any schedule of a collective.
//
// K = segments * N is the number of blocks in all. A transfer carries one block, or one partial
// result of a block. In the postal model a send holds its port S steps and its receive is L - 1
// steps later; otherwise S = L = 1. F(p) is the number of steps in which one block can reach p
// ranks: ceil(log2 p) if S = L = 1. A message with R segments carries R blocks at once; then N = 1.
//
// * One block, one send per step. Each rank that must receive a rank's input gets it, alone or
//   combined, from a rank that already has it. So one rank's input reaches p ranks in F(p) steps at
//   the earliest. It must in all collectives except reduce and gather. For these the same holds for
//   one receive per step, reversed in time.
// * Every block, one send per step. The root of a broadcast sends K different blocks; so does any
//   rank of an allreduce, and rank 0 of a scan and exscan. One of these blocks leaves it for the
//   first time in step (K - 1) S + 1 at the earliest. From then on its holders can at most do the
//   optimum for one block: (K - 1) S + F(p) (Bar-Noy and Kipnis 1992). For a reduce with one
//   receive per step the same holds, reversed in time.
// * Parts. The root of a scatter sends p - 1 parts of N blocks; so does each rank of a
//   reduce-scatter or all-to-all. The root of a gather and each rank of an allgather receive p - 1
//   parts. If receives are unlimited, the p ranks of an allgather still send p (p - 1) N blocks.
// * Allreduce. For each block every rank needs data from every rank, which takes 2 (p - 1) one-way
//   messages (Harary and Schwenk 1974, one-way gossip). A rank begins at most one send per S steps,
//   the last one L steps before the end: p ((T - L) / S + 1) >= messages.
// * Simplex. A transfer holds two ports, so at most floor(nodes / 2) run in a step. Every rank that
//   must get data of a block, or of a part, receives it.
// * Several links per rank, if the fabric routes: a rank sends d messages per step at most, d being
//   the lanes of its links. So a block has (d + 1)^t holders after t steps at most.
// * Links: cuts.cc. Hops: hops.cc.

#include <algorithm>

#include "base/counted.h"
#include "collectives/verify/bounds/all_bounds.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

// Returns the steps in which one block can reach p ranks: holders(t) = holders(t - S) +
// fan * holders(t - L).
std::int64_t steps_to_reach(std::int64_t p, std::int64_t fan, std::int64_t send,
                            std::int64_t latency) {
  std::vector<std::int64_t> holders;
  for (std::int64_t t = 0;; ++t) {
    const auto back = [&](std::int64_t by) { return holders[static_cast<std::size_t>(t - by)]; };
    holders.push_back(t < latency ? 1 : back(send) + fan * back(latency));
    if (holders.back() >= p) return t;
  }
}

// Returns the number of blocks that must be received in all, for N = 1 and messages of one segment.
std::int64_t transfers(const Program& common) {
  const std::int64_t p = common.ranks;
  switch (common.collective) {
    case Collective::kAllreduce: return 2 * (p - 1) * common.segments;
    case Collective::kAllgather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll: return p * (p - 1);
    case Collective::kScatter:
    case Collective::kGather: return p - 1;
    default: return (p - 1) * common.segments;
  }
}

// The messages that one port must carry, for N = 1.
struct Port {
  std::int64_t messages = 0;
  bool then_reach = false;  // and the last must still reach, or come from, all ranks
  bool inwards = false;     // whether the port receives them
  std::uint32_t rank = 0;   // whose port
  const char* reason = "";
};

// Whether each rank's data go to the root only, so that time runs backwards from there.
bool is_inwards(const Program& common) {
  return common.collective == Collective::kReduce || common.collective == Collective::kGather;
}

Port port_of(const Program& common, std::int64_t segment_count) {
  const std::int64_t whole = ceil_div(common.segments, segment_count);
  const std::int64_t parts = ceil_div(std::int64_t{common.ranks} - 1, segment_count);
  const bool one_receive = common.port_model != PortModel::kSingleSend;
  const std::uint32_t root = has_root(common.collective) ? common.root : 0;
  const std::uint32_t other = root == 0 ? 1 : 0;
  switch (common.collective) {
    case Collective::kReduce:
      if (one_receive) {
        return {whole, true, true, root,
                "port and log p: the root gets every block, the last comes from all"};
      }
      return {whole, false, false, other, "port: each rank sends for every block"};
    case Collective::kGather:
      if (one_receive) return {parts, false, true, root, "port: the root gets all parts"};
      return {1, false, false, other, "port: each rank sends its part"};
    case Collective::kScatter: return {parts, false, false, root, "port: the root sends all parts"};
    case Collective::kAllgather:
      // Routers send too, so only receivers are guaranteed to be busy.
      if (!one_receive && is_hop_by_hop(common))
        return {1, false, false, 0, "port: each rank sends its part"};
      return {parts, false, true, 0, "port: each rank gets all other parts"};
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return {parts, false, false, 0, "port: each rank sends for all other parts"};
    case Collective::kBarrier: return {1, true, false, 0, "log p: everyone hears of everyone"};
    default:
      return {whole, true, false, root,
              "port and log p: the root's port serves every block, the last must still reach (come "
              "from) all"};
  }
}

// Adds the bounds by ports, log p and messages, for at most one send per step.
void add_ports(const Program& common, std::int64_t segment_count, std::vector<LowerBound>& all) {
  const std::int64_t p = common.ranks;
  const std::int64_t s = send_ticks(common), l = latency_ticks(common);
  const std::int64_t reach = steps_to_reach(p, 1, s, l);
  const bool simplex = common.port_model == PortModel::kSimplex;
  const Port port = port_of(common, segment_count);
  Witness one_port{.kind = Witness::Kind::kPort,
                   .limit = port.inwards ? Witness::Limit::kReceivers : Witness::Limit::kSenders,
                   .inwards = port.inwards,
                   .from = port.rank,
                   .after = port.then_reach ? reach - l : 0};
  // Receives are unlimited, so the sends of all ranks count.
  if (port.inwards && common.port_model == PortModel::kSingleSend) {
    one_port = {.kind = Witness::Kind::kMessages};
  }
  all.push_back({port.reason, (port.then_reach ? reach : l) - s, port.messages * s, 1, one_port});
  if (!port.then_reach && !(is_inwards(common) && common.port_model == PortModel::kSingleSend)) {
    all.push_back({"log p: one block reaches (comes from) all", reach, 0, 1,
                   Witness{.kind = Witness::Kind::kReach, .inwards = is_inwards(common)}});
  }
  const std::int64_t each = transfers(common);
  const Witness messages{.kind = Witness::Kind::kMessages};
  if (simplex) {
    const std::int64_t nodes = program_nodes(common);
    const bool unit = s == 1 && l == 1;
    all.push_back({"messages: each holds two ports", 0, each * (unit ? 1 : 2 * s),
                   (unit ? nodes / 2 : nodes) * segment_count, messages});
  } else if (common.collective == Collective::kAllreduce && !is_hop_by_hop(common)) {
    all.push_back({"messages: two a rank and block, less two in all", (l - s) * p * segment_count,
                   s * each, p * segment_count, messages});
  }
}

// Adds the bounds by log p of ranks with several links, if the fabric routes: a rank sends
// (receives) per step at most as many messages as its links have lanes.
void add_fans(const topology::Topology& topology, const Program& common, std::int64_t segment_count,
              std::vector<LowerBound>& all) {
  const bool inwards = is_inwards(common);
  std::vector<std::int64_t> fans(common.ranks, 0);
  for (const topology::Link& link : topology.links()) {
    const std::uint32_t end = inwards ? link.to : link.from;
    if (end < common.ranks) fans[end] += link.capacity;
  }
  const std::int64_t fan = *std::max_element(fans.begin(), fans.end());
  const std::int64_t reach = steps_to_reach(common.ranks, fan, 1, 1);
  all.push_back(
      {"log p: one block reaches (comes from) all over " + counted(fan, "link") + " per rank",
       reach, 0, 1, Witness{.kind = Witness::Kind::kReach, .inwards = inwards, .fan = fan}});
  std::uint32_t rank = 0;
  switch (common.collective) {
    case Collective::kBroadcast:
    case Collective::kReduce: rank = common.root; break;
    case Collective::kAllreduce:
      rank = static_cast<std::uint32_t>(std::min_element(fans.begin(), fans.end()) - fans.begin());
      break;
    case Collective::kScan:
    case Collective::kExscan: break;
    default: return;
  }
  const std::int64_t lanes = fans[rank] * segment_count;
  all.push_back({"links and log p: past those of " + topology.node_name(rank) +
                     ", the last block must still reach (come from) all",
                 (reach - 1) * lanes, common.segments, lanes,
                 Witness{.kind = Witness::Kind::kPort,
                         .inwards = inwards,
                         .from = rank,
                         .fan = fan,
                         .after = reach - 1}});
}

}  // namespace

KnownBounds all_bounds(const topology::Topology& topology, const Program& common,
                       const BoundFacts& facts) {
  if (common.ranks == 1) return {{{"one rank: nothing", 0, 0, 1}}, ""};
  KnownBounds known;
  known.all.push_back({"latency: some message must arrive", latency_ticks(common), 0, 1});
  const bool unit = send_ticks(common) == 1 && latency_ticks(common) == 1;
  if (common.port_model != PortModel::kMultiport) {
    add_ports(common, facts.segment_count, known.all);
  } else if (unit && facts.links && !facts.neighbours) {
    add_fans(topology, common, facts.segment_count, known.all);
  }
  add_cuts(topology, common, facts, known);
  return known;
}

std::vector<LowerBound> describe(const std::vector<LowerBound>& all) {
  std::vector<LowerBound> bounds;
  for (const LowerBound& lower_bound : all) {
    const bool known = std::any_of(bounds.begin(), bounds.end(), [&](const LowerBound& bound) {
      return bound.a == lower_bound.a && bound.b == lower_bound.b && bound.d == lower_bound.d;
    });
    if (!known) bounds.push_back(lower_bound);
  }
  return bounds;
}

std::vector<LowerBound> lower_bounds(const topology::Topology& topology, const Programs& programs,
                                     bool links, std::string* limited) {
  OwnedProgram common;
  BoundFacts facts{.links = links};
  for (std::uint32_t node = 0; node == 0 || node < program_nodes(common); ++node) {
    const Program& program = programs(node);
    if (node == 0) common = program;
    if (check_agreement(topology, common, node, program)) return {};
    add_facts(topology, program, facts);
  }
  KnownBounds known = all_bounds(topology, common, facts);
  if (limited != nullptr) *limited = std::move(known.limited);
  return describe(known.all);
}

BoundFacts bound_facts(const topology::Topology& topology, const Programs& programs, bool links) {
  BoundFacts facts{.links = links};
  const std::uint32_t nodes = program_nodes(programs(0));
  for (std::uint32_t node = 0; node < nodes; ++node) add_facts(topology, programs(node), facts);
  return facts;
}

}  // namespace espalier::verify
