#pragma once
// The stages of all nodes, and the steps that they take. Internal to collectives/verify.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/verify/every_n/progressions.h"

namespace espalier::verify {

class StageSteps {
 public:
  static constexpr std::size_t kMaxStages = 256;
  explicit StageSteps(std::int64_t stride) : stride_(stride) {}

  // The number of a stage, the same for all nodes; kMaxStages if there are too many.
  [[nodiscard]] std::size_t number_of(const Stage& stage);
  [[nodiscard]] std::int64_t period(std::size_t number) const { return stages_[number].period; }
  // Whether some phase has several stages.
  [[nodiscard]] bool share_a_phase() const;
  void add(std::size_t number, const Progression& one);

  // After all progressions have been added. N counts blocks per segment.
  void finish();
  // Steps that the progressions of a phase take for N = blocks.
  [[nodiscard]] std::int64_t phase_used(std::uint32_t phase, std::int64_t blocks) const;
  // Whether some stage takes more additional steps than its phase from N = blocks - stride on, and
  // so ends after it for a larger N. blocks > 2 * stride.
  [[nodiscard]] bool overtakes(std::int64_t blocks) const;
  // An N for which all progressions of a stage that share a step of the period do so in one step. A
  // send takes `ticks` steps.
  [[nodiscard]] std::int64_t blocks_together(std::int64_t ticks) const;

 private:
  [[nodiscard]] std::int64_t used(std::size_t number, std::int64_t blocks) const;

  std::int64_t stride_;
  std::vector<Stage> stages_;
  // By stage and block b < stride: the latest first step of progressions that begin at block b, at
  // a block up to b, and at a block from b on; -1: there is none.
  std::vector<std::vector<std::int64_t>> latest_, latest_up_to_, latest_from_;
};

}  // namespace espalier::verify
