#include "collectives/simulation/cluster.h"

#include <utility>

#include "espalier/internal/base/assert.h"

namespace espalier::sim {

Cluster::Cluster(Network network, const Options& options)
    : options_(options),
      network_(std::move(network)),
      own_(std::make_unique<OwnMachines>(network_.nodes())) {
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    init_.push_back(own_->at(node).init(endpoint(node), config(node)));
  }
  ESPALIER_ASSERT(init_.size() == nodes());
}

Cluster::Cluster(Network network, const ProgramStore& programs, const Options& options,
                 std::uint32_t frames)
    : options_(options),
      network_(std::move(network)),
      paged_(std::make_unique<PagedMachines>(network_.nodes(), programs, frames)) {}

Status Cluster::start(std::uint32_t node, const Program& program, const Buffers& buffers,
                      const Operator& op, ElementCounts counts) {
  ESPALIER_ASSERT(node < nodes() && (paged_ == nullptr) != (own_ == nullptr));
  if (paged_ != nullptr)
    return paged_->start(node, endpoint(node), config(node), buffers, op, counts);
  if (init_[node] != Status::kOk) return init_[node];
  return own_->at(node).start(program, buffers, op, counts);
}

RunResult Cluster::run(const Tick& tick) { return sim::run(network_, machines(), tick); }

RunResult Cluster::run_lock_step(std::uint32_t latency_ticks, const Tick& tick) {
  return sim::run_lock_step(network_, machines(), latency_ticks, tick);
}

std::int64_t Cluster::first_to_end(std::uint64_t until_ns) {
  return sim::first_to_end(network_, machines(), until_ns);
}

Machines& Cluster::machines() {
  if (paged_ != nullptr) return *paged_;
  return *own_;
}

Endpoint& Cluster::endpoint(std::uint32_t node) {
  ESPALIER_ASSERT(node < network_.nodes());
  Endpoint& inner = network_.endpoint(node);
  return options_.wrap ? options_.wrap(node, inner) : inner;
}

MachineConfig Cluster::config(std::uint32_t node) const {
  MachineConfig config = options_.config;
  if (options_.log) config.log = options_.log(node);
  return config;
}

}  // namespace espalier::sim
