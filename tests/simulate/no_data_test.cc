// Simulation without data, on machines that share frames, against simulation with data, on machines
// of their own. Times, steps, loads of links and the log of every node must be the same. Every
// algorithm, routed and lowered onto the links, in lock step and asynchronously, with jitter and
// with both kinds of switching: these modes take turns from one schedule and N to the next, or all
// of them with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/schedule/program_store.h"
#include "collectives/simulation/address_range.h"
#include "collectives/simulation/cluster.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "espalier/topology/topology.h"
#include "planner/make/shape.h"
#include "tests/whole.h"

namespace espalier {
namespace {

constexpr BlockRule kBlocks = {0, 64};
constexpr std::uint32_t kLogRoom = 2048;

struct Schedule {
  std::string name;
  const topology::Topology& topology;
  Programs programs;
  std::uint32_t root = 0;
};

struct Mode {
  const char* name;
  bool lock_step;
  Switching switching;
  double jitter;
  std::uint64_t eager_bytes;
};
constexpr Mode kModes[] = {
    {"in lock step", true, Switching::kCutThrough, 0, 4096},
    {"in lock step, store and forward", true, Switching::kStoreAndForward, 0, 0},
    {"freely", false, Switching::kCutThrough, 0, 4096},
    {"freely, with jitter", false, Switching::kCutThrough, 1, 0},
    {"freely, with jitter, store and forward", false, Switching::kStoreAndForward, 1, 4096}};

// All that a run shows.
struct Seen {
  sim::RunResult result;
  std::vector<sim::LinkTraffic> traffic;
  sim::Contention contention;
  sim::Residence residence;
  std::vector<std::vector<std::uint8_t>> events;  // by node
  std::vector<std::vector<EventTimes>> times;
};

struct Logs {
  explicit Logs(std::size_t nodes)
      : events(nodes, std::vector<Event>(kLogRoom)),
        times(nodes, std::vector<EventTimes>(kLogRoom)) {
    for (std::size_t node = 0; node < nodes; ++node) {
      logs.emplace_back(events[node].data(), times[node].data(), kLogRoom);
    }
  }
  std::vector<std::vector<Event>> events;
  std::vector<std::vector<EventTimes>> times;
  std::vector<EventLog> logs;
};

void keep(Seen& seen, const sim::Network& network, const Logs& logs) {
  seen.traffic = network.traffic();
  seen.contention = network.contention();
  seen.residence = network.residence();
  for (std::size_t node = 0; node < logs.logs.size(); ++node) {
    const EventLog& log = logs.logs[node];
    ASSERT_EQ(log.lost(), 0u);
    std::vector<std::uint8_t> bytes(std::size_t{log.retired()} * kEventBytes);
    for (std::uint32_t i = 0; i < log.retired(); ++i) {
      event_bytes(log.event(i), bytes.data() + std::size_t{i} * kEventBytes);
    }
    seen.events.push_back(bytes);
    seen.times.emplace_back(logs.times[node].begin(), logs.times[node].begin() + log.retired());
  }
}

sim::Model model_of(const Schedule& schedule, const Mode& mode) {
  const topology::Topology& topology = schedule.topology;
  const Program& program = schedule.programs[0];
  sim::Model model = testing::model_for(program, [&topology](std::uint32_t from, std::uint32_t to) {
    return topology.capacity(from, to);
  });
  model.route = [&topology](std::uint32_t from, std::uint32_t to) {
    return topology.route(from, to);
  };
  model.send_ticks = program.send_ticks;
  model.switching = mode.switching;
  model.eager_bytes = mode.eager_bytes;
  model.jitter = model.link_jitter = mode.jitter;
  model.pace = mode.jitter * model.alpha;
  model.seed = 5;
  return model;
}

testing::Job job_of(const Schedule& schedule, std::uint64_t blocks) {
  return testing::sum_job(schedule.programs, schedule.root, blocks, blocks > 1 ? 3 : 0);
}

std::uint32_t latency_of(const Schedule& schedule) {
  return std::max(1u, schedule.programs[0].latency_ticks);
}

// With data, each node with a machine of its own; the results are checked.
Seen with_data(const Schedule& schedule, const Mode& mode, std::uint64_t blocks) {
  Logs logs(schedule.programs.size());
  testing::JobCluster::Options options;
  options.model = model_of(schedule, mode);
  options.log = [&](std::uint32_t node) { return &logs.logs[node]; };
  testing::JobCluster cluster(schedule.programs, options);
  cluster.start_all(job_of(schedule, blocks));
  Seen seen;
  if (mode.lock_step) {
    seen.result = cluster.run_lock_step();
  } else {
    cluster.network().begin_residence(latency_of(schedule));
    seen.result = cluster.run();
  }
  keep(seen, cluster.network(), logs);
  if (seen.result.status == Status::kOk) cluster.drive();
  return seen;
}

// Without data, all nodes in `frames` machines.
Seen without_data(const Schedule& schedule, const Mode& mode, std::uint64_t blocks,
                  std::uint32_t frames) {
  const auto nodes = static_cast<std::uint32_t>(schedule.programs.size());
  const testing::Job job = job_of(schedule, blocks);
  Logs logs(nodes);
  ProgramStore store;
  sim::LinkCollector links;
  std::uint64_t room = 0;
  Layout layout;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& program = schedule.programs[node];
    store.add(program);
    links.add(node, program);
    EXPECT_EQ(make_layout(program, job.count, element_bytes(job.op), layout), Status::kOk);
    room = std::max(room, sim::AddressRange::bytes_for(program, layout));
  }
  const sim::AddressRange addresses(room);
  sim::Cluster::Options options;
  options.config.no_data = true;
  sim::Model model = model_of(schedule, mode);
  model.poison = false;
  model.no_data = true;
  options.log = [&](std::uint32_t node) { return &logs.logs[node]; };
  sim::Cluster cluster(sim::Network(model, links.links(nodes)), store, options, frames);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& program = schedule.programs[node];
    EXPECT_EQ(cluster.start(node, program, addresses.buffers(program, layout), job.op, job.count),
              Status::kOk);
  }
  Seen seen;
  if (mode.lock_step) {
    seen.result = cluster.run_lock_step(latency_of(schedule));
  } else {
    cluster.network().begin_residence(latency_of(schedule));
    seen.result = cluster.run();
  }
  keep(seen, cluster.network(), logs);
  return seen;
}

void expect_same(const Seen& data, const Seen& none) {
  EXPECT_EQ(data.result.status, Status::kOk) << data.result.message;
  EXPECT_EQ(none.result.status, Status::kOk) << none.result.message;
  EXPECT_EQ(data.result.steps, none.result.steps);
  EXPECT_EQ(data.result.seconds, none.result.seconds);
  EXPECT_EQ(data.result.polls, none.result.polls);
  ASSERT_EQ(data.traffic.size(), none.traffic.size());
  for (std::size_t i = 0; i < data.traffic.size(); ++i) {
    const sim::LinkTraffic &a = data.traffic[i], &b = none.traffic[i];
    EXPECT_TRUE(a.from == b.from && a.to == b.to && a.lanes == b.lanes && a.blocks == b.blocks &&
                a.busy == b.busy && a.waits == b.waits && a.waited == b.waited)
        << a.from << " -> " << a.to;
  }
  EXPECT_EQ(data.contention.conflicts, none.contention.conflicts);
  EXPECT_EQ(data.contention.max_asked, none.contention.max_asked);
  EXPECT_EQ(data.contention.step, none.contention.step);
  EXPECT_EQ(data.residence.blocks, none.residence.blocks);
  EXPECT_EQ(data.events, none.events);
  ASSERT_EQ(data.times.size(), none.times.size());
  for (std::size_t node = 0; node < data.times.size(); ++node) {
    ASSERT_EQ(data.times[node].size(), none.times[node].size());
    for (std::size_t i = 0; i < data.times[node].size(); ++i) {
      const EventTimes &a = data.times[node][i], &b = none.times[node][i];
      EXPECT_TRUE(a.issued == b.issued && a.posted == b.posted && a.done == b.done &&
                  a.retired == b.retired)
          << "node " << node << ", record " << i;
    }
  }
}

void compare(const Schedule& schedule) {
  static std::uint64_t turn = 0;
  const bool pipelined = schedule.programs[0].blocks[0].block_bytes != 0;
  for (const std::uint64_t blocks : {1, 5}) {
    if (blocks > 1 && !pipelined) continue;
    ++turn;
    for (std::size_t i = 0; i < std::size(kModes); ++i) {
      if (!sampled(turn + i, std::size(kModes))) continue;
      const Mode& mode = kModes[i];
      SCOPED_TRACE(schedule.name + " " + mode.name + ", N = " + std::to_string(blocks));
      const Seen data = with_data(schedule, mode, blocks);
      expect_same(data, without_data(schedule, mode, blocks, 2));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

constexpr const char* kTopologies[] = {
    "complete:2",   "complete:7",          "complete:8",          "mesh:2x4",
    "mesh:3x3",     "fattree:k=2,h=2,c=1", "fattree:k=3,h=2,c=k", "fattree:k=2x3,c=1",
    "crossbar:2x4", "crossbar:2x2x2",      "hosts:2x3",           "hosts:3x3",
    "torus:2x3",    "dragonfly:2x2x1"};

class NoData : public ::testing::TestWithParam<const char*> {
 protected:
  // Each algorithm of the tables must have been compared on one of the topologies.
  static void TearDownTestSuite() {
    if (topologies < std::size(kTopologies)) return;  // a part was asked for
    for (const Algorithm& one : algorithms()) {
      EXPECT_EQ(compared.count(name(one.collective, one.name)), 1u)
          << name(one.collective, one.name);
    }
    for (const searched::SearchedAlgorithm& one : searched::searched_algorithms()) {
      EXPECT_EQ(compared.count(name(one.collective, one.name)), 1u)
          << name(one.collective, one.name);
    }
  }
  void SetUp() override {
    topology_ = or_throw(topology::parse(GetParam()));
    shape_ = topology_->shape();
    parameters_.ranks = topology_->ranks();
    parameters_.topology_digest = topology_->digest();
    parameters_.blocks = &kBlocks;
    parameters_.blocks_count = 1;
    set_shape(shape_, parameters_);
    ++topologies;
  }

  // Compares a schedule that the fabric routes; then also lowered onto the links.
  void compare_both(Schedule schedule) {
    compared.insert(schedule.name);
    schedule.name += std::string(" on ") + GetParam();
    compare(schedule);
    for (const PortModel ports : {PortModel::kMultiport, PortModel::kSingleSend}) {
      if (HasFailure() || schedule.programs.size() != topology_->ranks()) return;
      lower::Report report;
      auto lowered = lower::lower(*topology_, parameters_, ports, schedule.programs, report);
      if (!lowered) continue;
      compare({schedule.name + ", lowered", *topology_, *std::move(lowered), schedule.root});
    }
  }

  [[nodiscard]] static std::string name(Collective collective, const char* algorithm) {
    return std::string(collective_name(collective)) + " by " + algorithm;
  }

  static inline std::set<std::string> compared;
  static inline std::size_t topologies = 0;
  std::unique_ptr<topology::Topology> topology_;
  topology::Shape shape_;
  CollectiveParameters parameters_;
};

TEST_P(NoData, GivesTheSameTimesStepsLoadsAndEvents) {
  for (const Algorithm& one : algorithms()) {
    if (HasFailure()) return;
    if (!runs_on(one, parameters_)) continue;
    parameters_.send_ticks = one.takes_lambda ? 2 : 1;
    parameters_.latency_ticks = one.takes_lambda ? 3 : 1;
    parameters_.root = has_root(one.collective) ? parameters_.ranks - 1 : 0;
    Schedule schedule{name(one.collective, one.name), *topology_, Programs(), parameters_.root};
    const Status status = generate_all(one, parameters_, schedule.programs);
    if (status != Status::kOk) {  // not for this many ranks
      EXPECT_EQ(status, Status::kUnsupported) << schedule.name;
      continue;
    }
    compare_both(std::move(schedule));
  }
  parameters_.send_ticks = parameters_.latency_ticks = 1;
  for (const searched::SearchedAlgorithm& one : searched::searched_algorithms()) {
    if (HasFailure() || !one.applies(*topology_)) continue;
    parameters_.root = has_root(one.collective) ? parameters_.ranks - 1 : 0;
    auto found = one.search(*topology_, parameters_);
    if (!found) continue;
    compare_both({name(one.collective, one.name), *topology_, *std::move(found), parameters_.root});
  }
}

INSTANTIATE_TEST_SUITE_P(Topologies, NoData, ::testing::ValuesIn(kTopologies));

}  // namespace
}  // namespace espalier
