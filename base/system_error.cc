#include "base/system_error.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "base/file_limit.h"

namespace espalier {
namespace {

// Returns the limit as text; empty: there is none.
std::string soft_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return std::to_string(limit.rlim_cur);
}

}  // namespace

std::string limit_suffix(int error) {
  if (error == EFBIG) return "; " + file_limit_text();
  if (error == EMFILE)
    return "; a limit of " + soft_limit(RLIMIT_NOFILE) + " open files (ulimit -n)";
  if (error != ENOMEM && error != EAGAIN) return "";
  if (const std::string bytes = soft_limit(RLIMIT_AS); !bytes.empty()) {
    return "; an address-space limit of " + bytes + " bytes (ulimit -v)";
  }
  const std::string processes = error == EAGAIN ? soft_limit(RLIMIT_NPROC) : "";
  return processes.empty() ? "" : "; a limit of " + processes + " processes (ulimit -u)";
}

std::string system_error_text(int error) { return std::strerror(error) + limit_suffix(error); }

}  // namespace espalier
