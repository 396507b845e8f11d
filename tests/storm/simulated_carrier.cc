#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/hal/sim/network.h"
#include "tests/storm/carrier.h"

namespace espalier::storm {
namespace {

class SimulatedCarrier final : public Carrier {
 public:
  SimulatedCarrier(const sim::Model& model, const Schedule& schedule)
      : network_(model, schedule.peers) {}
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override { return network_.endpoint(node); }
  [[nodiscard]] std::uint64_t now_ns() override { return network_.now_ns(); }
  bool advance(std::uint64_t until_ns) override { return network_.advance(until_ns); }
  [[nodiscard]] bool ready(std::uint32_t node) override { return network_.pending(node); }
  void kill(std::uint32_t node) override { network_.kill(node); }

 private:
  sim::Network network_;
};

}  // namespace

std::unique_ptr<Carrier> simulated_carrier(const Plan& plan, const Schedule& schedule) {
  sim::Model model = testing::model_for(schedule.programs[0]);
  model.window = plan.endpoint_window;
  model.eager_bytes = plan.eager_bytes;
  model.eager_copies = plan.eager_copies;
  model.poison = plan.poison;
  model.jitter = plan.jitter / 100.0;
  model.link_jitter = plan.link_jitter / 100.0;
  model.seed = plan.seed;
  const topology::Topology& topology = *schedule.topology;
  if (!model.one_port) {
    model.lanes = [&topology](std::uint32_t from, std::uint32_t to) {
      return std::max(1u, topology.capacity(from, to));
    };
  }
  return std::make_unique<SimulatedCarrier>(model, schedule);
}

}  // namespace espalier::storm
