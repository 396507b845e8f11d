// The event log's bytes depend on the program only, and not on the network's timing.

#include <gtest/gtest.h>

#include "collectives/algorithms/testing/parameters.h"
#include "collectives/simulation/testing/job_cluster.h"

namespace espalier::testing {
namespace {

constexpr std::uint32_t kRoom = 1000;

// The logs of a cluster's nodes.
struct Logs {
  explicit Logs(std::size_t nodes) : events(nodes * kRoom) {
    for (std::size_t v = 0; v < nodes; ++v) {
      logs.emplace_back(events.data() + v * kRoom, nullptr, kRoom);
    }
  }
  // The logs of all nodes, one after the other.
  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> all;
    for (const EventLog& log : logs) {
      EXPECT_EQ(log.lost(), 0u);
      for (std::uint32_t i = 0; i < log.retired(); ++i) {
        std::uint8_t bytes[kEventBytes];
        event_bytes(log.event(i), bytes);
        all.insert(all.end(), bytes, bytes + kEventBytes);
      }
    }
    return all;
  }
  std::vector<Event> events;
  std::vector<EventLog> logs;
};

Job job_of(const Programs& programs, const CollectiveParameters& parameters) {
  Job job{.collective = programs[0].collective,
          .programs = &programs,
          .root = parameters.root,
          .op = {.op = Op::kSum, .type = Type::kI32}};
  job.count = count_of_blocks(programs[0], job.op, 5);
  return job;
}

std::vector<std::uint8_t> in_lock_step(const Programs& programs, const Job& job) {
  Logs logs(programs.size());
  JobCluster::Options options;
  options.model = model_for(programs[0]);
  options.log = [&](std::uint32_t node) { return &logs.logs[node]; };
  JobCluster cluster(programs, options);
  cluster.start_all(job);
  EXPECT_EQ(cluster.run_lock_step().status, Status::kOk);
  return logs.bytes();
}

std::vector<std::uint8_t> freely(const Programs& programs, const Job& job, std::uint64_t seed) {
  Logs logs(programs.size());
  JobCluster::Options options;
  options.model = model_for(programs[0]);
  options.model.jitter = 5;
  options.model.seed = seed;
  options.model.eager_bytes = seed % 2 == 0 ? 0 : 4096;
  options.unwilling = true;
  if (programs[0].latency_ticks <= 1) options.config.window = seed % 3 + 1;
  options.log = [&](std::uint32_t node) { return &logs.logs[node]; };
  JobCluster cluster(programs, options);
  cluster.give_all({job});
  cluster.drive();
  return logs.bytes();
}

TEST(Events, AreTheSameInAnyOrderOfArrival) {
  std::size_t compared = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint32_t ranks : {2u, 9u}) {
      CollectiveParameters parameters{.ranks = ranks,
                                      .root = ranks / 2,
                                      .blocks = &kSmallBlocks,
                                      .blocks_count = 1,
                                      .run_length = 2};
      if (algorithm.where == Where::kFatTree) {
        parameters.arity = ranks == 2 ? 2 : 3;
        parameters.height = ranks == 2 ? 1 : 2;
      }
      if (algorithm.where == Where::kHosts) {
        parameters.hosts = ranks == 2 ? 2 : 3;
        parameters.host_ranks = ranks == 2 ? 1 : 3;
      }
      const std::uint32_t sizes[] = {ranks == 2 ? 2u : 3u, ranks == 2 ? 1u : 3u};
      if (algorithm.where == Where::kGrid || algorithm.where == Where::kTorus) {
        parameters.grid = sizes;
        parameters.dimensions = 2;
        parameters.wraps = true;
      }
      const Programs programs = programs_of(algorithm, parameters);
      if (programs.empty()) continue;
      const Job job = job_of(programs, parameters);
      const std::vector<std::uint8_t> bytes = in_lock_step(programs, job);
      EXPECT_FALSE(bytes.empty()) << algorithm.name;
      for (const std::uint64_t seed : {1u, 2u, 3u}) {
        EXPECT_EQ(freely(programs, job, seed), bytes)
            << collective_name(algorithm.collective) << " " << algorithm.name << " p " << ranks;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 40u);
}

}  // namespace
}  // namespace espalier::testing
