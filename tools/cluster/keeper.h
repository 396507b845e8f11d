#pragma once
// Ends the process groups of nodes, also if their launcher is killed. Host only.

#include <sys/types.h>

#include <vector>

#include "espalier/base/result.h"

namespace espalier::cluster {

// Kills all processes of the groups, and waits until they have ended. A group's number must be
// unused or still belong to it.
void end_groups(const std::vector<pid_t>& groups);

// A process that outlives the launcher: once the launcher has ended without stop(), for any reason,
// it ends the groups that were entered, and itself.
class Keeper {
 public:
  Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() { stop(); }
  // Call before the first node is forked. Error: the system's reason.
  [[nodiscard]] Result<void> start();
  // Forks a process that leads a group of its own, which the keeper knows, and that is killed once
  // this thread ends. Returns as fork().
  [[nodiscard]] pid_t fork_group() const;
  // Ends the keeper. The groups stay.
  void stop();

 private:
  pid_t process_ = -1;
  int pipe_ = -1;  // its end for writing; the launcher holds it open
};

}  // namespace espalier::cluster
