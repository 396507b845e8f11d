#pragma once
// The stages of all nodes, and the steps that they take for each N. Internal to collectives/verify.

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "collectives/verify/every_n/progressions.h"

namespace espalier::verify {

class StageSteps {
 public:
  static constexpr std::size_t kMaxStages = 256;
  explicit StageSteps(std::int64_t stride) : stride_(stride) {}

  // Returns the number of a stage, which is the same for all nodes; kMaxStages if there are too
  // many.
  [[nodiscard]] std::size_t number_of(const Stage& stage);
  [[nodiscard]] std::int64_t period(std::size_t number) const { return stages_[number].period; }
  // Whether some phase has several stages.
  [[nodiscard]] bool share_a_phase() const;
  void add(std::size_t number, const Progression& one);

  // Call after all progressions have been added, before the functions below. N counts blocks per
  // segment.
  void finish();
  // Returns the steps that the progressions of a phase take for N = blocks.
  [[nodiscard]] std::int64_t phase_used(std::uint32_t phase, std::int64_t blocks) const;
  // Whether from N = blocks - stride to N = blocks some stage grows by more steps than its phase.
  // A stage that does so ends after its phase for a larger N. blocks > 2 * stride.
  [[nodiscard]] bool overtakes(std::int64_t blocks) const;
  // Returns an N for which all progressions of a stage that share a step modulo the period also
  // share one step. A send takes `ticks` steps.
  [[nodiscard]] std::int64_t blocks_together(std::int64_t ticks) const;

 private:
  [[nodiscard]] std::int64_t used(std::size_t number, std::int64_t blocks) const;

  std::int64_t stride_;
  std::vector<Stage> stages_;
  // Whether some progression of the stage goes on for every N.
  [[nodiscard]] bool goes_on(std::size_t number) const;

  // The progressions that are `once` or do not begin in the first stride of blocks.
  struct Irregular {
    std::int64_t first = 0, block = 0;
    bool once = false;
    friend auto operator<=>(const Irregular&, const Irregular&) = default;
  };
  std::vector<std::set<Irregular>> irregular_;  // by stage
  // By stage and block b < stride: the latest first step of the other progressions whose first
  // block is b, is <= b, is >= b. -1: there is none.
  std::vector<std::vector<std::int64_t>> latest_, latest_up_to_, latest_from_;
};

}  // namespace espalier::verify
