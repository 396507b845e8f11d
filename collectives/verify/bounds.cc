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
  for (const Witness& witness : at.witnesses) {
    if (witness.steps(at.blocks) < known) continue;
    known = witness.steps(at.blocks);
    reason = witness.reason;
  }
  if (bound <= known && bound <= steps) return std::nullopt;
  return found(Point::kSteps, at, -1, nullptr,
               "a lower bound of " + std::to_string(bound) + " steps is claimed; bounds prove " +
                   std::to_string(known) + " (" + reason + "), and the schedule takes " +
                   std::to_string(steps));
}

Finding check_witnesses(const Case& at, std::int64_t steps) {
  for (const Witness& witness : at.witnesses) {
    if (witness.steps(at.blocks) <= steps) continue;
    return found(Point::kSteps, at, -1, nullptr,
                 "valid in " + std::to_string(steps) + " steps, but a bound says that none is in " +
                     "less than " + std::to_string(witness.steps(at.blocks)) + " (" +
                     witness.reason + "): the verifier is wrong");
  }
  return std::nullopt;
}

namespace {

// 1, 2, ... up to the longest cycle of claims that is looked through.
constexpr std::int64_t kMostCycle = 4096;

// Steps for any N, of those that are the same every `stride` blocks.
std::int64_t steps_for(const Steps& steps, std::int64_t blocks) {
  const std::int64_t stride = steps.stride;
  const std::int64_t rounds = std::max<std::int64_t>(0, ceil_div(blocks - 3 * stride, stride));
  const auto at = static_cast<std::size_t>(blocks - rounds * stride - 1);
  if (rounds == 0) return steps.first[at];
  return steps.first[at] +
         rounds * (steps.first[at] - steps.first[at - static_cast<std::size_t>(stride)]);
}

// Of the numbers k >= 0 those with at + grows * k > 0: low <= k <= high.
struct Ahead {
  std::int64_t low = 0, high = kMaxBlocks;

  void keep(std::int64_t at, std::int64_t grows) {
    if (grows > 0) low = std::max(low, floor_div(-at, grows) + 1);
    if (grows < 0) high = std::min(high, ceil_div(at, -grows) - 1);
    if (grows == 0 && at <= 0) high = -1;
  }
};

}  // namespace

// The claim and the steps are lines in N for those N that are `cycle` apart, from the stride on:
// the claim is above one of them on a half line, and wrong where it is above all witnesses, or
// above the steps.
Finding check_bound(Case& at, const Steps& steps, std::string& limited) {
  const Program& common = *at.common;
  const Count& count = common.counts[common.bound_ref];
  std::int64_t cycle =
      std::lcm(steps.stride, count.c == 0 ? 1 : std::max<std::int64_t>(1, count.e));
  if (cycle > kMostCycle) {
    limited = "the claimed lower bound goes on in too long a cycle";
    return std::nullopt;
  }
  std::int64_t least = 0;
  for (std::int64_t blocks = 1; blocks <= 2 * cycle; ++blocks) {
    if (next_blocks(common, blocks) != blocks) continue;
    const bool first = blocks <= cycle;  // looked at alone: they may be below the stride
    const auto above = [&](std::int64_t times, const auto& value) {
      const std::int64_t here = times * count_value(count, blocks) - value(blocks);
      const std::int64_t later = times * count_value(count, blocks + cycle) - value(blocks + cycle);
      return std::pair(here, first ? 0 : later - here);
    };
    Ahead of_all, of_steps;
    for (const Witness& witness : at.witnesses) {
      // claim > ceil((a + b*N) / d) exactly if d*claim > a + b*N + d - 1: a line whatever d is.
      const auto [here, grows] = above(witness.d, [&](std::int64_t n) {
        return witness.a + witness.b * n + witness.d - 1;
      });
      of_all.keep(here, grows);
    }
    const auto [here, grows] = above(1, [&](std::int64_t n) { return steps_for(steps, n); });
    of_steps.keep(here, grows);
    for (const Ahead& wrong : {of_all, of_steps}) {
      if (wrong.low > wrong.high || wrong.low > kMaxBlocks / cycle) continue;
      const std::int64_t found = blocks + cycle * wrong.low;
      if (found <= kMaxBlocks && (least == 0 || found < least)) least = found;
    }
  }
  if (least == 0) return std::nullopt;
  set_blocks(at, least);
  return check_bound(static_cast<const Case&>(at), phase_steps(common, least));
}

namespace {

// A count that is never above the witness, and mostly the same.
Count count_of(const Witness& witness) {
  Count count{};
  const std::int64_t whole = witness.b / witness.d, rest = witness.b % witness.d;
  count.b = static_cast<std::int32_t>(whole);
  if (rest == 0) {
    count.a = static_cast<std::int32_t>(ceil_div(witness.a, witness.d));
    return count;
  }
  const std::int64_t lack = witness.d - rest;
  std::int64_t e = ceil_div(witness.d, rest), x = 0;
  if (2 * rest <= witness.d) {
    // (rest N + a) / d >= (N + x) / e for all N >= 1.
    x = floor_div(e * (rest + witness.a), witness.d) - 1;
    count.c = 1;
  } else {
    // (N - lack N / d) + a / d >= N - (N + x) / e.
    e = witness.d / lack;
    x = ceil_div(e * (lack - witness.a), witness.d) - 1;
    ++count.b;
    count.c = -1;
  }
  count.d = static_cast<std::int32_t>(x);
  count.e = static_cast<std::uint32_t>(e);
  return count;
}

}  // namespace

Count provable_bound(const topology::Topology& topology, const Program& common, std::int64_t run,
                     bool neighbours) {
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  Count best{};
  const auto value = [](const Count& count) {
    return std::pair(count_value(count, kMany), count_value(count, 1));
  };
  for (const Witness& witness : witnesses(topology, common, run, {neighbours, neighbours})) {
    if (witness.b / witness.d > kMaxSlope || witness.steps(1) > kMaxField) continue;
    const Count count = count_of(witness);
    if (value(count) > value(best)) best = count;
  }
  return best;
}

}  // namespace espalier::verify
