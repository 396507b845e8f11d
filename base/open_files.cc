#include "base/open_files.h"

#include <sys/resource.h>

namespace espalier {

Result<void> allow_open_files(std::uint64_t needed, const std::string& what) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  const rlimit raised{needed, limit.rlim_max};
  if (limit.rlim_max >= needed && setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  return fail(what + " need " + std::to_string(needed) + " open files; the limit is " +
              std::to_string(limit.rlim_max) + " (ulimit -n)");
}

}  // namespace espalier
