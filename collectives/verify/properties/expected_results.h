#pragma once
// The results that each collective must give. Internal to collectives/verify.

#include <cstdint>
#include <utility>

#include "collectives/verify/properties/rank_sets.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::verify {

// The results that one collective must give.
class ExpectedResults {
 public:
  explicit ExpectedResults(const Program& common) : program_(common) {}
  // Returns the segments of the node's output that must hold a result: first, end.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> segments(std::uint32_t node);
  // Returns the ranks whose data the result in `segment` must combine. In an all-to-all this is the
  // data that they have for `node`.
  [[nodiscard]] RankSet ranks(std::uint32_t node, std::int64_t segment) const;

 private:
  OwnedProgram program_;  // its `node` is set for buffer_extent(); other fields are rank 0's
};

}  // namespace espalier::verify
