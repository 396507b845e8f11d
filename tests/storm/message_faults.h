#pragma once
// A plan's faults of messages, as hal/fault takes them.

#include <cstdint>

#include "hal/fault/fault_endpoint.h"
#include "hal/fault/faults.h"
#include "tests/storm/plan.h"
#include "tests/storm/schedule.h"

namespace espalier::storm {

// The number of the node's link to `peer`; its number of links if there is none.
[[nodiscard]] std::uint32_t link_to(const Schedule& schedule, std::uint32_t node,
                                    std::uint32_t peer);

// The faults of the messages that the node sends.
[[nodiscard]] fault::Faults message_faults(const Plan& plan, const Schedule& schedule,
                                           std::uint32_t node);
// Whether `faults` does something.
[[nodiscard]] bool has_faults(const fault::Faults& faults);
// Whether noise (Kind::kNoise) has struck a message that this endpoint sends.
[[nodiscard]] bool has_noise(const fault::FaultEndpoint& endpoint);

}  // namespace espalier::storm
