#pragma once
// Finds the peers that block this endpoint's reception: stopped or dead, they may hold the shared
// queue lock (shm).

#include <cstdint>

#include "hal/ofi/endpoint_state.h"

namespace espalier::ofi {

class ReceptionMonitor {
 public:
  explicit ReceptionMonitor(EndpointState& state) : state_(state) {}

  // A read found the queue locked. Looks at the peers' processes after 5 ms of that, and again
  // every 5 ms.
  void queue_locked();
  // A read succeeded: no peer blocks reception.
  void queue_readable() {
    if (locked_since_ns_ != 0) clear();
  }

 private:
  void clear();
  void set_blocks_reception(Lane& lane, bool blocks);

  EndpointState& state_;
  std::uint64_t locked_since_ns_ = 0;  // no read has succeeded since then; 0: the last one did
  std::uint64_t look_at_ns_ = 0;       // when to look at the peers' processes
};

}  // namespace espalier::ofi
