#include "tools/status/gather.h"

#include <cstdio>
#include <set>
#include <utility>

#include "base/host_name.h"
#include "base/one_line.h"
#include "base/try.h"
#include "communicator/record/folder.h"
#include "communicator/record/view.h"

namespace espalier::status {

std::vector<OwnRecord> own_records() {
  std::vector<OwnRecord> records;
  for (const std::string& folder : record::run_folders()) {
    if (!record::is_own(folder)) continue;
    record::remove_stale(folder);
    const auto paths = record::list(folder);
    if (!paths) continue;
    for (const std::string& path : *paths) {
      auto bytes = record::read_bytes(path);
      auto view = bytes ? record::decode(*bytes, path) : fail(bytes.error());
      if (!view) continue;
      record::RankView rank{.view = *std::move(view)};
      rank.life = record::life_of(rank.view.identity, path);
      rank.quiet_s = record::quiet_time(rank.view);
      records.push_back({*std::move(bytes), std::move(rank)});
    }
  }
  return records;
}

std::vector<record::RankView> read_here() {
  std::vector<record::RankView> ranks;
  for (OwnRecord& own : own_records()) ranks.push_back(std::move(own.rank));
  return ranks;
}

Result<std::vector<record::RankView>> read_folder(const std::string& folder) {
  ESPALIER_TRY_TO(const auto paths, record::list(folder));
  if (paths.empty()) {
    return fail("'" + one_line(folder) +
                "' has no record; expected a folder that ESPALIER_RECORD named, with files "
                "espalier-JOB.RANK.PID");
  }
  std::vector<record::RankView> ranks;
  for (const std::string& path : paths) {
    ESPALIER_TRY_TO(auto view, record::read_view(path));
    ranks.push_back({.view = std::move(view)});
  }
  record::end_all(ranks);
  return ranks;
}

std::vector<std::string> other_hosts(const std::vector<record::JobView>& jobs) {
  std::set<std::string> hosts;
  for (const record::JobView& job : jobs) {
    std::set<std::string> known;
    for (const record::RankView& rank : job.ranks) known.insert(rank.view.process.host);
    for (const record::RankView& rank : job.ranks) {
      for (const record::HostRun& run : rank.view.hosts) {
        if (is_host_name(run.host) && !known.contains(run.host)) hosts.insert(run.host);
      }
    }
  }
  return {hosts.begin(), hosts.end()};
}

}  // namespace espalier::status
