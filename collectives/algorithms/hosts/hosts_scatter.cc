// Scatter and gather on clusters of hosts (hosts:HxR); the terms are those of hosts_trees.cc.
//
// Scatter, hosts-binomial: across the leaders in log H network steps, with the parts of whole hosts
// in one message, then inside each host in log R memory steps. N = 1. Cost: every part crosses the
// network link of its host once. The gather is the scatter reversed in time. kTooLarge above 65535
// ranks, the maximum number of parts per message.

#include "collectives/algorithms/hosts/host_groups.h"
#include "collectives/algorithms/hosts/host_halves.h"
#include "collectives/algorithms/rows.h"

namespace espalier {
namespace {

constexpr std::uint32_t kLongestMessage = 65535;

Status begin_parts(Builder& builder, const CollectiveParameters& parameters, std::uint32_t me,
                   Collective collective) {
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = collective,
                                        .algorithm = "hosts-binomial",
                                        .one_block = true,
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk || parameters.ranks <= kLongestMessage) return status;
  return builder.refuse(Status::kTooLarge);
}

Status hosts_binomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                              Collective collective, Program& out) {
  Builder builder(out);
  const Status status = begin_parts(builder, parameters, me, collective);
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me), root(parameters, parameters.root);
  const OwnPart own{builder.output(me), me};
  Parts parts{builder.input(0)};
  if (rank.hosts > 1) {
    const Member leader = rank.across(builder, root.number, root.host);
    parts = add_halving_scatter(builder, leader, {0, rank.ranks}, parts, own);
  }
  if (rank.ranks > 1) {
    const Share share{rank.host * rank.ranks, 1};
    (void)add_halving_scatter(builder, rank.inside(builder, root.number), share, parts, own);
  }
  return builder.finish(static_cast<std::int32_t>(log2_ceil(parameters.ranks)), 0);
}

Status hosts_binomial_gather(const CollectiveParameters& parameters, std::uint32_t me,
                             Collective collective, Program& out) {
  Builder builder(out);
  const Status status = begin_parts(builder, parameters, me, collective);
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me), root(parameters, parameters.root);
  const OwnPart own{builder.input(me), me};
  Parts parts{builder.output(0)};
  if (rank.number == root.number && me != parameters.root && rank.ranks > 1) {
    const RankInterval hosts = HalvingTree(rank.hosts, root.host, rank.host).interval;
    parts = Parts::in_scratch(builder, hosts.first * rank.ranks, hosts.size * rank.ranks);
  }
  if (rank.ranks > 1) {
    const Share share{rank.host * rank.ranks, 1};
    add_halving_gather(builder, rank.inside(builder, root.number), share, parts, own);
  }
  if (rank.hosts > 1) {
    const Member leader = rank.across(builder, root.number, root.host);
    add_halving_gather(builder, leader, {0, rank.ranks}, parts, own);
  }
  return builder.finish(static_cast<std::int32_t>(log2_ceil(parameters.ranks)), 0);
}

}  // namespace

const Algorithm kHostsScatterRows[] = {
    row("hosts-binomial", Collective::kScatter, hosts_binomial_scatter,
        "one block per rank, to hosts, then to ranks: ceil(log2 H) network + ceil(log2 R) steps",
        {.where = Where::kHosts}),
    row("hosts-binomial", Collective::kGather, hosts_binomial_gather,
        "one block per rank, from ranks, then from hosts: ceil(log2 R) + ceil(log2 H) network "
        "steps",
        {.where = Where::kHosts}),
};

}  // namespace espalier
