#pragma once
// What each collective must give. Internal to collectives/verify.

#include <cstdint>
#include <utility>

#include "collectives/schedule/programs.h"
#include "collectives/verify/properties/rank_sets.h"

namespace espalier::verify {

// What the collective must give.
class ExpectedResults {
 public:
  explicit ExpectedResults(const Program& common) : program_(common) {}
  // The segments of the node's output that must hold a result: first, end.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> segments(std::uint32_t node);
  // Whose data that of `segment` must combine. In an all-to-all: what they have for `node`.
  [[nodiscard]] RankSet ranks(std::uint32_t node, std::int64_t segment) const;

 private:
  OwnedProgram program_;  // of the node asked for, as far as buffer_extent() looks
};

}  // namespace espalier::verify
