#include "communicator/record/losses.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "espalier/base/status.h"

namespace espalier::record {
namespace {

constexpr double kEndS = 2;  // the processes of a job that is killed end within this time
constexpr double kAtOnceS = 0.5;

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return static_cast<double>(static_cast<std::int64_t>(to_ns - from_ns)) / 1e9;
}

bool is_dead_link(const CommunicatorView& part) {
  return part.failure && static_cast<Status>(part.failure->status) == Status::kDeadLink;
}

bool is_lost(const RankView& rank) {
  const Process& process = rank.view.process;
  if (process.state != ProcessState::kJoined || process.end_wall != 0) return false;
  return std::none_of(rank.view.communicators.begin(), rank.view.communicators.end(),
                      [](const CommunicatorView& part) {
                        return part.failure && !part.has_left &&
                               static_cast<Status>(part.failure->status) != Status::kCancelled;
                      });
}

std::size_t count_lost(const JobView& job) {
  return static_cast<std::size_t>(std::count_if(job.ranks.begin(), job.ranks.end(), is_lost));
}

std::uint64_t last_sign(const JobView& job) {
  std::uint64_t last = 0;
  for (const RankView& rank : job.ranks) last = std::max(last, rank.view.heartbeat_wall);
  return last;
}

// How a process was lost, as far as it is known.
struct Loss {
  Sighted what = Sighted::kNothing;
  std::uint64_t at_wall = 0;
  std::string witness = {};
};

// Nodes of `espalier run` may share a process.
bool are_together(const RankView& rank, const RankView& other) {
  const Process &one = rank.view.process, &two = other.view.process;
  if (one.rank == two.rank) return true;
  return one.pid != 0 && one.pid == two.pid && one.start_ticks == two.start_ticks &&
         std::string_view(one.host) == two.host;
}

std::optional<Loss> seen_by_others(const JobView& job, const RankView& lost) {
  std::optional<Loss> first;
  for (const RankView& other : job.ranks) {
    const Process& process = other.view.process;
    if (process.sight.what == Sighted::kNothing) continue;
    const RankView* const seen = job.find(process.sight.rank);
    if (seen == nullptr || !are_together(*seen, lost)) continue;
    if (first && first->at_wall <= process.sight.at_wall) continue;
    first = Loss{process.sight.what, process.sight.at_wall,
                 ", as rank " + std::to_string(process.rank) + " saw"};
  }
  return first;
}

std::optional<Loss> found_dead(const JobView& job, const RankView& lost) {
  const Failure* first = nullptr;
  for (const RankView& other : job.ranks) {
    for (const CommunicatorView& part : other.view.communicators) {
      if (!is_dead_link(part) || part.failure->peer_in_job != lost.view.process.rank) continue;
      if (first == nullptr || part.failure->at_wall < first->at_wall) first = &*part.failure;
    }
  }
  if (first == nullptr) return std::nullopt;
  const double deadline_s = lost.view.process.deadline_ms / 1e3;
  const bool was_at_once =
      seconds(lost.view.heartbeat_wall, first->at_wall) < std::max(kAtOnceS, deadline_s / 2);
  return Loss{was_at_once ? Sighted::kEnded : Sighted::kNothing, first->at_wall,
              "; the others found it dead"};
}

Suspect suspect_of(const RankView& rank, const Loss& loss) {
  const Process& process = rank.view.process;
  const char* const ended =
      process.schedule_ranks == 0 ? " has ended without leave()" : " has ended";
  const char* const what = loss.what == Sighted::kStopped ? " was stopped"
                           : loss.what == Sighted::kEnded ? ended
                                                          : " was stopped, or ended";
  return {.kind = loss.what == Sighted::kEnded ? Suspicion::kEnded : Suspicion::kStopped,
          .ranks = {process.rank},
          .text = process_text(rank) + what + ", " + duration_text(rank.quiet_s) +
                  " before the last sign of the others" + loss.witness};
}

}  // namespace

Losses find_losses(const JobView& job) {
  Losses losses;
  const std::size_t count = count_lost(job);
  const std::uint64_t last = last_sign(job);
  for (const RankView& rank : job.ranks) {
    if (!is_lost(rank)) continue;
    auto loss = seen_by_others(job, rank);
    if (!loss) loss = found_dead(job, rank);
    if (!loss) {
      if (rank.quiet_s >= kSilentS) losses.silent.push_back(suspect_of(rank, {}));
      continue;
    }
    const bool is_early = count == 1 || rank.quiet_s >= kSilentS ||
                          (loss->at_wall != 0 && seconds(loss->at_wall, last) >= kEndS);
    (is_early ? losses.early : losses.at_end).push_back(suspect_of(rank, *loss));
  }
  return losses;
}

JobView without_end(JobView job) {
  if (count_lost(job) < 2 || 2 * count_lost(job) < job.ranks.size()) return job;
  const std::uint64_t last = last_sign(job);
  for (RankView& rank : job.ranks) {
    for (CommunicatorView& part : rank.view.communicators) {
      if (part.has_left || !is_dead_link(part)) continue;
      if (seconds(part.failure->at_wall, last) < kEndS) part.failure.reset();
    }
  }
  return job;
}

}  // namespace espalier::record
