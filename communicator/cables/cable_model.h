#pragma once
// What messages over cables cost. Host only.

#include <cstdint>

#include "collectives/predict/model.h"

namespace espalier::communicator {

// Returns constants for links that are cables. `cost.message_ps` of 0: not measured. `lane_mbits`:
// the rate of a lane, Mbit/s; 0: not known. The rest of `cost` has no effect, except the cores.
[[nodiscard]] predict::Model cable_model(const predict::NetworkCost& cost,
                                         std::uint32_t lane_mbits);

}  // namespace espalier::communicator
