#include "collectives/simulation/testing/job_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace espalier::testing {
namespace {

JobCluster::Links links_between(const Programs& programs) {
  std::vector<const Program*> list;
  for (const Program& program : programs) list.push_back(&program);
  return sim::links_of(list);
}

}  // namespace

JobCluster::JobCluster(std::uint32_t ranks, const Options& options)
    : JobCluster(ranks, sim::complete_links(ranks), options) {}

JobCluster::JobCluster(const Programs& programs, const Options& options)
    : JobCluster(programs[0].ranks, links_between(programs), options) {}

JobCluster::JobCluster(std::uint32_t ranks, const Links& links, const Options& options)
    : options_(options), ranks_(ranks), nodes_(links.size()) {
  sim::Cluster::Options base = options;
  if (options.unwilling) {
    base.wrap = [this](std::uint32_t node, Endpoint& inner) -> Endpoint& {
      return *unwilling_.emplace_back(std::make_unique<UnwillingEndpoint>(inner, node + 1));
    };
  }
  cluster_ = std::make_unique<sim::Cluster>(sim::Network(options.model, links), base);
  for (std::uint32_t v = 0; v < nodes(); ++v) nodes_[v].machine = &cluster_->machine(v);
}

CollectiveParameters JobCluster::parameters_of(const Job& job, const BlockRule& blocks) const {
  CollectiveParameters parameters{
      .ranks = ranks(),
      .root = job.root,
      .window = job.window,
      .blocks = &blocks,
      .blocks_count = 1,
      .arity = options_.arity,
      .height = options_.height,
      .capacities = options_.capacities.empty() ? nullptr : options_.capacities.data(),
      .run_length = job.run_length,
      .send_ticks = job.send_ticks,
      .latency_ticks = job.latency_ticks};
  return parameters;
}

const Program& JobCluster::program(const Job& job, std::uint32_t node) {
  if (job.programs != nullptr) return (*job.programs)[node];
  std::string key = std::string(collective_name(job.collective)) + job.algorithm;
  for (const std::uint32_t number :
       {job.root, job.window, job.block_bytes, job.run_length, job.send_ticks, job.latency_ticks}) {
    key += " " + std::to_string(number);
  }
  Programs& programs = programs_[key];
  if (programs.empty()) {
    const Algorithm* algorithm = find_algorithm(job.collective, job.algorithm);
    EXPECT_NE(algorithm, nullptr) << describe(job, ranks());
    const BlockRule blocks = {0, job.block_bytes};
    programs = programs_of(*algorithm, parameters_of(job, blocks));
    EXPECT_EQ(programs.size(), nodes()) << describe(job, ranks());
    for (const Program& one : programs) {
      EXPECT_EQ(check_program(one), Status::kOk) << describe(job, ranks());
    }
  }
  return programs[node];
}

void JobCluster::give(std::uint32_t node, std::vector<Job> jobs) {
  Node& state = nodes_[node];
  state.jobs = std::move(jobs);
  state.done = 0;
}

void JobCluster::give_all(const std::vector<Job>& jobs) {
  for (std::uint32_t v = 0; v < nodes(); ++v) give(v, jobs);
}

void JobCluster::start_all(const Job& job) {
  give_all({job});
  for (std::uint32_t v = 0; v < nodes(); ++v) start(v);
}

sim::RunResult JobCluster::run_lock_step() {
  return cluster_->run_lock_step(std::max(1u, program(nodes_[0].job, 0).latency_ticks));
}

void JobCluster::start(std::uint32_t node) {
  Node& state = nodes_[node];
  state.job = state.jobs[state.done];
  const Job& job = state.job;
  const Program& own = program(job, node);
  ElementCounts counts = job.count;
  if (!job.counts.empty()) {
    state.offsets.resize(unequal_offsets(job.collective, ranks()));
    counts = {state.job.counts.data(), state.job.counts.size(), state.offsets.data()};
  }
  Layout layout;
  EXPECT_EQ(make_layout(own, counts, element_bytes(job.op), layout), Status::kOk)
      << describe(job, ranks());
  state.input = node < ranks() ? input_of(job, ranks(), node) : Bytes();
  state.memory.allocate(own, layout, job.in_place);
  EXPECT_EQ(state.memory.input().size(), state.input.size());
  std::copy(state.input.begin(), state.input.end(), state.memory.input().begin());
  state.status = cluster_->start(node, own, state.memory.buffers(), job.op, counts);
  state.running = state.status == Status::kOk;
}

std::string JobCluster::wrong(std::uint32_t node) const {
  const Node& state = nodes_[node];
  const std::string where = describe(state.job, ranks()) + " node " + std::to_string(node);
  const Bytes expected = node < ranks() ? output_of(state.job, ranks(), node) : Bytes();
  const auto input = state.memory.input(), output = state.memory.output();
  if (!std::equal(output.begin(), output.end(), expected.begin(), expected.end())) {
    return where + ": incorrect output";
  }
  if (!state.memory.guards_are_intact()) return where + ": wrote outside its buffers";
  // The part of the input that shares no memory with the output.
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::uint8_t* byte = &input[i];
    const bool shared = byte >= output.data() && byte < output.data() + output.size();
    if (!shared && *byte != state.input[i]) return where + ": touched its input";
  }
  return "";
}

bool JobCluster::all_right() const {
  for (std::uint32_t v = 0; v < nodes(); ++v) {
    if (!wrong(v).empty()) return false;
  }
  return true;
}

// Polls the node once and starts its next job. Returns whether it has more to do at once.
bool JobCluster::step(std::uint32_t node) {
  Node& state = nodes_[node];
  if (!state.running && state.status == Status::kOk && state.done < state.jobs.size()) start(node);
  const Status status = state.machine->poll();
  if (state.running && status != Status::kBusy) {
    state.running = false;
    state.status = status;
    state.ended_ns = network().now_ns();
    if (status == Status::kOk) {
      ++state.done;
      EXPECT_EQ(wrong(node), "");
      return state.done < state.jobs.size();
    }
  } else if (status != Status::kBusy && state.status == Status::kOk) {
    state.status = status;  // learned while idle
    if (status != Status::kOk) state.ended_ns = network().now_ns();
  }
  return state.machine->next_deadline() <= network().now_ns();
}

void JobCluster::drive(std::uint64_t until_ns, const Paused& paused) {
  for (;;) {
    bool more = false;
    bool over = network().now_ns() >= until_ns;
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      if (!network().alive(v)) continue;
      Node& state = nodes_[v];
      if (paused && paused(v)) {
        over = false;
        continue;
      }
      more = step(v) || more;
      // A machine is busy from the time it learns of a failure until it ends.
      const bool waits = state.running || state.machine->cause().status != state.status ||
                         (state.done < state.jobs.size() && state.status == Status::kOk);
      over = over && !waits;
      next = std::min(next, state.machine->next_deadline());
    }
    if (over) return;
    if (more) continue;
    if (until_ns > network().now_ns()) next = std::min(next, until_ns);
    // A stopped node must be resumed on time, even if no event happens then.
    if (paused) next = std::min(next, network().now_ns() + 10'000);
    const bool pending = [&] {
      for (std::uint32_t v = 0; v < nodes(); ++v) {
        if (network().alive(v) && network().pending(v) && !(paused && paused(v))) return true;
      }
      return false;
    }();
    if (pending) continue;
    if (!network().advance(next) && next == std::numeric_limits<std::uint64_t>::max()) {
      FAIL() << "nothing will ever happen";
    }
  }
}

}  // namespace espalier::testing
