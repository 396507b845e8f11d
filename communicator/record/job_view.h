#pragma once
// A job as the records of its ranks show it, and how lines name its ranks. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "communicator/record/view.h"

namespace espalier::record {

inline constexpr double kLongS = 1;    // a shorter wait says nothing
inline constexpr double kSilentS = 3;  // without a heartbeat; they come ten times a second

// A rank as a reader finds it. Ages refer to the time of the reading; for a job that has ended, to
// the last sign of any of its ranks.
struct RankView {
  View view = {};
  Life life = Life::kRuns;
  double quiet_s = 0;  // age of the heartbeat

  // Returns the age of a time of the rank's own clock, s.
  [[nodiscard]] double age(std::uint64_t time_ns) const;
};

struct JobView {
  std::string name = {};  // of the job; of the meeting place, while ranks wait in join()
  std::uint32_t size = 0;
  std::uint32_t schedule_ranks = 0;  // Process::schedule_ranks
  bool has_ended = false;            // only its records are left
  std::vector<RankView> ranks = {};  // those with a record, ascending

  [[nodiscard]] const RankView* find(std::uint32_t rank) const;
};

// Returns the age of the heartbeat of a record of this host, s. By the wall clock for a process of
// another namespace, because its CLOCK_MONOTONIC may be another one.
[[nodiscard]] double quiet_time(const View& view);
// Sorts ranks into their jobs.
[[nodiscard]] std::vector<JobView> jobs_of(std::vector<RankView> ranks);
// Returns a running job with those of its records that are in this folder. Records that cannot be
// read are left out.
[[nodiscard]] JobView read_job(const std::string& folder, const std::string& job);
// Sets the ages and `has_ended` of ranks of which only the records are left.
void end_all(std::vector<RankView>& ranks);

// Whether a rank of the job that is below `rank` in this communicator waits in a call of it, too.
[[nodiscard]] bool has_lower_waiter(const JobView& job, std::uint64_t id, std::uint32_t rank);

// "allreduce of 50 f32, sum"; for the end of a communicator "leave()"
[[nodiscard]] std::string short_text(std::uint64_t word);
// "rank 3 (process 4711 on a)", "rank 6 (board b at /dev/ttyUSB0, gateway: process 4711 on a)"
[[nodiscard]] std::string process_text(const RankView& rank);
// "12 s", "1.5 s"
[[nodiscard]] std::string duration_text(double seconds);
// "rank 3", "ranks 0, 1 and 5"; with routers "rank 5 and router 17"
[[nodiscard]] std::string ranks_text(const std::vector<std::uint32_t>& ranks,
                                     std::uint32_t schedule_ranks = 0);

}  // namespace espalier::record
