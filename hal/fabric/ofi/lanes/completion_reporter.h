#pragma once
// Reports the results of the lanes to the caller, as completions.

#include <cstdint>

#include "hal/fabric/ofi/lanes/endpoint_state.h"

namespace espalier::ofi {

class CompletionReporter {
 public:
  explicit CompletionReporter(EndpointState& state) : state_(state) {}

  [[nodiscard]] bool empty() const { return state_.to_report.empty(); }
  // Takes the next completion; false if there is none. The lanes take turns, so that no busy lane
  // delays another.
  [[nodiscard]] bool take(Completion& completion);

 private:
  [[nodiscard]] bool take_from(Lane& lane, Completion& completion);
  [[nodiscard]] bool take_control(Lane& lane, Completion& completion);
  [[nodiscard]] bool take_received(Lane& lane, Completion& completion);
  [[nodiscard]] bool take_unexpected(Lane& lane, Completion& completion);
  [[nodiscard]] bool take_sent(Lane& lane, Completion& completion);
  [[nodiscard]] bool take_late_mismatch(Lane& lane, Completion& completion);
  [[nodiscard]] bool take_down(Lane& lane, Completion& completion);

  EndpointState& state_;
  std::uint32_t last_lane_ = 0;  // reported last
};

}  // namespace espalier::ofi
