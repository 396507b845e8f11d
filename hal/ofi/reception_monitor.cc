#include "hal/ofi/reception_monitor.h"

namespace espalier::ofi {
namespace {

constexpr std::uint64_t kLookNs = 5'000'000;

}  // namespace

// Usually the lock holder was only descheduled. Otherwise it is a peer that stopped or died. There
// may be several of these: each is reported. If each lane has a queue of its own, only that lane's
// peer can hold the lock, and its silence has the same effect; all other peers are received.
void ReceptionMonitor::queue_locked() {
  if (state_.domain->queues() > 1) return;
  const std::uint64_t time_ns = monotonic_ns();
  if (locked_since_ns_ == 0) {
    locked_since_ns_ = time_ns;
    look_at_ns_ = time_ns + kLookNs;
  }
  if (time_ns < look_at_ns_) return;
  look_at_ns_ = time_ns + kLookNs;
  for (Lane& lane : state_.lanes) {
    set_blocks_reception(lane, !state_.domain->process_runs(lane.target));
  }
}

void ReceptionMonitor::clear() {
  locked_since_ns_ = 0;
  for (Lane& lane : state_.lanes) set_blocks_reception(lane, false);
}

void ReceptionMonitor::set_blocks_reception(Lane& lane, bool blocks) {
  lane.blocks_reception = blocks;
  if (blocks != lane.blocks_reception_reported) state_.to_report.insert(lane.index);
}

}  // namespace espalier::ofi
