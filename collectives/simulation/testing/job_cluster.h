#pragma once
// A simulated cluster whose nodes execute lists of jobs; the results are compared with a plain
// reference.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/simulation/cluster.h"
#include "collectives/simulation/node_memory.h"
#include "collectives/simulation/testing/reference.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "hal/forwarding_endpoint.h"

namespace espalier::testing {

// Wraps an endpoint, which must outlive it: refuses posts and delays completions at random, from a
// seed.
class UnwillingEndpoint final : public ForwardingEndpoint {
 public:
  UnwillingEndpoint(Endpoint& inner, unsigned seed) : ForwardingEndpoint(inner), random_(seed) {}
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return refuse() ? Status::kTryAgain : inner_->post_receive(link, post);
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return refuse() ? Status::kTryAgain : inner_->post_send(link, post);
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    return refuse() ? Status::kTryAgain : inner_->post_control(link, control);
  }
  [[nodiscard]] bool poll(Completion& completion) override {
    return !refuse() && inner_->poll(completion);
  }

 private:
  [[nodiscard]] bool refuse() { return random_() % 4 == 0; }
  std::minstd_rand random_;
};

class JobCluster {
 public:
  struct Options : sim::Cluster::Options {
    sim::Model model;
    bool unwilling = false;  // UnwillingEndpoint around every endpoint; excludes `wrap`
    std::uint32_t arity = 0, height = 0;  // of a fat tree, for jobs whose algorithm needs one
    std::vector<std::uint32_t> capacities;
  };

  using Links = std::vector<std::vector<std::uint32_t>>;  // by node, in the form of sim::Network

  // Every rank has a link to every other (up to kMaxLinks + 1 ranks).
  JobCluster(std::uint32_t ranks, const Options& options);
  // Nodes with these links: first `ranks` ranks, then routers.
  JobCluster(std::uint32_t ranks, const Links& links, const Options& options);
  // Nodes with the links that the programs name.
  JobCluster(const Programs& programs, const Options& options);
  JobCluster(const JobCluster&) = delete;
  JobCluster& operator=(const JobCluster&) = delete;

  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] Machine& machine(std::uint32_t node) { return *nodes_[node].machine; }
  [[nodiscard]] sim::Network& network() { return cluster_->network(); }

  // Sets the node's jobs, which start one after the other without a pause.
  void give(std::uint32_t node, std::vector<Job> jobs);
  void give_all(const std::vector<Job>& jobs);
  // Gives every node this one job and starts it, for run() and run_lock_step(). drive() starts jobs
  // itself.
  void start_all(const Job& job);

  // Run the started jobs: run.h.
  sim::RunResult run() { return cluster_->run(); }
  sim::RunResult run_lock_step();
  // Runs until every live node has done its jobs or failed, and `until_ns` has passed. Nodes for
  // which `paused` returns true are not polled.
  using Paused = std::function<bool(std::uint32_t node)>;
  void drive(std::uint64_t until_ns = 0, const Paused& paused = nullptr);

  // Returns the first error in the memory of the node's last started job; empty if there is none.
  [[nodiscard]] std::string wrong(std::uint32_t node) const;
  [[nodiscard]] bool all_right() const;
  [[nodiscard]] std::size_t done(std::uint32_t node) const { return nodes_[node].done; }
  [[nodiscard]] Status status(std::uint32_t node) const { return nodes_[node].status; }
  [[nodiscard]] std::uint64_t ended_ns(std::uint32_t node) const { return nodes_[node].ended_ns; }

 private:
  struct Node {
    Machine* machine = nullptr;
    std::vector<Job> jobs;
    std::size_t done = 0;
    Status status = Status::kOk;
    std::uint64_t ended_ns = 0;  // the time at which it had done its last job, or failed
    bool running = false;
    Job job;                             // the last started one
    Bytes input;                         // its input
    std::vector<std::uint64_t> offsets;  // of its unequal counts
    sim::NodeMemory memory;
  };
  [[nodiscard]] CollectiveParameters parameters_of(const Job& job, const BlockRule& blocks) const;
  const Program& program(const Job& job, std::uint32_t node);
  void start(std::uint32_t node);
  bool step(std::uint32_t node);

  Options options_;
  std::uint32_t ranks_;
  std::vector<std::unique_ptr<UnwillingEndpoint>> unwilling_;
  std::unique_ptr<sim::Cluster> cluster_;
  std::vector<Node> nodes_;
  std::map<std::string, Programs> programs_;
};

// Returns the programs of all nodes; none if the algorithm does not support the parameters.
[[nodiscard]] Programs programs_of(const Algorithm& algorithm,
                                   const CollectiveParameters& parameters);

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

// Return a job that sums i32 values (a barrier: no values) with these programs: `count` elements,
// or that many blocks.
[[nodiscard]] Job sum_job(const Programs& programs, std::uint32_t root, std::uint64_t count);
[[nodiscard]] Job sum_job(const Programs& programs, std::uint32_t root, std::uint64_t blocks,
                          std::uint64_t missing);

// Executes one collective of these programs in lock step and checks every result; a gtest failure
// if one is incorrect. programs[v] is for node v: ranks, then routers. Links are those that the
// programs name. `job` gives count, operator, root and seed; its collective and programs are set
// here. The result's `steps` are the steps in which something moved.
sim::RunResult run_in_lock_step(const Programs& programs, Job job, const sim::Model& model);
// The same asynchronously, with jitter, unwilling endpoints and window from `options`, `times`
// times back to back.
void run_freely(const Programs& programs, Job job, const JobCluster::Options& options,
                std::uint32_t times = 2);

}  // namespace espalier::testing
