#include "hal/conformance/conformance.h"
#include "hal/sim/sim.h"

namespace espalier::conformance {
namespace {

class SimCluster final : public Cluster {
 public:
  SimCluster(const sim::Model& model, const ClusterSpec& spec) : network_(model, spec.peers) {}
  Endpoint& endpoint(std::uint32_t node) override { return network_.endpoint(node); }
  bool progress() override { return network_.advance(UINT64_MAX); }

 private:
  sim::Network network_;
};

BackEnd back_end(const char* name, bool one_port, double jitter) {
  return {name, [=](const ClusterSpec& spec) {
            sim::Model model;
            model.one_port = one_port;
            model.jitter = jitter;
            model.window = spec.window;
            model.eager_bytes = spec.eager_bytes;
            return std::make_unique<SimCluster>(model, spec);
          }};
}

INSTANTIATE_TEST_SUITE_P(Sim, ConformanceTest,
                         testing::Values(back_end("one_port", true, 0),
                                         back_end("one_port_jitter", true, 3),
                                         back_end("all_ports", false, 0),
                                         back_end("all_ports_jitter", false, 3)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
