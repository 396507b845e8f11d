#pragma once
// Announces to the peer of a lane everything except messages: the contents of its Outbox.

#include <cstdint>

#include "hal/fabric/ofi/lanes/endpoint_state.h"
#include "hal/fabric/ofi/lanes/lane_writer.h"

namespace espalier::ofi {

// The push functions return false if libfabric refused a write: the rest remains in the Outbox.
class LaneAnnouncer {
 public:
  LaneAnnouncer(EndpointState& state, LaneWriter& writer) : state_(state), writer_(writer) {}

  // Pushes the greeting.
  [[nodiscard]] bool push_greeting(Lane& lane);
  // Pushes the hello and the controls.
  [[nodiscard]] bool push_controls(Lane& lane);
  // Pushes the mismatches that this end found, and the credit.
  [[nodiscard]] bool push_answers(Lane& lane);
  [[nodiscard]] bool push_clear_to_send(Lane& lane);
  // Pushes the goodbye, the last word.
  [[nodiscard]] bool push_goodbye(Lane& lane);
  // Records that the peer knows of `count` consumed messages (low 32 bits).
  void count_credited(Lane& lane, std::uint32_t count);

 private:
  [[nodiscard]] bool push_control(Lane& lane, const Control& control);

  EndpointState& state_;
  LaneWriter& writer_;
};

}  // namespace espalier::ofi
