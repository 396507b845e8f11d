#pragma once
// The groups of ranks that hierarchical algorithms for hosts:HxR work in. Freestanding.

#include "collectives/build/phases.h"

namespace espalier {

// A rank of a cluster of hosts: rank h*R + i is number i on host h. In every phase, either no
// message leaves a host, or only one rank of each host sends to another host in a step: messages
// between hosts share one link into and one out of each host.
struct HostRank {
  std::uint32_t hosts, ranks;  // H, R: ranks of a host
  std::uint32_t me, host, number;

  HostRank(const CollectiveParameters& parameters, std::uint32_t rank)
      : hosts(parameters.hosts),
        ranks(parameters.host_ranks),
        me(rank),
        host(rank / parameters.host_ranks),
        number(rank % parameters.host_ranks) {}

  // Begins a phase among the ranks of this host; `root`: a number on the host.
  [[nodiscard]] Member inside(Builder& builder, std::uint32_t root) const {
    builder.among({host * ranks, 1});
    return {ranks, root, number};
  }
  // Begins a phase among the ranks that have the number `leader`, one per host; `root`: a host.
  [[nodiscard]] Member across(Builder& builder, std::uint32_t leader, std::uint32_t root) const {
    builder.among({leader, ranks});
    return {hosts, root, number == leader ? host : hosts};
  }
};

// Calls builder.begin(). kUnsupported unless the ranks are hosts * host_ranks. kTooLarge above
// 65535 ranks of a host: an action waits for a step at most so far back.
[[nodiscard]] Status begin_on_hosts(Builder& builder, const CollectiveParameters& parameters,
                                    std::uint32_t me, const Outline& outline);

// Returns scratch for the sums that arrive in one phase after another: as many slots as the longest
// phase or the window has steps.
[[nodiscard]] Ring arriving_sums(Builder& builder, const CollectiveParameters& parameters);

}  // namespace espalier
