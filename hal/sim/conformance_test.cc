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

BackEnd back_end(const char* name, bool one_port, bool eager_copies, double jitter) {
  return {name, [=](const ClusterSpec& spec) {
            sim::Model model;
            model.one_port = one_port;
            model.eager_copies = eager_copies;
            model.jitter = jitter;
            model.window = spec.window;
            model.eager_bytes = spec.eager_bytes;
            return std::make_unique<SimCluster>(model, spec);
          }};
}

INSTANTIATE_TEST_SUITE_P(Sim, ConformanceTest,
                         testing::Values(back_end("one_port", true, true, 0),
                                         back_end("one_port_jitter", true, true, 3),
                                         back_end("one_port_no_copies", true, false, 1),
                                         back_end("all_ports", false, true, 0),
                                         back_end("all_ports_no_copies", false, false, 1)),
                         back_end_name);

}  // namespace
}  // namespace espalier::conformance
