#include "base/process/open_files.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <climits>

#include "base/counted.h"

namespace espalier {

Result<void> allow_open_files(std::uint64_t needed, const std::string& what) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  const rlimit raised{needed, limit.rlim_max};
  if (limit.rlim_max >= needed && setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  return fail(what + (what.starts_with("1 ") ? " needs " : " need ") +
              counted(needed, "open file") + "; the limit is " + std::to_string(limit.rlim_max) +
              " (ulimit -n)");
}

// Asks for each descriptor in turn, because a folder of /proc cannot be read once none is free.
Result<void> check_free_files(std::uint64_t needed, const std::string& what) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const std::uint64_t all = std::min<std::uint64_t>(limit.rlim_cur, INT_MAX);
  std::uint64_t free = 0;
  for (std::uint64_t file = 0; file < all && free < needed; ++file) {
    if (fcntl(static_cast<int>(file), F_GETFD) < 0) ++free;
  }
  if (free >= needed) return {};
  return fail(what + " needs " + counted(needed, "more open file") + "; the limit of " +
              std::to_string(limit.rlim_cur) + " leaves " + std::to_string(free) + " (ulimit -n)");
}

}  // namespace espalier
