#pragma once
// Ports and lanes of one node, for every N. Internal to collectives/verify.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/verify.h"
#include "topology/topology.h"

namespace espalier::verify {

class PortResidues {
 public:
  explicit PortResidues(const topology::Topology& topology) : topology_(topology) {}

  // The least N for which two transfers of one stage need the same port or lane; 0: none. `why`
  // says why that is not known.
  [[nodiscard]] std::int64_t least_collision(const Program& program, const RankProgressions& ranks,
                                             std::string& why);
  // Why transfers of different stages of a phase may need the same port or lane; empty: for no N
  // do they.
  [[nodiscard]] std::string stages_meet(const Program& program, const RankProgressions& ranks);

  // Of all nodes asked for so far: the link that carries the most of its capacity in a step, if
  // every message goes one hop.
  [[nodiscard]] const LinkLoad& busiest() const { return busiest_; }

 private:
  using Group = std::vector<const Progression*>;
  void begin_node(const Program& program);
  [[nodiscard]] bool suffice(const Program& program, const Group& group);
  [[nodiscard]] std::int64_t collision(const Program& program, const RankProgressions& ranks,
                                       const Group& group, std::string& why);
  void count_loads(const Program& program, const Group& group);
  [[nodiscard]] std::uint32_t lanes_at(const Program& program, const Progression& one);

  const topology::Topology& topology_;
  std::vector<std::uint32_t> lanes_, loads_;  // by link and direction, of the node at hand
  LinkLoad busiest_;
};

}  // namespace espalier::verify
