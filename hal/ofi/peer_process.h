#pragma once
// Whether another process of this machine is running. Linux only.

#include <cstdint>

namespace espalier::ofi {

class PeerProcess {
 public:
  PeerProcess() = default;  // no process: runs() is always true
  // The process that currently has this process number.
  explicit PeerProcess(std::int64_t number);
  // False if the process is stopped (by a signal or a debugger) or has ended. Also true if /proc
  // did not show the process to the constructor, or cannot be read now.
  [[nodiscard]] bool runs() const;

 private:
  std::int64_t number_ = 0;  // 0: not watched
  std::uint64_t start_ = 0;  // start time; tells it from a later process with the same number
};

}  // namespace espalier::ofi
