#pragma once
// Random plans, and shorter ones that fail in the same way.

#include <cstdint>

#include "tests/storm/plan.h"
#include "tests/storm/schedule.h"

namespace espalier::storm {

// Seeds that follow each other share a schedule, because compiling takes longer than running.
inline constexpr std::uint64_t kSeedsPerSchedule = 32;
inline constexpr std::uint32_t kMaxRanks = 64;     // of a cluster
inline constexpr std::uint32_t kMaxRealRanks = 6;  // over libfabric

// The schedules of the plans that were made last.
class Schedules {
 public:
  // Clusters that are drawn have up to `most_ranks` ranks.
  explicit Schedules(std::uint32_t most_ranks = kMaxRanks) : most_ranks_(most_ranks) {}
  // The schedule that this seed and its neighbours have.
  [[nodiscard]] const Schedule& drawn(std::uint64_t seed);
  // The schedule of a plan; null, with the reason in `error`: there is none.
  [[nodiscard]] const Schedule* made(const ScheduleSpec& spec, std::string& error);

 private:
  std::uint32_t most_ranks_;
  std::uint64_t group_ = kNever;
  std::optional<Schedule> drawn_, made_;
};

// The plan of a seed over this carrier; half of those over frames are over bytes. The same seed
// gives the same plan.
[[nodiscard]] Plan draw_plan(std::uint64_t seed, const Schedule& schedule,
                             Over over = Over::kNetwork);

// Returns the shortest plan that was found to fail in the same way: `kind` is Outcome::wrong_kind.
[[nodiscard]] Plan shrink(Plan plan, const std::string& kind, Schedules& schedules);

}  // namespace espalier::storm
