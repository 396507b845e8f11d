// Reduce of one block and barrier on clusters of hosts (hosts:HxR); the terms are those of
// hosts_trees.cc.
//
// Reduce, hosts-binomial: inside each host to its leader, then across the leaders, log H network
// steps and log R memory steps. Operators need not be commutative, wherever the root is. There is
// one block because a leader other than the root has no buffer for more than its scratch.
//
// Barrier, hosts-dissemination: each leader hears of its host by a tree (log R memory steps), the
// leaders hear of each other by dissemination (log H network steps), and each host hears of all
// (log R memory steps).

#include "collectives/algorithms/hosts/host_groups.h"
#include "collectives/algorithms/rows.h"

namespace espalier {
namespace {

Status hosts_binomial_reduce(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                             Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = Collective::kReduce,
                                        .algorithm = "hosts-binomial",
                                        .one_block = true,
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me), root(parameters, parameters.root);
  const Operand own = builder.input(0);
  const Operand sum =
      me == parameters.root ? builder.output(0) : builder.slot(0, {builder.scratch(1), 1});
  const Ring news = arriving_sums(builder, parameters);
  if (rank.ranks > 1) {
    add_halving_reduce(builder, rank.inside(builder, root.number), own, sum, news);
  }
  if (rank.hosts > 1) {
    const Member leader = rank.across(builder, root.number, root.host);
    add_halving_reduce(builder, leader, rank.ranks > 1 ? sum : own, sum, news);
  }
  return builder.finish_one_port();
}

Status hosts_dissemination_barrier(const CollectiveParameters& parameters, std::uint32_t me,
                                   Collective, Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = Collective::kBarrier,
                                        .algorithm = "hosts-dissemination",
                                        .one_block = true,
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me);
  const Operand own = builder.input(0);
  const Operand known = builder.slot(0, {builder.scratch(1), 1});
  const Ring news = arriving_sums(builder, parameters);
  if (rank.ranks > 1) add_halving_reduce(builder, rank.inside(builder, 0), own, known, news);
  if (rank.hosts > 1) {
    const Member leader = rank.across(builder, 0, 0);
    add_dissemination(builder, leader, rank.ranks > 1 ? known : own, known, news);
  }
  if (rank.ranks > 1) add_halving_broadcast(builder, rank.inside(builder, 0), known, known);
  return builder.finish(static_cast<std::int32_t>(log2_ceil(parameters.ranks)), 0);
}

}  // namespace

const Algorithm kHostsReduceBarrierRows[] = {
    row("hosts-binomial", Collective::kReduce, hosts_binomial_reduce,
        "one block inside each host, then across: ceil(log2 R) + ceil(log2 H) network steps",
        {.where = Where::kHosts}),
    row("hosts-dissemination", Collective::kBarrier, hosts_dissemination_barrier,
        "inside, across by dissemination, inside: ceil(log2 H) network + 2*ceil(log2 R) steps",
        {.where = Where::kHosts}),
};

}  // namespace espalier
