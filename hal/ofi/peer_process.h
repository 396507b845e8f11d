#pragma once
// Whether a process of this machine runs. Linux only.

#include <cstdint>

namespace espalier::ofi {

class PeerProcess {
 public:
  PeerProcess() = default;  // none: runs for ever
  // The process that has the number now.
  explicit PeerProcess(std::int64_t number);
  // False: it is stopped (by a signal or a debugger), or has ended. True also where /proc does not
  // show it.
  [[nodiscard]] bool runs() const;

 private:
  std::int64_t number_ = 0;  // 0: not watched
  std::uint64_t start_ = 0;  // when it was started: its number may be given again
};

}  // namespace espalier::ofi
