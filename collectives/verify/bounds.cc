// Lower bounds on the steps of any schedule of a collective.
//
// K = segments * N blocks in all; a transfer carries one block (or one partial result of one). In
// the postal model a send holds its port S steps and its receive is L - 1 steps later; S = L = 1
// elsewhere. F(p): the steps in which one block can reach p ranks, ceil(log2 p) where S = L = 1.
// A message of a run of R segments carries R blocks at once; there N = 1.
// * One block, one send a step: whoever is to hear of a rank's input has it, alone or combined, and
//   so has whoever passes it on: F(p) steps until one rank's input has reached p. It must in all
//   collectives but reduce and gather; there the same holds for one receive a step, reversed in
//   time.
// * Every block, one send a step: the root of a broadcast (of an allreduce any rank, of a scan and
//   exscan rank 0) sends K different blocks, so one of them leaves it for the first time in step
//   (K - 1) S + 1 at the earliest; from then on its holders can at most do what is best for one
//   block: (K - 1) S + F(p). (Bar-Noy and Kipnis 1992.) A reduce with one
//   receive a step: the same, reversed in time.
// * Parts: the root of a scatter sends p - 1 parts of N blocks, each rank of a reduce-scatter or
//   all-to-all as well; the root of a gather, each rank of an allgather, receives as many. If
//   receives are unlimited, an allgather's p ranks still send p (p - 1) N blocks.
// * Allreduce: for each block everyone learns of everyone, which takes 2 (p - 1) one-way messages
//   (Harary and Schwenk 1974, the one-way gossip). A rank begins at most one send in S steps, the
//   last L steps before the end: p ((T - L) / S + 1) >= messages.
// * Simplex: a transfer holds two ports, so at most floor(nodes / 2) run in a step; every rank that
//   is to get something of a block, or of a part, receives it.
// * Links: cuts.cc. Hops: hops.cc.

#include <algorithm>
#include <numeric>
#include <utility>

#include "collectives/verify/check.h"
#include "espalier/base/arithmetic.h"
#include "espalier/collectives/schedule/programs.h"

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

// Blocks that must be received in all, for N = 1 and runs of one.
std::int64_t transfers(const Program& common) {
  const std::int64_t p = common.ranks;
  switch (common.collective) {
    case espalier_Collective_ALLREDUCE: return 2 * (p - 1) * common.segments;
    case espalier_Collective_ALLGATHER:
    case espalier_Collective_REDUCE_SCATTER:
    case espalier_Collective_ALL_TO_ALL: return p * (p - 1);
    case espalier_Collective_SCATTER:
    case espalier_Collective_GATHER: return p - 1;
    default: return (p - 1) * common.segments;
  }
}

// What one port must carry: for N = 1 so many messages.
struct Port {
  std::int64_t messages = 0;
  bool then_reach = false;  // and the last must still reach, or come from, everyone
  const char* reason = "";
};

Port port_of(const Program& common, std::int64_t run) {
  const std::int64_t whole = ceil_div(common.segments, run);
  const std::int64_t parts = ceil_div(std::int64_t{common.ranks} - 1, run);
  const bool one_receive = common.port_model != espalier_PortModel_SINGLE_SEND;
  switch (common.collective) {
    case espalier_Collective_REDUCE:
      if (one_receive) {
        return {whole, true, "port and log p: the root gets every block, the last comes from all"};
      }
      return {whole, false, "port: each rank sends for every block"};
    case espalier_Collective_GATHER:
      if (one_receive) return {parts, false, "port: the root gets all parts"};
      return {1, false, "port: each rank sends its part"};
    case espalier_Collective_SCATTER: return {parts, false, "port: the root sends all parts"};
    case espalier_Collective_ALLGATHER:
      // With routers, which send too, only who receives is sure to be busy.
      if (!one_receive && is_modelled(common)) return {1, false, "port: each rank sends its part"};
      return {parts, false, "port: each rank gets all other parts"};
    case espalier_Collective_REDUCE_SCATTER:
    case espalier_Collective_ALL_TO_ALL:
      return {parts, false, "port: each rank sends for all other parts"};
    case espalier_Collective_BARRIER: return {1, true, "log p: everyone hears of everyone"};
    default:
      return {whole, true,
              "port and log p: the root's port serves every block, the last must still reach (come "
              "from) all"};
  }
}

// By ports, log p and messages: no more than one send a step.
void add_ports(const Program& common, std::int64_t run, std::vector<Witness>& all) {
  const std::int64_t p = common.ranks;
  const std::int64_t s = send_ticks(common), l = latency_ticks(common);
  const std::int64_t reach = steps_to_reach(p, s, l);
  const bool simplex = common.port_model == espalier_PortModel_SIMPLEX;
  const bool inwards = common.collective == espalier_Collective_REDUCE ||
                       common.collective == espalier_Collective_GATHER;
  const Port port = port_of(common, run);
  all.push_back({port.reason, (port.then_reach ? reach : l) - s, port.messages * s, 1});
  if (!port.then_reach && !(inwards && common.port_model == espalier_PortModel_SINGLE_SEND)) {
    all.push_back({"log p: one block reaches (comes from) all", reach, 0, 1});
  }
  const std::int64_t each = transfers(common);
  if (simplex) {
    const std::int64_t nodes = program_nodes(common);
    const bool unit = s == 1 && l == 1;
    all.push_back({"messages: each holds two ports", 0, each * (unit ? 1 : 2 * s),
                   (unit ? nodes / 2 : nodes) * run});
  } else if (common.collective == espalier_Collective_ALLREDUCE && !is_modelled(common)) {
    all.push_back(
        {"messages: two a rank and block, less two in all", (l - s) * p * run, s * each, p * run});
  }
}

}  // namespace

std::vector<Witness> witnesses(const topology::Topology& topology, const Program& common,
                               std::int64_t run, Facts facts) {
  if (common.ranks == 1) return {{"one rank: nothing", 0, 0, 1}};
  std::vector<Witness> all = {{"latency: some message must arrive", latency_ticks(common), 0, 1}};
  if (common.port_model != espalier_PortModel_MULTIPORT) add_ports(common, run, all);
  add_cuts(topology, common, run, facts, all);
  return all;
}

std::vector<LowerBound> describe(const std::vector<Witness>& all) {
  std::vector<LowerBound> bounds;
  for (const Witness& witness : all) {
    const bool known = std::any_of(bounds.begin(), bounds.end(), [&](const LowerBound& bound) {
      return bound.a == witness.a && bound.b == witness.b && bound.d == witness.d;
    });
    if (!known) bounds.push_back(witness);
  }
  return bounds;
}

std::vector<LowerBound> lower_bounds(const topology::Topology& topology, const Programs& programs,
                                     bool links) {
  OwnedProgram common;
  std::int64_t run = 1;
  bool neighbours = true;
  for (std::uint32_t node = 0; node == 0 || node < program_nodes(common); ++node) {
    const Program& program = programs(node);
    if (node == 0) common = program;
    if (check_agreement(topology, common, node, program)) return {};
    run = std::max(run, longest_run(program));
    neighbours = neighbours && only_neighbours(topology, program);
  }
  return describe(witnesses(topology, common, run, {links, neighbours}));
}

}  // namespace espalier::verify
