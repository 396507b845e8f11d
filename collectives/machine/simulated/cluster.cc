#include "collectives/machine/simulated/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace espalier::testing {

Cluster::Cluster(std::uint32_t ranks, const Options& options)
    : Cluster(ranks, sim::complete_links(ranks), options) {}

Cluster::Cluster(std::uint32_t ranks, const Links& links, const Options& options)
    : options_(options), ranks_(ranks), network_(options.model, links), nodes_(links.size()) {
  for (std::uint32_t v = 0; v < nodes(); ++v) {
    Node& node = nodes_[v];
    Endpoint* endpoint = &network_.endpoint(v);
    if (options.unwilling) {
      node.endpoint = std::make_unique<UnwillingEndpoint>(*endpoint, v + 1);
      endpoint = node.endpoint.get();
    }
    node.machine = std::make_unique<Machine>();
    MachineConfig config = options.config;
    if (options.logs != nullptr) config.log = &options.logs->at(v);
    EXPECT_EQ(node.machine->init(*endpoint, config), Status::kOk);
  }
}

std::vector<Machine*> Cluster::machines() {
  std::vector<Machine*> list;
  for (Node& node : nodes_) list.push_back(node.machine.get());
  return list;
}

Group Cluster::group_of(const Job& job, const BlockRule& blocks) const {
  Group group;
  group.ranks = ranks();
  group.root = job.root;
  group.window = job.window;
  group.blocks = &blocks;
  group.blocks_count = 1;
  group.arity = options_.arity;
  group.height = options_.height;
  group.capacities = options_.capacities.empty() ? nullptr : options_.capacities.data();
  group.run_length = job.run_length;
  group.send_ticks = job.send_ticks;
  group.latency_ticks = job.latency_ticks;
  return group;
}

const Program& Cluster::program(const Job& job, std::uint32_t node) {
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
    const Group group = group_of(job, blocks);
    EXPECT_EQ(algorithm_nodes(*algorithm, group), nodes()) << describe(job, ranks());
    programs.resize(nodes());
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      EXPECT_EQ(algorithm->generate(group, v, programs[v]), Status::kOk) << describe(job, ranks());
      EXPECT_EQ(check_program(programs[v]), Status::kOk) << describe(job, ranks());
    }
  }
  return programs[node];
}

void Cluster::give(std::uint32_t node, std::vector<Job> jobs) {
  Node& state = nodes_[node];
  state.jobs = std::move(jobs);
  state.done = 0;
}

void Cluster::give_all(const std::vector<Job>& jobs) {
  for (std::uint32_t v = 0; v < nodes(); ++v) give(v, jobs);
}

void Cluster::start_all() {
  for (std::uint32_t v = 0; v < nodes(); ++v) start(v);
}

namespace {

constexpr std::uint8_t kUntouched = 0xee;

}  // namespace

// Allocates memory for the node's buffers, and copies its input there.
void Cluster::lay_out(Node& node, const Program& program, const Layout& layout, bool in_place) {
  const Span in = buffer_span(program, layout, Buffer::kInput);
  const Span out = buffer_span(program, layout, Buffer::kOutput);
  EXPECT_EQ(in.bytes, node.input.size());
  EXPECT_EQ(out.bytes, node.output.size());
  const bool shared = in_place && in.bytes > 0 && out.bytes > 0;
  const std::uint64_t begin = std::min(in.offset, out.offset);
  const std::uint64_t end = std::max(in.offset + in.bytes, out.offset + out.bytes);
  node.memory[0].assign(shared ? end - begin : out.bytes, kUntouched);
  node.memory[1].assign(shared ? 0 : in.bytes, kUntouched);
  node.out = node.memory[0].data() + (shared ? out.offset - begin : 0);
  node.in = shared ? node.memory[0].data() + (in.offset - begin) : node.memory[1].data();
  std::copy(node.input.begin(), node.input.end(), node.in);
  if (in.bytes == 0) node.in = nullptr;
  if (out.bytes == 0) node.out = nullptr;
}

void Cluster::start(std::uint32_t node) {
  Node& state = nodes_[node];
  const Job& job = state.jobs[state.done];
  const Program& runs = program(job, node);
  Layout layout;
  EXPECT_EQ(make_layout(runs, job.count, element_bytes(job.op), layout), Status::kOk);
  const bool router = node >= ranks();
  state.input = router ? Bytes() : input_of(job, ranks(), node);
  state.output = router ? Bytes() : output_of(job, ranks(), node);
  lay_out(state, runs, layout, job.in_place);
  state.scratch.resize((scratch_needed(runs, layout) + 15) / 16);
  const Buffers buffers{state.in, state.out, state.scratch.data(), state.scratch.size() * 16};
  state.status = state.machine->start(runs, buffers, job.op, job.count);
  state.running = state.status == Status::kOk;
}

void Cluster::check(std::uint32_t node) {
  const Node& state = nodes_[node];
  const Job& job = state.jobs[state.done - 1];
  const std::string where = describe(job, ranks()) + " rank " + std::to_string(node);
  if (state.out != nullptr) {
    EXPECT_TRUE(std::equal(state.output.begin(), state.output.end(), state.out)) << where;
  }
  // The part of the input that shares no memory with the output.
  for (std::size_t i = 0; i < state.input.size(); ++i) {
    const std::uint8_t* byte = state.in + i;
    if (state.out != nullptr && byte >= state.out && byte < state.out + state.output.size())
      continue;
    if (*byte == state.input[i]) continue;
    ADD_FAILURE() << where << ": touched its input";
    return;
  }
}

// Polls the node once and starts its next job. Returns whether it has more to do at once.
bool Cluster::step(std::uint32_t node) {
  Node& state = nodes_[node];
  if (!state.running && state.status == Status::kOk && state.done < state.jobs.size()) start(node);
  const Status status = state.machine->poll();
  if (state.running && status != Status::kBusy) {
    state.running = false;
    state.status = status;
    state.ended_ns = network_.now_ns();
    if (status == Status::kOk) {
      ++state.done;
      check(node);
      return state.done < state.jobs.size();
    }
  } else if (status != Status::kBusy && state.status == Status::kOk) {
    state.status = status;  // learned while idle
    if (status != Status::kOk) state.ended_ns = network_.now_ns();
  }
  return state.machine->next_deadline() <= network_.now_ns();
}

void Cluster::drive(std::uint64_t until_ns, const Paused& paused) {
  for (;;) {
    bool more = false;
    bool over = network_.now_ns() >= until_ns;
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      if (!network_.alive(v)) continue;
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
    if (until_ns > network_.now_ns()) next = std::min(next, until_ns);
    // A stopped node must be resumed on time, even if no event happens then.
    if (paused) next = std::min(next, network_.now_ns() + 10'000);
    const bool pending = [&] {
      for (std::uint32_t v = 0; v < nodes(); ++v) {
        if (network_.alive(v) && network_.pending(v) && !(paused && paused(v))) return true;
      }
      return false;
    }();
    if (pending) continue;
    if (!network_.advance(next) && next == std::numeric_limits<std::uint64_t>::max()) {
      FAIL() << "nothing will ever happen";
    }
  }
}

}  // namespace espalier::testing
