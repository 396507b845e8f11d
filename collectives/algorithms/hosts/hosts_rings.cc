// Allgather, reduce-scatter and allreduce on clusters of hosts (hosts:HxR) with every rank as a
// leader: number i of each host works with number i of the other hosts, and the R groups take turns
// on the hosts' links. The terms are those of hosts_trees.cc.
//
// Allgather, hosts-ring: rings across the hosts, after which number i of a host has the parts of
// all numbers i; then, for each host in turn, a ring inside. R(H-1)N network steps and H(R-1)N
// memory steps. Every host must receive R(H-1)N blocks over its link, so no schedule has fewer
// network steps.
//
// Reduce-scatter, hosts-ring: the allgather reversed in time, with N = 1, because a rank keeps one
// sum for each host in scratch: H(R-1) memory steps and R(H-1) network steps.
//
// Allreduce, hosts-multi-leader: the message has R segments of N blocks. A ring inside each host
// reduces segment i to number i; chains across the hosts reduce it and broadcast it; a ring inside
// gathers all segments. 2(R-1)N memory steps and 2(RN+H-2) network steps. The bytes over a host's
// link are those of hosts-chain, but every rank combines an R-th of them, where there one leader
// combines all: it pays where combining, or one rank's access to the link, is the bottleneck.
//
// Rings add in cyclic order: operators must commute if they combine (R > 1; reduce-scatter: p > 1).

#include "collectives/algorithms/hosts/host_groups.h"
#include "collectives/algorithms/rows.h"

namespace espalier {
namespace {

// The rings inside a host that carry the parts of one host after another: step k is step j of the
// ring of host g, k = (b * H + g)(R-1) + j for block b.
class HostRings {
 public:
  HostRings(Builder& builder, const HostRank& rank) : builder_(builder), rank_(rank) {}

  [[nodiscard]] std::int32_t hops() const { return static_cast<std::int32_t>(rank_.ranks) - 1; }
  // The segment of number (from - j) mod R of host g.
  [[nodiscard]] std::uint8_t part(std::uint32_t from) {
    const auto ranks = static_cast<std::int32_t>(rank_.ranks);
    // floor((k + R-2-from) / (R-1)) is b*H + g, and 1 more where from - j is negative.
    const bool wraps = from + 1 < rank_.ranks;
    const std::int32_t ahead = wraps ? hops() - 1 - static_cast<std::int32_t>(from) : 0;
    Index row{};
    row.off = static_cast<std::int32_t>(from);
    row.mod = rank_.hosts * rank_.ranks;
    return builder_.index(
        row, {floor_term(-1, 0, 0, rank_.ranks - 1), floor_term(ranks, ahead, rank_.ranks - 1)});
  }
  // The number `places` after this one.
  [[nodiscard]] std::uint32_t number(std::uint32_t places) const {
    return (rank_.number + places) % rank_.ranks;
  }

 private:
  Builder& builder_;
  const HostRank& rank_;
};

void add_gather_inside(Builder& builder, const HostRank& rank) {
  (void)rank.inside(builder, 0);
  HostRings rings(builder, rank);
  const auto steps = static_cast<std::int32_t>(rank.hosts) * rings.hops();
  const std::uint8_t all = builder.count(0, steps);
  Index blocks{};
  blocks.coef = 1;
  blocks.div = static_cast<std::uint32_t>(steps);
  const std::uint8_t block = builder.index(blocks);
  const Operand mine = Builder::operand(Buffer::kOutput, rings.part(rank.number));
  const std::uint32_t before = rings.number(rank.ranks - 1);
  const Operand from_before = Builder::operand(Buffer::kOutput, rings.part(before));
  Action& send = builder.send(0, rings.number(1), mine, rings.hops() > 1 ? 1 : 0);
  send.instances_ref = all;
  send.a.block_ref = block;
  Action& receive = builder.receive(0, before, from_before);
  receive.instances_ref = all;
  receive.into.block_ref = block;
  builder.phase(1, 0, steps);
}

void repeat_once(Action& action, std::uint8_t instances_ref, std::uint8_t block_ref) {
  action.instances_ref = instances_ref;
  action.into.block_ref = action.a.block_ref = action.b.block_ref = block_ref;
}

// Reduces the parts of each host in turn to the number that has the same number there: its sum for
// host g is afterwards in scratch slot first_slot + g. One block.
void add_reduce_inside(Builder& builder, const HostRank& rank, std::uint32_t first_slot) {
  (void)rank.inside(builder, 0);
  HostRings rings(builder, rank);
  const auto hops = static_cast<std::uint32_t>(rings.hops());
  Rounds rounds(builder, hops);
  const auto steps = static_cast<std::int32_t>(rank.hosts * hops);
  const std::uint8_t all = builder.count(0, steps);
  const Ring ring = builder.ring(hops > 1 ? 1 : 0, 1);
  Operand sum = builder.slot(0, ring);
  sum.segment_ref = rings.part(rings.number(rank.ranks - 2));
  const std::uint8_t sent = rings.part(rings.number(rank.ranks - 1));
  const Operand own = Builder::operand(Buffer::kInput, sum.segment_ref);
  const Operand first = Builder::operand(Buffer::kInput, sent);
  const std::uint8_t first_hop = rounds.only_block(0, 1);
  repeat_once(builder.send(0, rings.number(1), first, 0), all, first_hop);
  if (hops > 1) {
    Operand last_sum = sum;  // of the previous step
    last_sum.segment_ref = sent;
    Index slot{};
    slot.base = static_cast<std::int32_t>(ring.first);
    slot.coef = 1;
    slot.off = -1;
    slot.mod = ring.slots;
    last_sum.slot_ref = builder.index(slot);
    const std::uint8_t later = rounds.only_block(1, hops);
    repeat_once(builder.send(0, rings.number(1), last_sum, 1), all, later);
  }
  const std::uint8_t always = builder.constant(0);
  repeat_once(builder.receive(0, rings.number(rank.ranks - 1), sum), all, always);
  if (hops > 1) {
    const std::uint8_t inner = rounds.only_block(0, hops - 1);
    repeat_once(builder.combine(0, sum, sum, own), all, inner);
  }
  Operand total = sum;
  Index slot{};
  slot.base = static_cast<std::int32_t>(first_slot);
  slot.coef = 1;
  slot.div = hops;
  total.slot_ref = builder.index(slot);
  const std::uint8_t last = rounds.only_block(hops - 1, hops);
  repeat_once(builder.combine(0, total, sum, own), all, last);
  builder.phase(1, 0, steps);
}

// The ring of the numbers i across the hosts. It takes turns with those of the other numbers.
RankRounds rounds_across(Builder& builder, const HostRank& rank) {
  (void)rank.across(builder, rank.number, 0);
  return {builder, rank.hosts, rank.host, {rank.number, rank.ranks}};
}

RankRounds rounds_inside(Builder& builder, const HostRank& rank, const Group& segments) {
  (void)rank.inside(builder, 0);
  return {builder, rank.ranks, rank.number, segments};
}

Turn turn_of(const HostRank& rank, std::uint32_t segment) {
  return {segment, rank.number, rank.ranks};
}

Status hosts_ring_allgather(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                            Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = Collective::kAllgather,
                                        .algorithm = "hosts-ring",
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me);
  if (rank.hosts == 1) {
    add_ring_allgather(builder, rounds_inside(builder, rank, {}), Buffer::kInput);
  } else {
    add_ring_allgather(builder, rounds_across(builder, rank), Buffer::kInput, turn_of(rank, 0));
    if (rank.ranks > 1) add_gather_inside(builder, rank);
  }
  return builder.finish(0, static_cast<std::int32_t>(parameters.ranks) - 1);
}

Status hosts_ring_reduce_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                 Collective, Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = Collective::kReduceScatter,
                                        .algorithm = "hosts-ring",
                                        .one_block = true,
                                        .needs_commutative = parameters.ranks > 1,
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me);
  if (rank.hosts == 1) {
    add_ring_reduce_scatter(builder, rounds_inside(builder, rank, {}), {Buffer::kInput});
  } else {
    OwnSums sums{Buffer::kInput};
    if (rank.ranks > 1) {
      sums = {Buffer::kScratch, builder.scratch(rank.hosts)};
      add_reduce_inside(builder, rank, sums.first_slot);
    }
    add_ring_reduce_scatter(builder, rounds_across(builder, rank), sums, turn_of(rank, 0));
  }
  return builder.finish(0, static_cast<std::int32_t>(parameters.ranks) - 1);
}

Status hosts_multi_leader_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                    Collective, Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = Collective::kAllreduce,
                                        .algorithm = "hosts-multi-leader",
                                        .segments = parameters.host_ranks,
                                        .needs_commutative = parameters.host_ranks > 1,
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const HostRank rank(parameters, me);
  if (rank.ranks > 1) {
    add_ring_reduce_scatter(builder, rounds_inside(builder, rank, {}), {Buffer::kInput});
  }
  if (rank.hosts > 1) {
    const Buffer own = rank.ranks > 1 ? Buffer::kOutput : Buffer::kInput;
    const Member leader = rank.across(builder, rank.number, 0);
    add_chain_reduce(builder, leader, own, turn_of(rank, rank.number));
    add_chain_broadcast(builder, leader, Buffer::kOutput, turn_of(rank, rank.number));
  }
  if (rank.ranks > 1) {
    add_ring_allgather(builder, rounds_inside(builder, rank, {}), Buffer::kOutput);
  }
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kHostsRingsRows[] = {
    row("hosts-multi-leader", Collective::kAllreduce, hosts_multi_leader_allreduce,
        "every rank leads for one of R segments: 2(R-1)N + 2(RN+H-2) network steps",
        {.needs_commutative = true, .where = Where::kHosts}),
    row("hosts-ring", Collective::kAllgather, hosts_ring_allgather,
        "rings across the hosts, then in each: R(H-1)N network + H(R-1)N steps",
        {.where = Where::kHosts}),
    row("hosts-ring", Collective::kReduceScatter, hosts_ring_reduce_scatter,
        "one block per rank, rings in each host, then across: H(R-1) + R(H-1) network steps",
        {.needs_commutative = true, .where = Where::kHosts}),
};

}  // namespace espalier
