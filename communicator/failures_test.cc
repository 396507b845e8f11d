// Failures of a running communicator: calls that differ between ranks, ranks that die, and rejoins.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "base/testing/results.h"
#include "communicator/testing/local_job.h"
#include "espalier/bootstrap/server.h"
#include "espalier/communicator.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier {
namespace {

using communicator::testing::LocalJob;
using communicator::testing::on_all;
using communicator::testing::options_of;

std::string message(const Result<void>& result) { return result ? "" : result.error().message; }

using Vector = std::vector<std::int64_t>;
using Out = std::span<std::int64_t>;

// Runs other calls on one rank of four than on the others. Returns the messages of all ranks.
std::vector<std::string> mismatch(std::uint32_t other, const std::function<Call(Vector&)>& usual,
                                  const std::function<Call(Vector&)>& unusual) {
  std::vector<std::string> messages(4);
  on_all(
      4,
      [&](Communicator& world) {
        Vector data(1000, 1);
        const Call call = world.rank() == other ? unusual(data) : usual(data);
        messages[world.rank()] = message(world.run(call));
        // Every later call has the same cause.
        EXPECT_FALSE(world.barrier());
        EXPECT_EQ(world.cause().status, Status::kMismatch);
      },
      [](JoinOptions& options, std::uint32_t) { options.deadline = std::chrono::seconds(16); });
  return messages;
}

Call sum_of_elements(Vector& data, std::uint64_t count) {
  return call::allreduce<std::int64_t>(Out(data).first(count), Out(data).first(count), Op::kSum);
}

// Each rank's line names its own call; one of them at least names both, as both ends tell theirs.
TEST(Communicator, AMismatchNamesBothCalls) {
  const auto usual = [](Vector& data) { return sum_of_elements(data, 100); };
  const std::pair<std::function<Call(Vector&)>, std::string> cases[] = {
      {[](Vector& data) { return sum_of_elements(data, 50); },
       "rank 2 called allreduce of 50 i64, sum"},
      {[](Vector& data) {
         return call::allreduce<std::int64_t>(Out(data).first(100), Out(data).first(100), Op::kMax);
       },
       "rank 2 called allreduce of 100 i64, max"},
      {[](Vector& data) {
         const std::span<double> doubles(reinterpret_cast<double*>(data.data()), 100);
         return call::allreduce<double>(doubles, doubles, Op::kSum);
       },
       "rank 2 called allreduce of 100 f64, sum"},
      {[](Vector& data) { return call::broadcast<std::int64_t>(Out(data).first(100), 0); },
       "rank 2 called broadcast of 100 i64, root 0"},
      {[](Vector&) { return call::barrier(); }, "rank 2 called barrier"},
  };
  for (const auto& [unusual, expected] : cases) {
    const std::vector<std::string> lines = mismatch(2, usual, unusual);
    bool names_both = false;
    for (std::uint32_t rank = 0; rank < lines.size(); ++rank) {
      const std::string& line = lines[rank];
      const std::string usual_call = " called allreduce of 100 i64, sum";
      const bool has_other = line.find(expected) != std::string::npos;
      const bool has_usual = line.find(usual_call) != std::string::npos;
      EXPECT_NE(line.find(" failed: mismatch, found by rank "), std::string::npos) << line;
      EXPECT_TRUE(rank == 2 ? has_other : has_usual) << line << "\nexpected " << expected;
      names_both = names_both || (has_other && has_usual);
    }
    EXPECT_TRUE(names_both) << lines[0] << '\n' << lines[2];
  }
}

TEST(Communicator, AMismatchOfCountsSaysSo) {
  const std::vector<std::uint64_t> counts = {1, 2, 3, 4}, others = {1, 2, 3, 5};
  const auto with = [](const std::vector<std::uint64_t>& parts) {
    return [&parts](Vector& data) {
      Call call{.collective = Collective::kAllgather,
                .send = data.data(),
                .receive = data.data() + 100,
                .op = {.type = Type::kI64}};
      call.counts = parts;
      return call;
    };
  };
  std::string all;
  for (const std::string& line : mismatch(1, with(counts), with(others))) {
    EXPECT_NE(line.find(" called allgather with a count for each rank, of i64"), std::string::npos)
        << line;
    all += line + '\n';
  }
  EXPECT_NE(all.find("; the counts differ"), std::string::npos) << all;
}

// A rank that ends the communicator in place of the collective is named so.
TEST(Communicator, AMismatchNamesARankThatLeaves) {
  std::vector<std::string> lines(4);
  on_all(
      4,
      [&lines](Communicator& world) {
        if (world.rank() == 3) return;
        Vector data(100, 1);
        std::string& line = lines[world.rank()];
        line = message(world.allreduce(Out(data), Op::kSum)) + '\n';
        EXPECT_NE(line.find(" called allreduce of 100 i64, sum"), std::string::npos) << line;
      },
      [](JoinOptions& options, std::uint32_t) { options.deadline = std::chrono::seconds(16); });
  const std::string all = lines[0] + lines[1] + lines[2];
  EXPECT_NE(all.find("rank 3 is ending the communicator"), std::string::npos) << all;
}

// Rejoins with `survivors` ranks in all, and runs a collective on them.
void rejoin_and_sum(Communicator& world, std::uint32_t survivors) {
  auto again = world.rejoin();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->size(), survivors);
  Vector one = {1};
  EXPECT_EQ(message(again->allreduce(Out(one), Op::kSum)), "");
  EXPECT_EQ(one[0], survivors);
}

// Rank 2 leaves without a word; the others get the same cause, rejoin and go on.
TEST(Communicator, Rejoin) {
  LocalJob job(4);
  std::vector<Communicator> stopped;  // of rank 2
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      JoinOptions options = options_of(job, rank);
      options.deadline = std::chrono::seconds(2);
      auto world = join(options);
      ASSERT_TRUE(world) << world.error().message;
      Vector data(1000, rank);
      ASSERT_EQ(message(world->allreduce(Out(data), Op::kSum)), "");
      if (rank == 2) {
        job.end(rank);
        // Its endpoint stays open, and no thread polls it, as if the process were stopped.
        stopped.push_back(*std::move(world));
        return;
      }
      const auto failed = world->allreduce(Out(data), Op::kSum);
      ASSERT_FALSE(failed);
      EXPECT_NE(failed.error().message.find("dead link"), std::string::npos)
          << failed.error().message;
      EXPECT_EQ(world->cause().status, Status::kDeadLink);
      EXPECT_TRUE(world->cause().peer == 2) << world->cause().peer;
      EXPECT_FALSE(world->barrier());
      rejoin_and_sum(*world, 3);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Rank 3 is killed, and rank 2 ends when it has agreed on the survivors and before it connects. The
// others agree anew.
TEST(Communicator, ARankThatDiesDuringARejoin) {
  auto server = bootstrap::Server::start("127.0.0.1:0", 4, {});
  ASSERT_TRUE(server) << server.error().message;
  const auto options_for = [&server](std::uint32_t rank) {
    bootstrap::Options place;
    place.method = bootstrap::Method::kTable;
    place.rank = rank;
    place.table.assign(4, (*server)->address());
    JoinOptions options;
    options.provider = "tcp";
    options.deadline = std::chrono::seconds(2);
    options.membership = or_throw(bootstrap::join(place));
    return options;
  };
  const pid_t victim = fork();
  if (victim == 0) {
    auto world = join(options_for(3));
    if (world) (void)world->barrier();
    while (world) pause();
    _exit(1);
  }
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const JoinOptions options = options_for(rank);
      auto world = join(options);
      ASSERT_TRUE(world) << world.error().message;
      // When rank 0 has passed it, all have joined.
      (void)world->barrier();
      if (rank == 0) kill(victim, SIGKILL);
      EXPECT_FALSE(world->barrier());
      if (rank == 2) {
        // As rejoin() begins; then the membership ends.
        EXPECT_TRUE(options.membership->rejoin());
        return;
      }
      rejoin_and_sum(*world, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  (void)waitpid(victim, nullptr, 0);
}

// As split(1) of rank 3 of 4, except that the rank says nothing from then on.
void begin_split(Communicator& world, const ofi::OfiEndpoint& endpoint) {
  const Vector wish = {1, 0};  // color and key
  Vector wishes(8);
  ASSERT_EQ(message(world.run({.collective = Collective::kAllgather,
                               .send = wish.data(),
                               .receive = wishes.data(),
                               .count = 16})),
            "");
  const std::string address = endpoint.address();
  std::vector<std::uint64_t> longest = {address.size()};
  ASSERT_EQ(message(world.allreduce<std::uint64_t>(longest, Op::kMax)), "");
  const std::uint64_t size = address.size();
  std::vector<std::byte> mine(sizeof(size) + longest[0]), all(4 * mine.size());
  std::memcpy(mine.data(), &size, sizeof(size));
  std::memcpy(mine.data() + sizeof(size), address.data(), size);
  ASSERT_EQ(message(world.allgather<std::byte>(mine, all)), "");
}

// Rank 3 dies before rank 1 has connected to it. Meanwhile rank 1 replies to the others, so that
// all survivors get the same cause.
TEST(Communicator, ARankThatDiesDuringASplit) {
  LocalJob job(4);
  std::vector<std::unique_ptr<ofi::OfiEndpoint>> endpoints;  // of rank 3
  std::vector<Communicator> stopped;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      JoinOptions options = options_of(job, rank);
      options.deadline = std::chrono::seconds(2);
      auto world = join(options);
      ASSERT_TRUE(world) << world.error().message;
      if (rank == 3) {
        ofi::Config config;
        config.node = 1;
        config.max_links = 1;
        endpoints.push_back(or_throw(ofi::OfiEndpoint::open(config)));
        begin_split(*world, *endpoints.back());
        stopped.push_back(*std::move(world));  // Its endpoint stays open, and no thread polls it.
        return;
      }
      const auto parts = world->split(rank % 2);
      EXPECT_FALSE(parts);
      EXPECT_EQ(world->cause().status, Status::kDeadLink);
      EXPECT_EQ(world->cause().peer, 3u) << "on rank " << rank;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace espalier
