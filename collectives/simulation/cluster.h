#pragma once
// A whole simulated cluster: one machine per node, all on one simulated network. Host only.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collectives/simulation/paged_machines.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/simulation/run.h"
#include "espalier/hal/sim/network.h"
#include "espalier/internal/base/assert.h"

namespace espalier::sim {

class Cluster {
 public:
  struct Options {
    MachineConfig config;  // of every machine, except its log
    // Returns the log of node's machine, or null. Null: no machine has a log.
    std::function<EventLog*(std::uint32_t node)> log;
    // Returns the endpoint that node's machine uses, which wraps `inner`. Null: `inner` itself.
    std::function<Endpoint&(std::uint32_t node, Endpoint& inner)> wrap;
  };
  // Every node has a Machine object of its own, which runs any number of collectives.
  Cluster(Network network, const Options& options);
  // For very many nodes, each of which runs one collective: they share `frames` Machine objects
  // (paged_machines.h). Program v of `programs` is for node v; `programs` must outlive the cluster.
  Cluster(Network network, const ProgramStore& programs, const Options& options,
          std::uint32_t frames = PagedMachines::kFrames);

  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] std::uint32_t nodes() const { return network_.nodes(); }
  // The reference is valid until the next call if machines share objects.
  [[nodiscard]] Machine& machine(std::uint32_t node) { return machines().at(node); }

  // Starts a collective on the node, as Machine::start(). Also returns the errors of
  // Machine::init(). If machines share objects, `program` must be program `node` of `programs`.
  [[nodiscard]] Status start(std::uint32_t node, const Program& program, const Buffers& buffers,
                             const Operator& op, ElementCounts counts);
  // Run the started collectives: run.h.
  [[nodiscard]] RunResult run(const Tick& tick = nullptr);
  [[nodiscard]] RunResult run_lock_step(std::uint32_t latency_ticks, const Tick& tick = nullptr);
  [[nodiscard]] std::int64_t first_to_end(std::uint64_t until_ns);

 private:
  class OwnMachines final : public Machines {
   public:
    explicit OwnMachines(std::uint32_t nodes) : machines_(nodes) {}
    [[nodiscard]] std::uint32_t size() const override {
      return static_cast<std::uint32_t>(machines_.size());
    }
    [[nodiscard]] bool has(std::uint32_t /*node*/) const override { return true; }
    [[nodiscard]] Machine& at(std::uint32_t node) override {
      ESPALIER_ASSERT(node < size());
      return machines_[node];
    }

   private:
    std::vector<Machine> machines_;
  };
  [[nodiscard]] Machines& machines();
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node);
  [[nodiscard]] MachineConfig config(std::uint32_t node) const;

  const Options options_;
  Network network_;
  // One of the two exists.
  std::unique_ptr<OwnMachines> own_;
  std::unique_ptr<PagedMachines> paged_;
  std::vector<Status> init_;  // the result of Machine::init(), of machines that have own objects
};

}  // namespace espalier::sim
