// Broadcast and allreduce on clusters of hosts (hosts:HxR): inside each host, across the hosts by
// one leader of each, inside again. The leader of every host has the root's number on its host.
//
// H hosts of R ranks, N blocks per segment. A memory step uses links inside hosts only; in a
// network step a host sends and receives at most one message. With log x = ceil(log2 x), and D(x)
// the steps of two-tree on x ranks for one block in each half, at most 2*log(x+1):
//
//   algorithm        broadcast: network, memory   allreduce: network, memory
//   hosts-binomial   log H, log R                 2*log H, 2*log R              (one block)
//   hosts-chain      H-2+N, R-2+N                 2(H-2+N), 2(R-2+N)
//   hosts-two-tree   D(H)+2N-2, D(R)+2N-2         2(D(H)+2N-2), 2(D(R)+2N-2)
//
// Phases among one host, or among one rank per host, have no steps. The flat algorithms have
// network messages in nearly every step: hosts-chain replaces p-2+N network steps of chain by
// H-2+N. Leaders are in rank order, and an allreduce's are the first ranks of their hosts, so
// operators need not be commutative.

#include "collectives/algorithms/hosts/host_groups.h"
#include "collectives/algorithms/rows.h"

namespace espalier {
namespace {

enum class HostTree : std::uint8_t { kBinomial, kChain, kTwoTree };
constexpr const char* kHostTreeNames[] = {"hosts-binomial", "hosts-chain", "hosts-two-tree"};

Outline outline_of(Collective collective, HostTree tree) {
  Outline outline{.collective = collective,
                  .algorithm = kHostTreeNames[static_cast<std::uint8_t>(tree)]};
  outline.segments = tree == HostTree::kTwoTree ? 2 : 1;
  outline.one_block = tree == HostTree::kBinomial;
  // A leader of a chain's broadcast sends to one other host only.
  const bool async = tree == HostTree::kChain && collective == Collective::kBroadcast;
  outline.contention = async ? ContentionGuarantee::kAsync : ContentionGuarantee::kSlot;
  return outline;
}

Operand whole_buffer(Builder& builder, Buffer buffer) {
  return Builder::operand(buffer, builder.constant(0));
}

void add_down(Builder& builder, HostTree tree, const Member& member, Buffer source) {
  switch (tree) {
    case HostTree::kBinomial: {
      const Operand from = whole_buffer(builder, source), into = builder.output(0);
      return add_halving_broadcast(builder, member, from, into);
    }
    case HostTree::kChain: return add_chain_broadcast(builder, member, source);
    case HostTree::kTwoTree: return add_two_tree_broadcast(builder, member, source);
  }
}

void add_up(Builder& builder, HostTree tree, const Member& member, Buffer own, const Ring& news) {
  switch (tree) {
    case HostTree::kBinomial: {
      const Operand from = whole_buffer(builder, own), sum = builder.output(0);
      return add_halving_reduce(builder, member, from, sum, news);
    }
    case HostTree::kChain: return add_chain_reduce(builder, member, own);
    case HostTree::kTwoTree: return add_two_tree_reduce(builder, member, own);
  }
}

Status generate_hosts_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                HostTree tree, Program& out) {
  Builder builder(out);
  const Status status =
      begin_on_hosts(builder, parameters, me, outline_of(Collective::kBroadcast, tree));
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me), root(parameters, parameters.root);
  const Buffer source = me == parameters.root ? Buffer::kInput : Buffer::kOutput;
  if (rank.hosts > 1) {
    add_down(builder, tree, rank.across(builder, root.number, root.host), source);
  }
  if (rank.ranks > 1) add_down(builder, tree, rank.inside(builder, root.number), source);
  return builder.finish_one_port();
}

Status generate_hosts_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                HostTree tree, Program& out) {
  Builder builder(out);
  const Status status =
      begin_on_hosts(builder, parameters, me, outline_of(Collective::kAllreduce, tree));
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me);
  const bool one_block = tree == HostTree::kBinomial;
  const Ring news = one_block ? arriving_sums(builder, parameters) : Ring{};
  const Buffer host_sum = rank.ranks > 1 ? Buffer::kOutput : Buffer::kInput;
  if (rank.ranks > 1) add_up(builder, tree, rank.inside(builder, 0), Buffer::kInput, news);
  if (rank.hosts > 1) {
    add_up(builder, tree, rank.across(builder, 0, 0), host_sum, news);
    add_down(builder, tree, rank.across(builder, 0, 0), Buffer::kOutput);
  }
  if (rank.ranks > 1) add_down(builder, tree, rank.inside(builder, 0), Buffer::kOutput);
  return builder.finish_one_port();
}

template <HostTree kTree>
Status generate_hosts(const CollectiveParameters& parameters, std::uint32_t me,
                      Collective collective, Program& out) {
  return collective == Collective::kBroadcast
             ? generate_hosts_broadcast(parameters, me, kTree, out)
             : generate_hosts_allreduce(parameters, me, kTree, out);
}

}  // namespace

const Algorithm kHostsTreesRows[] = {
    row("hosts-binomial", Collective::kBroadcast, generate_hosts<HostTree::kBinomial>,
        "one block across H hosts, then inside R ranks: ceil(log2 H) network + ceil(log2 R) steps",
        {.where = Where::kHosts}),
    row("hosts-chain", Collective::kBroadcast, generate_hosts<HostTree::kChain>,
        "a chain of the H hosts, then one in each: H-2+N network + R-2+N steps",
        {.where = Where::kHosts}),
    row("hosts-two-tree", Collective::kBroadcast, generate_hosts<HostTree::kTwoTree>,
        "two-tree across the H hosts, then in each: at most 2*ceil(log2(H+1))+2N-2 network steps",
        {.where = Where::kHosts}),
    row("hosts-binomial", Collective::kAllreduce, generate_hosts<HostTree::kBinomial>,
        "one block inside, across and back: 2*ceil(log2 R) + 2*ceil(log2 H) network steps",
        {.where = Where::kHosts}),
    row("hosts-chain", Collective::kAllreduce, generate_hosts<HostTree::kChain>,
        "chains inside, across and back: 2(R-2+N) + 2(H-2+N) network steps",
        {.where = Where::kHosts}),
    row("hosts-two-tree", Collective::kAllreduce, generate_hosts<HostTree::kTwoTree>,
        "two-tree inside, across and back: at most 4*ceil(log2(H+1))+4N-4 network steps",
        {.where = Where::kHosts}),
};

}  // namespace espalier
