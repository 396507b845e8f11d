#pragma once
// Machines on a simulated network. Each executes its own list of jobs; the results are compared
// with a plain reference.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/machine/simulated/reference.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/simulation/run.h"
#include "espalier/hal/sim/network.h"

namespace espalier::testing {

// Wraps an endpoint: refuses posts and delays completions at random, from a seed.
class UnwillingEndpoint final : public Endpoint {
 public:
  UnwillingEndpoint(Endpoint& inner, unsigned seed) : inner_(inner), random_(seed) {}
  [[nodiscard]] std::uint32_t node() const override { return inner_.node(); }
  [[nodiscard]] std::uint32_t links() const override { return inner_.links(); }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return inner_.peer(link); }
  [[nodiscard]] std::uint32_t window() const override { return inner_.window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return inner_.eager_bytes(); }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    return inner_.prepare(regions, count);
  }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return refuse() ? Status::kTryAgain : inner_.post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return refuse() ? Status::kTryAgain : inner_.post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return refuse() ? Status::kTryAgain : inner_.post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override {
    return !refuse() && inner_.poll(completion);
  }
  void release() override { inner_.release(); }
  [[nodiscard]] std::uint64_t now() override { return inner_.now(); }
  void wait(std::uint64_t until) override { inner_.wait(until); }

 private:
  [[nodiscard]] bool refuse() { return random_() % 4 == 0; }
  Endpoint& inner_;
  std::minstd_rand random_;
};

class Cluster {
 public:
  struct Options {
    sim::Model model;
    MachineConfig config;
    bool unwilling = false;
    std::vector<EventLog>* logs = nullptr;  // one per node; null: none
    std::uint32_t arity = 0, height = 0;    // of a fat tree, for jobs whose algorithm needs one
    std::vector<std::uint32_t> capacities;
  };
  using Links = std::vector<std::vector<std::uint32_t>>;  // by node, in the form of sim::Network

  // Every rank has a link to every other (up to kMaxLinks + 1 ranks).
  Cluster(std::uint32_t ranks, const Options& options);
  // Nodes with these links: first `ranks` ranks, then routers.
  Cluster(std::uint32_t ranks, const Links& links, const Options& options);

  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] Machine& machine(std::uint32_t node) { return *nodes_[node].machine; }
  [[nodiscard]] std::vector<Machine*> machines();
  [[nodiscard]] sim::Network& network() { return network_; }

  // Sets the node's jobs, which start one after the other without a pause.
  void give(std::uint32_t node, std::vector<Job> jobs);
  void give_all(const std::vector<Job>& jobs);
  // Starts the first job of every node. For runners other than drive().
  void start_all();
  // Runs until every live node has done its jobs or failed, and `until_ns` has passed. Nodes for
  // which `paused` returns true are not polled.
  using Paused = std::function<bool(std::uint32_t node)>;
  void drive(std::uint64_t until_ns = 0, const Paused& paused = nullptr);

  // Checks the memory of the node's last job: a gtest failure if it is incorrect.
  void check(std::uint32_t node);
  [[nodiscard]] std::size_t done(std::uint32_t node) const { return nodes_[node].done; }
  [[nodiscard]] Status status(std::uint32_t node) const { return nodes_[node].status; }
  [[nodiscard]] std::uint64_t ended_ns(std::uint32_t node) const { return nodes_[node].ended_ns; }

 private:
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  struct Node {
    std::unique_ptr<UnwillingEndpoint> endpoint;
    std::unique_ptr<Machine> machine;
    std::vector<Job> jobs;
    std::size_t done = 0;
    Status status = Status::kOk;
    std::uint64_t ended_ns = 0;  // the time at which it had done its last job, or failed
    bool running = false;
    Bytes input, output;         // its input, and the expected output
    std::uint8_t* in = nullptr;  // addresses of the buffers; null if there is none
    std::uint8_t* out = nullptr;
    Bytes memory[2];  // one block of memory if in place
    std::vector<Line> scratch;
  };
  [[nodiscard]] Group group_of(const Job& job, const BlockRule& blocks) const;
  const Program& program(const Job& job, std::uint32_t node);
  void lay_out(Node& node, const Program& program, const Layout& layout, bool in_place);
  void start(std::uint32_t node);
  bool step(std::uint32_t node);

  Options options_;
  std::uint32_t ranks_;
  sim::Network network_;
  std::vector<Node> nodes_;
  std::map<std::string, Programs> programs_;
};

// Returns the links that the programs name.
[[nodiscard]] Cluster::Links links_between(const Programs& programs);

// Returns the simulator's model for a program's port model: one port per node, or one per link and
// lane. lanes(from, to) is the number of lanes of a link; null: 1.
[[nodiscard]] sim::Model model_for(
    const Program& program,
    const std::function<std::uint32_t(std::uint32_t, std::uint32_t)>& lanes = nullptr);

// Returns the count for which the message has `blocks` blocks per segment, the last of them
// `missing` elements shorter. The program must have one block rule. For block_bytes = 0 (one
// block): 16 elements.
[[nodiscard]] std::uint64_t count_of_blocks(const Program& program, const Operator& op,
                                            std::uint64_t blocks, std::uint64_t missing = 0);

// Returns a job that sums i32 values (a barrier: no values) with these programs, in that many
// blocks.
[[nodiscard]] Job sum_job(const Programs& programs, std::uint32_t root, std::uint64_t blocks,
                          std::uint64_t missing);

// Executes one collective of these programs in lock step and checks every result; a gtest failure
// if one is incorrect. programs[v] is for node v: ranks, then routers. Links are those that the
// programs name. `job` gives count, operator, root and seed; its collective and programs are set
// here. The result's `steps` are the steps in which something moved.
sim::RunResult run_in_lock_step(const Programs& programs, Job job, const sim::Model& model);
// The same asynchronously, with jitter, unwilling endpoints and window from `options`, `times`
// times back to back.
void run_freely(const Programs& programs, Job job, const Cluster::Options& options,
                std::uint32_t times = 2);

}  // namespace espalier::testing
