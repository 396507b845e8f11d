#include "collectives/verify/every_n/stage_steps.h"

#include <algorithm>
#include <numeric>

namespace espalier::verify {

std::size_t StageSteps::number_of(const Stage& stage) {
  const auto known = std::find(stages_.begin(), stages_.end(), stage);
  const auto number = static_cast<std::size_t>(known - stages_.begin());
  if (known != stages_.end() || number == kMaxStages) return number;
  stages_.push_back(stage);
  latest_.emplace_back(static_cast<std::size_t>(stride_), -1);
  irregular_.emplace_back();
  return number;
}

bool StageSteps::share_a_phase() const {
  for (std::size_t one = 0; one < stages_.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other) {
      if (stages_[one].phase == stages_[other].phase) return true;
    }
  }
  return false;
}

void StageSteps::add(std::size_t number, const Progression& one) {
  if (one.once || one.block >= stride_) {
    irregular_[number].insert({one.first, one.block, one.once});
    return;
  }
  std::int64_t& latest = latest_[number][static_cast<std::size_t>(one.block)];
  latest = std::max(latest, one.first);
}

void StageSteps::finish() {
  const auto later = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  latest_up_to_ = latest_from_ = latest_;
  for (auto& up_to : latest_up_to_) {
    std::partial_sum(up_to.begin(), up_to.end(), up_to.begin(), later);
  }
  for (auto& from : latest_from_) {
    std::partial_sum(from.rbegin(), from.rend(), from.rbegin(), later);
  }
}

std::int64_t StageSteps::used(std::size_t number, std::int64_t blocks) const {
  // Progressions whose first block is <= last have one round more than the others.
  const std::int64_t rounds = (blocks - 1) / stride_;
  const auto last = static_cast<std::size_t>((blocks - 1) % stride_);
  const std::vector<std::int64_t>& from = latest_from_[number];
  const std::int64_t early = latest_up_to_[number][last];
  const std::int64_t late = rounds > 0 && last + 1 < from.size() ? from[last + 1] : -1;
  const Stage& stage = stages_[number];
  const std::int64_t begin = stage.slope * (blocks - 1);
  std::int64_t steps = 0;
  if (early >= 0) steps = begin + early + stage.period * rounds + 1;
  if (late >= 0) steps = std::max(steps, begin + late + stage.period * (rounds - 1) + 1);
  for (const Irregular& one : irregular_[number]) {
    if (one.block >= blocks) continue;
    const std::int64_t instance = one.once ? 0 : (blocks - 1 - one.block) / stride_;
    steps = std::max(steps, begin + one.first + stage.period * instance + 1);
  }
  return steps;
}

bool StageSteps::goes_on(std::size_t number) const {
  return *std::max_element(latest_[number].begin(), latest_[number].end()) >= 0 ||
         std::any_of(irregular_[number].begin(), irregular_[number].end(),
                     [](const Irregular& one) { return !one.once; });
}

std::int64_t StageSteps::phase_used(std::uint32_t phase, std::int64_t blocks) const {
  std::int64_t steps = 0;
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (stages_[number].phase == phase) steps = std::max(steps, used(number, blocks));
  }
  return steps;
}

bool StageSteps::overtakes(std::int64_t blocks) const {
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    const Stage& stage = stages_[number];
    const std::int64_t grown =
        phase_used(stage.phase, blocks) - phase_used(stage.phase, blocks - stride_);
    const std::int64_t grows = stage.slope * stride_ + (goes_on(number) ? stage.period : 0);
    if (used(number, blocks) > 0 && grows > grown) return true;
  }
  return false;
}

std::int64_t StageSteps::blocks_together(std::int64_t ticks) const {
  std::int64_t rounds = 0;
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    std::int64_t latest = *std::max_element(latest_[number].begin(), latest_[number].end());
    for (const Irregular& one : irregular_[number]) latest = std::max(latest, one.first);
    rounds = std::max(rounds, (latest + ticks - 1) / stages_[number].period);
  }
  return stride_ * (rounds + 1);
}

}  // namespace espalier::verify
