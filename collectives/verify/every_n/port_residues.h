#pragma once
// Ports and lanes of one node, for every N. Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/verify.h"
#include "topology/topology.h"

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

  // Of all nodes asked for so far: the link that carries the most of its capacity in a step, if
  // every message goes one hop.
  [[nodiscard]] const LinkLoad& busiest() const { return busiest_; }

 private:
  using Group = std::vector<const Progression*>;
  void begin_node(const Program& program);
  [[nodiscard]] bool suffice(const Program& program, const Group& group);
  [[nodiscard]] ReadResult check_group(const Program& program, const RankProgressions& ranks,
                                       const Group& group);
  void count_loads(const Program& program, const Group& group);
  [[nodiscard]] std::uint32_t lanes_at(const Program& program, const Progression& one);

  const topology::Topology& topology_;
  std::vector<std::uint32_t> lanes_, loads_;  // by link and direction, of the node at hand
  LinkLoad busiest_;
};

}  // namespace espalier::verify
