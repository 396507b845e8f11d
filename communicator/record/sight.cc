// Looks at other processes of this host that hold this one up or are lost. By its own record, a
// process that was stopped and then killed cannot be told from one that was killed.

#include <new>

#include "communicator/record/folder.h"
#include "communicator/record/view.h"
#include "communicator/record/writer.h"

namespace espalier::record {
namespace {

// A record that was not there is looked for again after this time.
constexpr std::uint64_t kSearchPauseNs = 2'000'000'000;

Sighted sighted_of(Life life) {
  switch (life) {
    case Life::kRuns: return Sighted::kNothing;
    case Life::kStopped: return Sighted::kStopped;
    case Life::kEnded: return Sighted::kEnded;
  }
  return Sighted::kNothing;
}

}  // namespace

// A rank that was replaced has two records: the process that began last counts.
void Writer::find_neighbour(const std::string& job, std::uint32_t rank, Neighbour& found) const {
  const auto paths = list(folder());
  if (!paths) return;
  for (const std::string& path : *paths) {
    FileName name;
    if (!parse(path.substr(path.rfind('/') + 1), name)) continue;
    if (name.job != job || name.rank != rank) continue;
    const auto view = read_view(path);
    if (!view || view->identity.start_ticks < found.identity.start_ticks) continue;
    found.identity = view->identity;
    found.path = path;
  }
}

void Writer::look_at(std::uint32_t rank, std::uint64_t now_ns) noexcept {
  try {
    Neighbour one;
    {
      const std::lock_guard lock(mutex_);
      one = neighbours_[rank];
    }
    if (one.path.empty()) {
      if (now_ns < one.search_ns) return;
      one.search_ns = now_ns + kSearchPauseNs;
      find_neighbour(job(), rank, one);
    }
    const Sighted seen =
        one.path.empty() ? Sighted::kNothing : sighted_of(life_of(one.identity, one.path));
    const std::lock_guard lock(mutex_);
    neighbours_[rank] = one;
    note_sight(rank, seen);
  } catch (const std::bad_alloc&) {  // it then saw nothing
  }
}

}  // namespace espalier::record
