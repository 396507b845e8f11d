#pragma once
// Machines on a simulated network, each running its own list of jobs, against a plain reference.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/machine/machine.h"
#include "hal/sim/sim.h"

namespace espalier::testing {

// One collective as all ranks run it.
struct Job {
  Collective collective = espalier_Collective_BROADCAST;
  const char* algorithm = "chain";
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  Operator op;
  std::uint32_t window = 8;        // of the schedule
  std::uint32_t block_bytes = 64;  // 0: one block
  bool in_place = false;
  unsigned seed = 1;
};
[[nodiscard]] std::string describe(const Job& job, std::uint32_t ranks);

using Bytes = std::vector<std::uint8_t>;
// Rank's contribution: values with which the operator is exact in any order.
[[nodiscard]] Bytes contribution(const Job& job, std::uint32_t rank);
// The reduction of all contributions in rank order (broadcast: the root's).
[[nodiscard]] Bytes reference(const Job& job, std::uint32_t ranks);

// Wraps an endpoint: refuses posts and holds completions back, from a seed.
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
  };
  Cluster(std::uint32_t ranks, const Options& options);

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] Machine& machine(std::uint32_t node) { return *nodes_[node].machine; }
  [[nodiscard]] sim::Network& network() { return network_; }

  // Gives the node its jobs; they are started one after the other without a pause.
  void give(std::uint32_t node, std::vector<Job> jobs);
  void give_all(const std::vector<Job>& jobs);
  // Starts the first job of every node, for runners other than drive().
  void start_all();
  // Runs until every live node has done its jobs or failed, and until `until_ns` passed. Nodes for
  // which `paused` says so are not polled.
  using Paused = std::function<bool(std::uint32_t node)>;
  void drive(std::uint64_t until_ns = 0, const Paused& paused = nullptr);

  // What the last job's memory of the node holds: gtest failures where it is wrong.
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
    std::uint64_t ended_ns = 0;  // when it had done its last job, or failed
    bool running = false;
    Bytes input, output;
    std::vector<Line> scratch;
  };
  const Program& program(const Job& job, std::uint32_t node);
  void start(std::uint32_t node);
  bool step(std::uint32_t node);

  sim::Network network_;
  std::vector<Node> nodes_;
  std::map<std::string, std::vector<Program>> programs_;
};

}  // namespace espalier::testing
