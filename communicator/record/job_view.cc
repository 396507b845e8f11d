#include "communicator/record/job_view.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "communicator/record/call_word.h"

namespace espalier::record {

double RankView::age(std::uint64_t time_ns) const {
  if (time_ns == 0) return 0;
  const auto before = static_cast<double>(static_cast<std::int64_t>(view.heartbeat_ns - time_ns));
  return std::max(0.0, before / 1e9 + quiet_s);
}

const RankView* JobView::find(std::uint32_t rank) const {
  const auto found = std::lower_bound(
      ranks.begin(), ranks.end(), rank,
      [](const RankView& each, std::uint32_t of) { return each.view.process.rank < of; });
  return found == ranks.end() || found->view.process.rank != rank ? nullptr : &*found;
}

double quiet_time(const View& view) {
  std::uint64_t now = monotonic_ns(), then = view.heartbeat_ns;
  if (view.identity.pid_space != own_identity().pid_space) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    now = static_cast<std::uint64_t>(std::chrono::nanoseconds(wall).count());
    then = view.heartbeat_wall;
  }
  return std::max(0.0, static_cast<double>(static_cast<std::int64_t>(now - then)) / 1e9);
}

std::vector<JobView> jobs_of(std::vector<RankView> ranks) {
  // Ranks that have not joined belong to the newest job of the same meeting place.
  std::map<std::string, std::pair<std::uint64_t, std::string>> newest;
  for (const RankView& rank : ranks) {
    const Process& process = rank.view.process;
    if (process.job[0] == 0 || process.joining[0] == 0) continue;
    auto& known = newest[process.joining];
    known = std::max(known, {process.since_wall, process.job});
  }
  std::map<std::string, JobView> jobs;
  for (RankView& rank : ranks) {
    const Process& process = rank.view.process;
    std::string name = process.job;
    if (name.empty()) name = process.joining;
    const auto met = process.job[0] == 0 ? newest.find(process.joining) : newest.end();
    if (met != newest.end()) name = met->second.second;
    JobView& job = jobs[name];
    job.name = name;
    job.size = std::max(job.size, process.size);
    job.schedule_ranks = std::max(job.schedule_ranks, process.schedule_ranks);
    job.ranks.push_back(std::move(rank));
  }
  std::vector<JobView> all;
  for (auto& [name, job] : jobs) {
    // A rank may have two records: the process that lived last counts.
    std::sort(job.ranks.begin(), job.ranks.end(), [](const RankView& a, const RankView& b) {
      return std::make_pair(a.view.process.rank, b.view.heartbeat_wall) <
             std::make_pair(b.view.process.rank, a.view.heartbeat_wall);
    });
    const auto same = [](const RankView& a, const RankView& b) {
      return a.view.process.rank == b.view.process.rank;
    };
    job.ranks.erase(std::unique(job.ranks.begin(), job.ranks.end(), same), job.ranks.end());
    all.push_back(std::move(job));
  }
  return all;
}

JobView read_job(const std::string& folder, const std::string& job) {
  JobView found{.name = job};
  const auto paths = list(folder);
  if (!paths) return found;
  std::vector<RankView> ranks;
  for (const std::string& path : *paths) {
    FileName name;
    if (!parse(path.substr(path.rfind('/') + 1), name) || name.job != job) continue;
    auto view = read_view(path);
    if (!view) continue;
    RankView rank{.view = *std::move(view)};
    rank.life = life_of(rank.view.identity, path);
    rank.quiet_s = quiet_time(rank.view);
    ranks.push_back(std::move(rank));
  }
  for (JobView& each : jobs_of(std::move(ranks))) {
    if (each.name == job) found = std::move(each);
  }
  return found;
}

void end_all(std::vector<RankView>& ranks) {
  std::uint64_t last = 0;
  for (const RankView& rank : ranks) last = std::max(last, rank.view.heartbeat_wall);
  for (RankView& rank : ranks) {
    rank.life = Life::kEnded;
    rank.quiet_s = static_cast<double>(last - rank.view.heartbeat_wall) / 1e9;
  }
}

bool has_lower_waiter(const JobView& job, std::uint64_t id, std::uint32_t rank) {
  return std::any_of(job.ranks.begin(), job.ranks.end(), [&](const RankView& other) {
    const CommunicatorView* const part = find(other, id);
    return part != nullptr && part->rank < rank && part->wait && other.life == Life::kRuns &&
           other.quiet_s < kSilentS;
  });
}

std::string short_text(std::uint64_t word) {
  if (word == communicator::kLeavingWord) return "leave()";
  const std::string text = communicator::call_text(word);
  constexpr std::string_view kCalled = "called ";
  return text.starts_with(kCalled) ? text.substr(kCalled.size()) : text;
}

std::string process_text(const RankView& rank) {
  const Process& process = rank.view.process;
  const std::string board =
      process.board[0] == 0 ? "" : std::string("board ") + process.board + ", gateway: ";
  return ranks_text({process.rank}, process.schedule_ranks) + " (" + board + "process " +
         std::to_string(process.pid) + " on " + process.host + ")";
}

std::string duration_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks, std::uint32_t schedule_ranks) {
  constexpr std::size_t kMaxShown = 8;
  const auto is_router = [&](std::uint32_t rank) {
    return schedule_ranks != 0 && rank >= schedule_ranks;
  };
  const bool has_router = std::any_of(ranks.begin(), ranks.end(), is_router);
  std::string text = has_router ? "" : ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = std::min(ranks.size(), kMaxShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == ranks.size();
    text += i == 0 ? "" : is_last ? " and " : ", ";
    if (has_router) text += is_router(ranks[i]) ? "router " : "rank ";
    text += std::to_string(ranks[i]);
  }
  if (shown < ranks.size()) text += " and " + std::to_string(ranks.size() - shown) + " more";
  return text;
}

}  // namespace espalier::record
