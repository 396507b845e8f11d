#pragma once
// For tests and benchmarks: one process per endpoint.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

class EndpointProcesses {
 public:
  // The work of a process with its connected endpoint; returns the exit status. The process then
  // polls, and exits only when the bodies of all live processes have returned.
  using Body = std::function<int(Endpoint& endpoint)>;

  // Forks peers.size() processes, which open their endpoints, connect and call `body`. Returns when
  // all are connected. peers and config.lanes are as in local_endpoints.h.
  EndpointProcesses(const FixedConfig& config, const std::vector<std::vector<std::uint32_t>>& peers,
                    const Body& body);
  // Waits for the processes that were not killed, and returns the greatest of their exit statuses.
  // A process that died of a signal counts as 128 + the signal.
  int join();
  // Sends a signal to the node's process. After SIGKILL, join() does not wait for that process.
  void signal(std::uint32_t node, int number);
  [[nodiscard]] pid_t pid(std::uint32_t node) const { return children_[node].pid; }

 private:
  struct Child {
    pid_t pid = -1;
    int channel = -1;
    bool killed = false;
  };
  [[noreturn]] static void execute(const FixedConfig& config, int channel, const Body& body);
  std::vector<Child> children_;
};

}  // namespace espalier::ofi
