#include "hal/mem/host/access.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/process/file_limit.h"

namespace espalier::mem {
namespace {

// More than the segment of any endpoint has.
constexpr std::uint64_t kMinFileBytes = std::uint64_t{64} << 20;

struct Capabilities {
  std::uint64_t effective = 0, permitted = 0;
  [[nodiscard]] bool may_trace() const { return (effective >> CAP_SYS_PTRACE & 1) != 0; }
};

Capabilities own_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct low_high[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &head, low_high) != 0) return {};
  return {std::uint64_t{low_high[1].effective} << 32 | low_high[0].effective,
          std::uint64_t{low_high[1].permitted} << 32 | low_high[0].permitted};
}

}  // namespace

// The conditions of ptrace(2), "Ptrace access mode checking", for PTRACE_MODE_READ_FSCREDS.
std::string sharing_refusal() {
  if (access("/proc/self/fd", X_OK) != 0) return "/proc is not mounted";
  if (max_file_bytes() < kMinFileBytes) {
    return "shared memory counts as a file, and this process has " + file_limit_text();
  }
  const Capabilities own = own_capabilities();
  if (own.may_trace()) return "";
  if (prctl(PR_GET_DUMPABLE) != 1) {
    return "this process is not dumpable (PR_SET_DUMPABLE, set-uid, file capabilities, or a "
           "program that its user cannot read)";
  }
  if ((own.permitted & ~own.effective) != 0) {
    return "this process has capabilities that are permitted and not effective";
  }
  return "";
}

std::string credentials_text() {
  const Capabilities own = own_capabilities();
  const std::string user = std::to_string(geteuid());
  if (own.may_trace()) return user + "/may trace";
  return user + '/' + std::to_string(getegid()) + '/' + std::to_string(own.permitted);
}

}  // namespace espalier::mem
