#include "hal/conformance/conformance.h"

#include "espalier/hal/sim/network.h"

namespace espalier::conformance {
namespace {

class SimEndpoints final : public ConnectedEndpoints {
 public:
  SimEndpoints(const sim::Model& model, const EndpointsSpec& spec) : network_(model, spec.peers) {}
  Endpoint& endpoint(std::uint32_t node) override { return network_.endpoint(node); }
  bool progress() override { return network_.advance(UINT64_MAX); }

 private:
  sim::Network network_;
};

BackEnd back_end(const char* name, bool one_port, bool eager_copies, double jitter) {
  return {name, [=](const EndpointsSpec& spec) {
            return std::make_unique<SimEndpoints>(sim::Model{.one_port = one_port,
                                                             .window = spec.window,
                                                             .eager_bytes = spec.eager_bytes,
                                                             .eager_copies = eager_copies,
                                                             .jitter = jitter},
                                                  spec);
          }};
}

// All blocks between peers are routed along a line of the nodes.
BackEnd routed(const char* name, Switching switching, bool one_port) {
  return {name, [=](const EndpointsSpec& spec) {
            sim::Model model{.one_port = one_port,
                             .switching = switching,
                             .window = spec.window,
                             .eager_bytes = spec.eager_bytes,
                             .jitter = 1,
                             .link_jitter = 1};
            model.route = [](std::uint32_t from, std::uint32_t to) {
              std::vector<std::uint32_t> nodes = {from};
              while (nodes.back() != to) nodes.push_back(nodes.back() + (from < to ? 1 : -1));
              return nodes;
            };
            return std::make_unique<SimEndpoints>(model, spec);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Sim, ConformanceTest,
    testing::Values(back_end("one_port", true, true, 0), back_end("one_port_jitter", true, true, 3),
                    back_end("one_port_no_copies", true, false, 1),
                    back_end("all_ports", false, true, 0),
                    back_end("all_ports_no_copies", false, false, 1),
                    routed("cut_through", Switching::kCutThrough, true),
                    routed("store_and_forward", Switching::kStoreAndForward, false)),
    back_end_name);

}  // namespace
}  // namespace espalier::conformance
