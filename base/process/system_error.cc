#include "base/process/system_error.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "base/counted.h"
#include "base/process/file_limit.h"

namespace espalier {
namespace {

// Returns the limit as text, of things that `one` names; empty: there is none.
std::string soft_limit(decltype(RLIMIT_AS) resource, const char* one) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return counted(limit.rlim_cur, one);
}

}  // namespace

std::string limit_suffix(int error) {
  if (error == EFBIG) return "; " + file_limit_text();
  if (error == EMFILE)
    return "; a limit of " + soft_limit(RLIMIT_NOFILE, "open file") + " (ulimit -n)";
  if (error != ENOMEM && error != EAGAIN) return "";
  if (const std::string bytes = soft_limit(RLIMIT_AS, "byte"); !bytes.empty()) {
    return "; an address-space limit of " + bytes + " (ulimit -v)";
  }
  const std::string processes = error == EAGAIN ? soft_limit(RLIMIT_NPROC, "process") : "";
  return processes.empty() ? "" : "; a limit of " + processes + " (ulimit -u)";
}

std::string system_error_text(int error) { return std::strerror(error) + limit_suffix(error); }

}  // namespace espalier
