#pragma once
// Property ports for every N, one node at a time. Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/verify/every_n/progressions.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

class PortResidues {
 public:
  explicit PortResidues(const topology::Topology& topology) : topology_(topology) {}

  // Passes if no two transfers of one stage need the same port or lane for any N.
  [[nodiscard]] ReadResult check_stages(const Program& program, const RankProgressions& ranks);
  // Passes (nothing) if no two transfers of different stages of a phase need the same port or lane
  // for any N.
  [[nodiscard]] std::optional<Undecided> stages_meet(const Program& program,
                                                     const RankProgressions& ranks);

  // The busiest link of all nodes checked so far, in relation to its capacity in a step. Valid if
  // every message goes to a neighbour.
  [[nodiscard]] const LinkLoad& busiest() const { return busiest_; }

 private:
  using Group = std::vector<const Progression*>;
  void begin_node(const Program& program);
  [[nodiscard]] bool suffice(const Program& program, const Group& group);
  [[nodiscard]] ReadResult check_group(const Program& program, const RankProgressions& ranks,
                                       const Group& group);
  void count_loads(const Program& program, const RankProgressions& ranks, const Group& group);
  [[nodiscard]] std::uint32_t lanes_at(const Program& program, const Progression& one);

  const topology::Topology& topology_;
  std::vector<std::uint32_t> lanes_, loads_;  // by link and direction, of the current node
  LinkLoad busiest_;
};

}  // namespace espalier::verify
