#pragma once
// What all interpreters of the tests share: whose data the blocks of a collective are, which
// buffers its callers give, and the ports of its nodes. Shares no code with the verifier, the
// machine or collectives/schedule beyond the program's struct.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier::mutation {

inline constexpr std::uint8_t kSend = ActionKind::kSend;
inline constexpr std::uint8_t kReceive = ActionKind::kReceive;

// The origin of the data that a block of memory combines: rank number + 1, one nibble per rank, the
// first combined in the highest; if the order does not count, how often each rank is in it, one
// nibble per rank. Length 0: never written. In a barrier, one bit per rank known to have arrived.
struct Data {
  std::uint64_t ranks = 0;
  std::uint32_t length = 0;               // ranks that are combined
  std::int32_t segment = -1, block = -1;  // in an all-to-all, segment: the receiver
  friend bool operator==(const Data&, const Data&) = default;
};

// A collective, as all its nodes see it.
struct Contract {
  std::int64_t segments = 1;
  std::int64_t ranks = 1;  // nodes from there on are routers
  std::uint32_t root = 0;
  std::uint8_t collective = 0, port_model = 0;
  bool ordered = true;
  std::int64_t send_ticks = 1, latency_ticks = 1;

  [[nodiscard]] bool is_barrier() const;
  // Whether the node's caller gives this buffer, and which of its segments: [first, end).
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> given(std::int64_t node,
                                                            std::uint8_t buffer) const;
  // A block of the node's input.
  [[nodiscard]] Data own(std::int64_t node, std::int64_t segment, std::int64_t block) const;
  [[nodiscard]] Data combined(const Data& left, const Data& right) const;
  // The data that the collective must leave in a block of a rank's output.
  [[nodiscard]] Data wanted(std::int64_t node, std::int64_t segment, std::int64_t block) const;
  // What a node knows of arrivals in a barrier: its own, and all of them.
  [[nodiscard]] static std::uint64_t arrival(std::int64_t node) {
    return std::uint64_t{1} << (node % 64);
  }
  [[nodiscard]] std::uint64_t all_arrivals() const { return (std::uint64_t{1} << ranks) - 1; }

  // Whether two transfers of a node need one of its ports at the same time. Transfer: kind, step.
  template <class Transfer>
  [[nodiscard]] bool meet(const Transfer& one, const Transfer& other) const {
    const std::int64_t apart = port_from(one) - port_from(other);
    return apart < send_ticks && apart > -send_ticks;
  }
  template <class Transfer>
  [[nodiscard]] bool clash(const Transfer& one, const Transfer& other) const {
    const bool alike = one.kind == other.kind;
    return (port_model == PortModel::kOnePortDuplex && alike) ||
           port_model == PortModel::kSimplex ||
           (port_model == PortModel::kSingleSend && alike && one.kind == kSend);
  }

  // Empty if transfer k of node `me`, with those before it, keeps within the node's ports and the
  // lanes of its link. lanes(from, to): of a link; 0: there is none.
  template <class Transfer, class Lanes>
  [[nodiscard]] std::string check_ports(const std::vector<Transfer>& all, std::size_t k,
                                        std::size_t me, std::size_t nodes,
                                        const Lanes& lanes) const {
    const Transfer& one = all[k];
    const std::string who = "node " + std::to_string(me);
    const auto here = static_cast<std::int64_t>(me);
    if (one.peer < 0 || one.peer >= static_cast<std::int64_t>(nodes))
      return who + " has no such peer";
    std::int64_t left = one.kind == kSend ? lanes(here, one.peer) : lanes(one.peer, here);
    if (left == 0) return who + " has no link to its peer";
    for (std::size_t j = k; j-- > 0 && all[j].step > one.step - 2 * send_ticks;) {
      const Transfer& other = all[j];
      if ((other.kind != kSend && other.kind != kReceive) || !meet(one, other)) continue;
      if (other.kind == one.kind && other.peer == one.peer) --left;
      if (left == 0 || clash(one, other)) {
        return who + " breaks its ports in step " + std::to_string(one.step);
      }
    }
    return {};
  }

 private:
  // The tick from which a transfer holds its port: a send holds it from its own step onward, a
  // receive until its own step.
  template <class Transfer>
  [[nodiscard]] std::int64_t port_from(const Transfer& one) const {
    return one.kind == kSend ? one.step : one.step - send_ticks + 1;
  }
};

[[nodiscard]] Contract contract_of(const espalier_Program& program);

}  // namespace espalier::mutation
