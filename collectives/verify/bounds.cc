// A lower bound on the steps of any schedule of a collective, by ports and by log p.
//
// K = segments * N blocks in all; a transfer carries one block (or one partial result of one).
// * Broadcast, one send a step: the root sends K different blocks, so one of them leaves it for the
//   first time in step K at the earliest; from then on its holders at most double in a step:
//   K - 1 + ceil(log2 p). (algorithms.md, section 5; the one-port bound of the block model.)
// * Reduce, one receive a step: the same, reversed in time. Each block's last message reaches the
//   root in a step of its own, so some block is complete there K - 1 steps before the end, and it
//   took ceil(log2 p) steps to combine p inputs. Every rank of an allreduce is such a root.
// * Allreduce: for each block everyone learns of everyone, which takes 2 (p - 1) one-way messages
//   (Harary and Schwenk 1974, the one-way gossip); one send a rank and step: 2 K (p - 1) / p.
// * Simplex: a transfer occupies two nodes, so at most floor(p / 2) run in a step.

#include <algorithm>

#include "collectives/verify/check.h"

namespace espalier::verify {
namespace {

std::int64_t divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t log2_ceil(std::int64_t p) {
  std::int64_t log = 0;
  while ((std::int64_t{1} << log) < p) ++log;
  return log;
}

}  // namespace

std::int64_t lower_bound_steps(const Program& common, std::int64_t blocks) {
  const std::int64_t p = common.ranks;
  const std::int64_t k = static_cast<std::int64_t>(common.segments) * blocks;
  if (p == 1) return 0;
  const PortModel model = common.port_model;
  if (model == espalier_PortModel_MULTIPORT) return 1;
  const std::int64_t doubling = k - 1 + log2_ceil(p);
  const bool allreduce = common.collective == espalier_Collective_ALLREDUCE;
  const std::int64_t messages = k * (p - 1) * (allreduce ? 2 : 1);
  if (model == espalier_PortModel_SIMPLEX) return std::max(doubling, divided(messages, p / 2));
  if (common.collective == espalier_Collective_BROADCAST) return doubling;
  if (model == espalier_PortModel_ONE_PORT_DUPLEX) {
    return allreduce ? std::max(doubling, divided(messages, p)) : doubling;
  }
  // Receives are not limited: only that each rank but the root sends for each block remains.
  return allreduce ? std::max({k, log2_ceil(p), divided(messages, p)}) : k;
}

}  // namespace espalier::verify
