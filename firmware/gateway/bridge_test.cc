// Runs the conformance suite between boards behind bridges: board, serial link, bridge, fabric,
// bridge, serial link, board. This fabric never completes a message before it has compared it.

#include <memory>

#include "firmware/gateway/testing/bridged_endpoints.h"
#include "hal/conformance/conformance.h"

namespace espalier::conformance {
namespace {

using gateway::BridgedEndpoints;

BackEnd back_end(const char* name, double fault) {
  return {name, [fault](const EndpointsSpec& spec) -> std::unique_ptr<ConnectedEndpoints> {
            serial::CarrierFaults faults;
            faults.lose = faults.repeat = faults.damage = faults.delay = fault;
            return std::make_unique<BridgedEndpoints>(spec, faults);
          }};
}

INSTANTIATE_TEST_SUITE_P(Bridged, ConformanceTest,
                         ::testing::Values(back_end("perfect", 0), back_end("all_faults", 0.04)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
