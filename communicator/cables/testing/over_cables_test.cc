// Communicators over cables: collectives of every kind on every shape are right, and no link is
// added that no cable has. A sample; ESPALIER_WHOLE=1: all shapes, more collectives.

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "communicator/cables/testing/cabled_job.h"
#include "communicator/job_part.h"
#include "communicator/schedules.h"
#include "communicator/testing/local_job.h"
#include "communicator/testing/random_call.h"
#include "espalier/communicator.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using namespace communicator::testing;
using communicator::ScheduleRequest;
using communicator::Schedules;

// Runs random collectives; every result is compared with the reference.
void run_random(Communicator& communicator, std::uint64_t seed, std::uint64_t calls) {
  for (std::uint64_t number = 0; number < calls; ++number) {
    RandomCall random(seed, number, communicator.size(), communicator.rank());
    const auto done = communicator.run(random.call());
    const std::string wrong = done ? random.check() : done.error().message;
    if (wrong.empty()) continue;
    // The others would wait for what this rank does not start.
    std::fprintf(stderr, "%s: %s\n", random.text().c_str(), wrong.c_str());
    std::abort();
  }
}

void check_shape(const CabledShape& shape, std::uint32_t of_host, std::uint64_t calls) {
  const auto graph = cabled_graph(shape, of_host, of_host > 1);
  on_all(
      shape.hosts * of_host,
      [&](Communicator& world) { run_random(world, 31 * shape.hosts + of_host, calls); },
      over_cables(graph));
}

std::uint64_t calls() { return whole() ? 300 : small_sample() ? 12 : 24; }

TEST(OverCables, EveryCollectiveOnSmallShapes) {
  for (const char* const name : {"triangle", "line4", "star5"}) {
    check_shape(cabled_shape(name), 1, calls());
  }
}

TEST(OverCables, TwoRanksPerHost) { check_shape(cabled_shape("ring4"), 2, calls()); }

TEST(OverCables, EveryShape) {
  if (!whole()) GTEST_SKIP() << "ESPALIER_WHOLE=1 only";
  for (const CabledShape& shape : cabled_shapes()) {
    for (const std::uint32_t of_host : {1U, 2U}) {
      if (shape.hosts * of_host <= 16) check_shape(shape, of_host, calls());
    }
  }
}

// The message may be as long as several blocks of the longest schedule.
TEST(OverCables, LongMessages) {
  on_all(
      4,
      [](Communicator& world) {
        std::vector<std::int64_t> values(1 << 20);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<std::int64_t>(i * (world.rank() + 1));
        }
        ASSERT_TRUE(world.allreduce(values, Op::kSum));
        for (std::size_t i = 0; i < values.size(); i += 997) {
          ASSERT_EQ(values[i], static_cast<std::int64_t>(10 * i));
        }
      },
      over_cables(cabled_graph(cabled_shape("four-less-one"), 1)));
}

// A cancel on one rank ends all ranks at once, though few of them are neighbours.
TEST(OverCables, ACancelReachesAllAtOnce) {
  for (const char* const name : {"line4", "star5", "mesh3x3"}) {
    const CabledShape& shape = cabled_shape(name);
    constexpr std::chrono::seconds kDeadline(400);
    std::atomic<int> late = 0;
    std::barrier joined(shape.hosts);  // a cancel may end the join() of others
    on_all(
        shape.hosts,
        [&](Communicator& world) {
          joined.arrive_and_wait();
          if (world.rank() == shape.hosts - 1) {
            ASSERT_TRUE(world.cancel("enough"));
          }
          const auto start = std::chrono::steady_clock::now();
          const auto ended = world.barrier();
          ASSERT_FALSE(ended);
          EXPECT_NE(ended.error().message.find("enough"), std::string::npos)
              << ended.error().message;
          // Unless the machines count who knows it, the end is a quarter of the deadline later.
          if (std::chrono::steady_clock::now() - start > kDeadline / 4) ++late;
        },
        [&, cabled = over_cables(cabled_graph(shape, 1))](JoinOptions& options,
                                                          std::uint32_t rank) {
          cabled(options, rank);
          options.deadline = kDeadline;
        });
    EXPECT_EQ(late, 0) << name;
  }
}

// Ranks that call different collectives all learn both calls.
TEST(OverCables, AMismatchIsToldToAll) {
  on_all(
      4,
      [](Communicator& world) {
        std::vector<std::int64_t> values(world.rank() == 3 ? 5 : 4);
        const auto done = world.allreduce(values, Op::kSum);
        ASSERT_FALSE(done);
        EXPECT_NE(done.error().message.find("count"), std::string::npos) << done.error().message;
      },
      over_cables(cabled_graph(cabled_shape("line4"), 1)));
}

TEST(OverCables, PartsThatCablesConnect) {
  const auto graph = cabled_graph(cabled_shape("line4"), 2);
  on_all(
      8,
      [](Communicator& world) {
        const std::uint32_t rank = world.rank();
        auto host = or_throw(world.split(rank / 2));
        run_random(*host, rank / 2, 5);
        // Every host has a rank in each, so both have all cables.
        auto column = or_throw(world.split(rank % 2, -static_cast<std::int64_t>(rank)));
        ASSERT_EQ(column->rank(), 3 - rank / 2);
        run_random(*column, 100 + rank % 2, 10);
        auto half = or_throw(column->split(column->rank() / 2));
        run_random(*half, 200 + 2 * (rank % 2) + column->rank() / 2, 5);
      },
      over_cables(graph));
}

TEST(OverCables, PartsThatNoCablesConnectAreRefusedOnAllTheirRanks) {
  on_all(
      4,
      [](Communicator& world) {
        const auto part = world.split(world.rank() == 1 ? 1 : 0);
        if (world.rank() == 1) {
          ASSERT_TRUE(part) << part.error().message;
        } else {
          ASSERT_FALSE(part);
          EXPECT_EQ(part.error().message,
                    "split: no cables connect ranks 0 and 2 (hosts 'box0' and 'box2'); expected "
                    "ranks that cables connect without ranks of other groups");
        }
        EXPECT_TRUE(world.barrier());
      },
      over_cables(cabled_graph(cabled_shape("line4"), 1)));
}

// After a rank has died, all others know the cause, and plan for the cables that are left.
TEST(OverCables, SurvivorsRunOverTheRest) {
  LocalJob job(4);
  std::vector<Communicator> stopped;  // of rank 1
  on_all(
      job,
      [&](Communicator& world) {
        if (world.rank() == 1) {
          job.end(1);
          communicator::JobPart::silence(world);  // its endpoint stays open
          stopped.push_back(std::move(world));
          return;
        }
        const auto failed = world.barrier();
        ASSERT_FALSE(failed);
        EXPECT_EQ(world.cause().status, Status::kDeadLink) << failed.error().message;
        EXPECT_EQ(world.cause().peer, 1u);
        auto rest = or_throw(world.rejoin());
        ASSERT_EQ(rest.size(), 3u);
        run_random(rest, 5, 10);
      },
      [&, cabled = over_cables(cabled_graph(cabled_shape("ring4"), 1))](JoinOptions& options,
                                                                        std::uint32_t rank) {
        cabled(options, rank);
        options.deadline = std::chrono::seconds(2);
      });
}

// The schedules are those of the graph, proven with its links; for all calls there are some.
TEST(OverCables, EveryCallHasASchedule) {
  for (const CabledShape& shape : cabled_shapes()) {
    if (shape.hosts > 5 && !whole()) continue;
    const auto graph = rank_graph(*cabled_graph(shape, 1));
    const auto schedules = or_throw(Schedules::make(1, shape.hosts, {}, {.graph = graph}));
    for (const Collective collective : kAllCollectives) {
      for (std::uint32_t root = 0; root < (has_root(collective) ? shape.hosts : 1); ++root) {
        for (const bool commutes : {true, false}) {
          for (const bool unequal : {true, false}) {
            if (unequal && !counts_per_rank(collective)) continue;
            if (unequal && collective == Collective::kAllToAll && !schedules->is_direct()) continue;
            for (const std::uint64_t bytes : {8u, 4u << 20}) {
              const ScheduleRequest request = {.collective = collective,
                                               .root = root,
                                               .bytes = bytes,
                                               .commutes = commutes,
                                               .unequal_counts = unequal};
              const auto planned = schedules->obtain(request);
              ASSERT_TRUE(planned) << shape.name << ": " << planned.error().message;
              EXPECT_EQ(schedules->find(request), *planned);
              const Program& program = (*planned)->program;
              for (std::uint32_t i = 0; i < links_count(program); ++i) {
                EXPECT_TRUE(graph->has_link(1, peer_of(program, i)))
                    << shape.name << ": " << (*planned)->algorithm;
              }
            }
          }
        }
      }
    }
  }
}

// On the triangle the predictions of packed trees are within 5 % of the best: both ways at once.
TEST(OverCables, LongMessagesOnTheTriangleTakeBothWays) {
  const auto graph = rank_graph(*cabled_graph(cabled_shape("triangle"), 1));
  const auto schedules = or_throw(Schedules::make(0, 3, {}, {.graph = graph}));
  for (const Collective::Value collective :
       {Collective::kBroadcast, Collective::kReduce, Collective::kAllreduce}) {
    EXPECT_EQ(or_throw(schedules->obtain({.collective = collective, .bytes = 8u << 20}))->algorithm,
              "packed-trees");
  }
}

// Each rank would have to know the counts of others that it forwards.
TEST(OverCables, OwnCountsNeedACableBetweenAnyTwo) {
  const ScheduleRequest request = {
      .collective = Collective::kAllToAll, .unequal_counts = true, .own_counts = true};
  const auto made = [](const char* name, std::uint32_t ranks) {
    const auto graph = rank_graph(*cabled_graph(cabled_shape(name), 1));
    return or_throw(Schedules::make(0, ranks, {}, {.graph = graph}));
  };
  EXPECT_EQ(message_of(made("triangle", 3)->obtain(request)), "");
  EXPECT_EQ(message_of(made("ring4", 4)->obtain(request)),
            "the ranks that pass parts on would have to know all counts, and cables do not join "
            "all ranks to each other");
}

}  // namespace
}  // namespace espalier
