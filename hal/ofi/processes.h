#pragma once
// For tests and benchmarks: one process an endpoint.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

class Processes {
 public:
  // What process v does with its connected endpoint; returns its exit status. It ends only when all
  // live processes have come to the end of theirs, polling until then.
  using Body = std::function<int(Endpoint& endpoint)>;

  // Forks peers.size() processes, which open, connect and run `body`. Returns when all are
  // connected. peers and config.lanes: as in cluster.h.
  Processes(const Config& config, const std::vector<std::vector<std::uint32_t>>& peers,
            const Body& body);
  // Waits for the processes that were not killed; the greatest of their exit statuses, 128 + the
  // signal for one that died of a signal.
  int join();
  void signal(std::uint32_t node, int number);  // SIGKILL: join() does not wait for it
  [[nodiscard]] pid_t pid(std::uint32_t node) const { return children_[node].pid; }

 private:
  struct Child {
    pid_t pid = -1;
    int channel = -1;
    bool killed = false;
  };
  [[noreturn]] static void run(Config config, int channel, const Body& body);
  std::vector<Child> children_;
};

}  // namespace espalier::ofi
