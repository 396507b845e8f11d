// Scan and exscan on clusters of hosts (hosts:HxR), in rank order: operators need not be
// commutative. The terms are those of hosts_trees.cc.
//
// Three phases, each a chain:
//   1. inside each host: the scan of the host's ranks;
//   2. across the hosts' last ranks, whose scan then covers all ranks up to their own;
//   3. from the last rank of each host along the ranks of the next host, except the last: what all
//      earlier hosts have, which each rank adds on the left.
//
// Steps of scan: H-2+2N network steps and 2(R-2)+N memory steps. The steps of phase 3 after its
// first N are memory steps. In an exscan a last rank first adds its own block to what it sends, one
// memory step more in phases 2 and 3. With one host, or one rank per host, it is the flat chain.
// The flat chain has p-2+N network steps; it is better if N is above p - H.

#include "collectives/algorithms/hosts/host_groups.h"
#include "collectives/algorithms/rows.h"

namespace espalier {
namespace {

// One rank of a scan; `first`: the step in which the first sender of a phase sends.
struct HostScan {
  HostRank rank;
  bool inclusive;
  std::uint32_t first;

  [[nodiscard]] bool is_leader() const { return rank.number + 1 == rank.ranks; }
};

// What a leader sends: the scan of all ranks up to its own. In an exscan it is combined in `step`,
// one step before it is sent.
Operand passed_on(Builder& builder, const HostScan& scan, std::uint32_t step) {
  const Operand result = builder.output(0);
  if (scan.inclusive) return result;
  const Operand sum = builder.slot(0, builder.ring(1, 1));
  builder.combine(step, sum, result, builder.input(0));
  return sum;
}

void add_across(Builder& builder, const HostScan& scan) {
  const Member leader = scan.rank.across(builder, scan.rank.ranks - 1, 0);
  if (leader.exists()) {
    const std::uint32_t host = leader.me;
    const std::uint32_t arrival = scan.first + host - 1;
    if (host > 0) {
      const Operand before = builder.slot(0, builder.ring(0, 1));
      const Operand result = builder.output(0);
      builder.receive(arrival, host - 1, before);
      builder.combine(arrival, result, before, result);
    }
    if (host + 1 < leader.ranks) {
      const Operand sum = passed_on(builder, scan, host == 0 ? 0 : arrival);
      const bool combines = host > 0 || !scan.inclusive;
      builder.send(scan.first + host, host + 1, sum, combines ? 1 : 0);
    }
  }
  builder.phase(1, static_cast<std::int32_t>(scan.first + leader.ranks) - 2, 1);
}

// Number `i` of a host receives in step first + i.
void add_next_host(Builder& builder, const HostScan& scan) {
  const HostRank& rank = scan.rank;
  builder.among({});
  if (scan.is_leader() && rank.host + 1 < rank.hosts) {
    const Operand sum = passed_on(builder, scan, 0);
    builder.send(scan.first, rank.me + 1, sum, scan.inclusive ? 0 : 1);
  } else if (!scan.is_leader() && rank.host > 0) {
    const std::uint32_t step = scan.first + rank.number;
    const bool sends = rank.number + 2 < rank.ranks;
    const Operand result = builder.output(0);
    // The first rank of a host has nothing of its own in an exscan.
    const bool direct = !scan.inclusive && rank.number == 0;
    const Operand before = direct ? result : builder.slot(0, builder.ring(sends ? 1 : 0, 1));
    builder.receive(step, rank.me - 1, before);
    if (!direct) builder.combine(step, result, before, result);
    if (sends) builder.send(step + 1, rank.me + 1, before, 1);
  }
  builder.phase(1, static_cast<std::int32_t>(scan.first + rank.ranks) - 2, 1);
}

Status generate_hosts_chain_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                 Collective collective, Program& out) {
  Builder builder(out);
  const Status status = begin_on_hosts(builder, parameters, me,
                                       {.collective = collective,
                                        .algorithm = "hosts-chain",
                                        .contention = ContentionGuarantee::kSlot});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const bool inclusive = collective == Collective::kScan;
  const HostScan scan{{parameters, me}, inclusive, inclusive ? 0u : 1u};
  if (parameters.hosts == 1 || parameters.host_ranks == 1) {
    add_chain_scan(builder, {parameters.ranks, 0, me}, inclusive);
    return builder.finish_one_port();
  }
  add_chain_scan(builder, scan.rank.inside(builder, 0), inclusive);
  add_across(builder, scan);
  add_next_host(builder, scan);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kHostsScanRows[] = {
    row("hosts-chain", Collective::kScan, generate_hosts_chain_scan,
        "chains in each host, of the hosts, into the next host: 2(R-2)+N + H-2+2N network steps",
        {.where = Where::kHosts}),
    row("hosts-chain", Collective::kExscan, generate_hosts_chain_scan,
        "chains in each host, of the hosts, into the next host: 2R-2+N + H-2+2N network steps",
        {.where = Where::kHosts}),
};

}  // namespace espalier
