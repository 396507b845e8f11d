#pragma once
// The numbers of a node's collectives, from 0 in the order in which all nodes run them, for going
// on after a failure (docs/spares.md). A run is some collectives with the same input. Freestanding.

#include <cstdint>

#include "collectives/machine/recovery.h"

namespace espalier {

class RunNumbers {
 public:
  // The next run is requested: the input of the latest one is gone.
  void request() { repeatable_ = next_; }
  // It begins.
  void begin() { first_ = repeatable_ = next_; }
  // It ended after `completed` collectives.
  void end(std::uint64_t completed) {
    const std::uint32_t next = first_ + static_cast<std::uint32_t>(completed);
    if (next > next_) next_ = next;
  }
  // Returns how far the node came. completed: of the run, if one is running.
  [[nodiscard]] RecoveryProgress progress(bool is_running, std::uint64_t completed) const {
    return {is_running ? first_ + static_cast<std::uint32_t>(completed) : next_, repeatable_};
  }
  // Returns the number of the next collective.
  [[nodiscard]] std::uint32_t next() const { return next_; }
  // This node comes back, and all go on at collective `next`.
  void come_back(std::uint32_t next) { first_ = next_ = repeatable_ = next; }
  enum class Then : std::uint8_t {
    kGoesOn,  // the latest run, after `completed` of its collectives
    kIsLost,  // others have another run already, and do not repeat this one
    kWaits,   // for a run
  };
  // All go on at collective `next`. is_idle: no run is running or requested.
  [[nodiscard]] Then resume(std::uint32_t next, bool is_running, bool is_idle,
                            std::uint64_t repetitions, std::uint64_t& completed) {
    const bool is_repeatable = is_idle && repeatable_ != next_;
    if ((is_running || is_repeatable) && next - first_ < repetitions) {
      completed = next - first_;
      return Then::kGoesOn;
    }
    next_ = next;
    if (!is_running) return Then::kWaits;
    repeatable_ = next;
    return Then::kIsLost;
  }

 private:
  std::uint32_t first_ = 0;       // of the latest run
  std::uint32_t next_ = 0;        // of the next run; stale while one is running
  std::uint32_t repeatable_ = 0;  // the first whose input is untouched
};

}  // namespace espalier
