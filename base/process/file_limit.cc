#include "base/process/file_limit.h"

#include <sys/resource.h>

#include <csignal>

#include "base/counted.h"

namespace espalier {

std::uint64_t max_file_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

std::string file_limit_text() {
  return "a file-size limit of " + counted(max_file_bytes(), "byte") + " (ulimit -f)";
}

void fail_beyond_file_limit() {
  struct sigaction action {};
  // A handler, because an ignored signal stays ignored in programs that are executed.
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace espalier
