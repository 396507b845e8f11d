// The wrapper passes the whole suite as long as it keeps the contract: without faults, and with
// delays only.

#include "hal/conformance/conformance.h"

#include <deque>

#include "base/testing/results.h"
#include "espalier/hal/sim/network.h"
#include "hal/fault/fault_endpoint.h"

namespace espalier::conformance {
namespace {

class FaultEndpoints final : public ConnectedEndpoints {
 public:
  FaultEndpoints(const sim::Model& model, const EndpointsSpec& spec, const fault::Faults& faults)
      : network_(model, spec.peers) {
    for (std::uint32_t v = 0; v < network_.nodes(); ++v) {
      fault::FaultEndpoint::Hooks hooks;
      hooks.wake = [this, v](std::uint64_t at) { network_.wake(v, at); };
      endpoints_.emplace_back(network_.endpoint(v), faults, hooks);
    }
  }
  Endpoint& endpoint(std::uint32_t node) override { return endpoints_[node]; }
  bool progress() override { return network_.advance(UINT64_MAX); }

 private:
  sim::Network network_;
  std::deque<fault::FaultEndpoint> endpoints_;
};

BackEnd back_end(const char* name, const char* text) {
  return {name, [=](const EndpointsSpec& spec) -> std::unique_ptr<ConnectedEndpoints> {
            const fault::Faults faults = or_throw(fault::parse_faults(text));
            return std::make_unique<FaultEndpoints>(
                sim::Model{.window = spec.window, .eager_bytes = spec.eager_bytes}, spec, faults);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Fault, ConformanceTest,
    testing::Values(back_end("none", ""), back_end("delays", "random seed=1 delay=0.3 ns=30000"),
                    back_end("long_delays", "random seed=2 delay=0.05 ns=10000000"),
                    back_end("all_delayed", "random seed=3 delay=1 ns=1")),
    back_end_name);

}  // namespace
}  // namespace espalier::conformance
