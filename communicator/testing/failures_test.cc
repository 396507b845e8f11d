// Failures of a running communicator: ranks that die, and rejoins.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "base/testing/child.h"
#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "bootstrap/testing/server_process.h"
#include "communicator/job_part.h"
#include "communicator/testing/chain_file.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "tests/directory_test.h"

namespace espalier {
namespace {

using namespace communicator::testing;

// Rejoins with `survivors` ranks in all, and runs a collective on them.
void rejoin_and_sum(Communicator& world, std::uint32_t survivors) {
  auto again = or_throw(world.rejoin());
  EXPECT_EQ(again.size(), survivors);
  Vector one = {1};
  EXPECT_EQ(message_of(again.allreduce(Out(one), Op::kSum)), "");
  EXPECT_EQ(one[0], survivors);
}

// Rank 2 leaves without a word; the others get the same cause, rejoin and go on.
TEST(Communicator, Rejoin) {
  LocalJob job(4);
  std::vector<Communicator> stopped;  // of rank 2
  const auto body = [&](Communicator& world) {
    Vector data(1000, world.rank());
    ASSERT_EQ(message_of(world.allreduce(Out(data), Op::kSum)), "");
    if (world.rank() == 2) {
      job.end(world.rank());
      communicator::JobPart::silence(world);  // Its endpoint stays open.
      stopped.push_back(std::move(world));
      return;
    }
    const auto failed = world.allreduce(Out(data), Op::kSum);
    ASSERT_FALSE(failed);
    EXPECT_PRED2(contains, failed.error().message, "dead link");
    EXPECT_EQ(world.cause().status, Status::kDeadLink);
    EXPECT_TRUE(world.cause().peer == 2) << world.cause().peer;
    EXPECT_FALSE(world.barrier());
    rejoin_and_sum(world, 3);
  };
  on_all(job, body, with_deadline(std::chrono::seconds(2)));
}

// The server of a job in a process of its own. TSan's runtime of gcc 12 ends a child of a process
// with threads when the child starts one.
class ServerProcess : public bootstrap::ServerProcess {
 public:
  explicit ServerProcess(std::uint32_t ranks) : bootstrap::ServerProcess(ranks) {
    EXPECT_NE(address(), "");
  }
  ~ServerProcess() { EXPECT_TRUE(end()); }
};

// Joins the server's job. Returns the options to join with it.
JoinOptions joined_options(const ServerProcess& server, const std::string& provider,
                           std::uint32_t rank, std::uint32_t ranks) {
  bootstrap::Options place{.method = bootstrap::Method::kTable, .rank = rank};
  place.table.assign(ranks, server.address());
  return {.membership = or_throw(bootstrap::join(place)),
          .provider = provider,
          .deadline = std::chrono::seconds(2)};
}

// Rank 3 is killed, and rank 2 ends when it has agreed on the survivors and before it connects. The
// others agree anew.
TEST(Communicator, ARankThatDiesDuringARejoin) {
  const ServerProcess server(4);
  const auto options_for = [&server](std::uint32_t rank) {
    return joined_options(server, "tcp", rank, 4);
  };
  const pid_t victim = start_child([&] {
    auto world = join(options_for(3));
    if (world) (void)world->barrier();
    while (world) pause();
  });
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const JoinOptions options = options_for(rank);
      auto world = or_throw(join(options));
      // When rank 0 has passed it, all have joined.
      (void)world.barrier();
      if (rank == 0) kill(victim, SIGKILL);
      EXPECT_FALSE(world.barrier());
      if (rank == 2) {
        // As rejoin() begins; then the membership ends.
        EXPECT_TRUE(options.membership->rejoin());
        return;
      }
      rejoin_and_sum(world, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  (void)waitpid(victim, nullptr, 0);
}

// As split(1) of rank 3 of 4, except that the rank says nothing from then on.
void begin_split(Communicator& world, const ofi::AddedLinks& endpoint) {
  const Vector wish = {1, 0};  // color and key
  Vector wishes(8);
  ASSERT_EQ(message_of(world.run({.collective = Collective::kAllgather,
                                  .send = wish.data(),
                                  .receive = wishes.data(),
                                  .count = 16})),
            "");
  const std::string address = endpoint.address();
  std::vector<std::uint64_t> longest = {address.size()};
  ASSERT_EQ(message_of(world.allreduce(longest, Op::kMax)), "");
  const std::uint64_t size = address.size();
  std::vector<std::byte> mine(sizeof(size) + longest[0]), all(4 * mine.size());
  std::memcpy(mine.data(), &size, sizeof(size));
  std::memcpy(mine.data() + sizeof(size), address.data(), size);
  ASSERT_EQ(message_of(world.allgather(mine, all)), "");
}

// Rank 3 dies before rank 1 has connected to it. Meanwhile rank 1 replies to the others, so that
// all survivors get the same cause.
TEST(Communicator, ARankThatDiesDuringASplit) {
  LocalJob job(4);
  std::vector<std::unique_ptr<ofi::AddedLinks>> endpoints;  // of rank 3
  std::vector<Communicator> stopped;
  const auto body = [&](Communicator& world) {
    if (world.rank() == 3) {
      ofi::AddedConfig config;
      config.node = 1;
      config.max_links = 1;
      endpoints.push_back(or_throw(ofi::AddedLinks::open(config)));
      begin_split(world, *endpoints.back());
      communicator::JobPart::silence(world);  // Its endpoint stays open.
      stopped.push_back(std::move(world));
      return;
    }
    EXPECT_FALSE(world.split(world.rank() % 2));
    EXPECT_EQ(world.cause().status, Status::kDeadLink);
    EXPECT_EQ(world.cause().peer, 3u) << "on rank " << world.rank();
  };
  on_all(job, body, with_deadline(std::chrono::seconds(2)));
}

// Rank 1 computes for three deadlines between two calls. It has started a collective on one
// communicator; on the other one the rest waits for it.
void compute_for_long(Communicator& world, std::chrono::nanoseconds deadline) {
  auto part = or_throw(world.split(0));
  Vector early(1000, 1), late = early;
  auto started = or_throw(world.start(call::allreduce(early, early, Op::kSum)));
  const auto end = std::chrono::steady_clock::now() + 3 * deadline;
  while (world.rank() == 1 && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_EQ(message_of(part->allreduce(late, Op::kSum)), "") << "rank " << world.rank();
  EXPECT_EQ(message_of(started.wait()), "") << "rank " << world.rank();
  EXPECT_EQ(late, Vector(1000, world.size()));
  EXPECT_EQ(early, late);
}

TEST(Communicator, ARankMayComputeForThreeDeadlines) {
  for (const char* provider : {"tcp", "mem", "mem+tcp"}) {
    SCOPED_TRACE(provider);
    const auto deadline = std::chrono::seconds(2);
    on_all(
        3, [&](Communicator& world) { compute_for_long(world, deadline); },
        [&](JoinOptions& options, std::uint32_t rank) {
          options.provider = provider;
          options.deadline = deadline;
          if (options.provider == "mem+tcp") options.host = rank < 2 ? "a" : "b";
        });
  }
}

class Chain : public DirectoryTest {};

// Each rank awaits the one before it, and the second one a program that computes: none is stalled.
TEST_F(Chain, AwaitsARankThatComputes) {
  constexpr std::uint32_t kRanks = 24;
  const auto deadline = std::chrono::seconds(2);
  const std::string chain = directory_ / "chain.esp";
  write_chain(chain, kRanks);
  on_all(
      kRanks,
      [&](Communicator& world) {
        if (world.rank() == 0) std::this_thread::sleep_for(3 * deadline);
        Vector data(10, world.rank());
        EXPECT_EQ(message_of(world.broadcast(data, 0)), "") << "rank " << world.rank();
        EXPECT_EQ(data[0], 0);
      },
      [&](JoinOptions& options, std::uint32_t) {
        options.provider = "mem";
        options.deadline = deadline;
        options.schedules = {chain};
      });
}

// Each of two ranks waits for the other on another communicator: no program runs. The first rank
// that ends its call leaves, and the other rank may hear of that before it looks.
TEST(Communicator, RanksThatAwaitEachOtherAreStalled) {
  for (const char* provider : {"mem", "tcp"}) {
    std::atomic<int> stalled = 0;
    on_all(
        2,
        [&](Communicator& world) {
          auto first = or_throw(world.split(0)), second = or_throw(world.split(0));
          Communicator& own = world.rank() == 0 ? *first : *second;
          EXPECT_FALSE(own.barrier());
          const Status status = own.cause().status;
          if (status == Status::kStalled) ++stalled;
          const std::string left = message_of(own.leave());
          const bool is_known = status == Status::kStalled || status == Status::kMismatch;
          EXPECT_TRUE(is_known && left.starts_with("the communicator failed before: ")) << left;
          EXPECT_EQ(own.size(), 0u);
        },
        [&](JoinOptions& options, std::uint32_t) {
          options.provider = provider;
          options.deadline = std::chrono::seconds(2);
        });
    EXPECT_GE(stalled, 1) << provider;
  }
}

// A pipe through which processes wait for each other.
class Signal {
 public:
  Signal() { EXPECT_EQ(pipe(ends_), 0); }
  ~Signal() {
    close(ends_[0]);
    stop_giving();
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  // This process gives no more. When none does, await() fails instead of waiting.
  void stop_giving() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  void give() const { EXPECT_EQ(write(ends_[1], "!", 1), 1); }
  void await() const {
    char byte = 0;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

constexpr std::uint32_t kPartRanks = 3, kVictim = 2;
constexpr rlim_t kFiles = 64;
constexpr std::size_t kUnused = 100, kUsed = 10, kUsedLate = 3;

// Joins, makes parts of all ranks, uses some, and waits until the victim is killed. Then all parts
// that it uses must name the victim, and so must the whole job.
void outlive_the_victim(const JoinOptions& options, const Signal& ready, const Signal& killed) {
  auto world = or_throw(join(options));
  std::vector<Communicator> parts;
  while (parts.size() < kUnused + kUsed) {
    auto made = world.split(0);
    ASSERT_TRUE(made) << parts.size() << " made: " << made.error().message;
    parts.push_back(**std::move(made));
  }
  Vector data(8, 1);
  for (std::size_t i = 0; i < kUsed; ++i) {
    ASSERT_EQ(message_of(parts[i].allreduce(Out(data), Op::kSum)), "");
  }
  ASSERT_EQ(message_of(world.barrier()), "");
  ready.give();
  if (world.rank() == kVictim) pause();
  killed.await();
  std::vector<Request> requests;
  std::vector<Vector> sums(kUsed + kUsedLate, Vector(8, 1));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Out sum = sums[i];
    auto started = parts[i].start(call::allreduce(sum, sum, Op::kSum));
    if (started) requests.push_back(*std::move(started));
  }
  for (Request& request : requests) EXPECT_FALSE(request.wait());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_FALSE(parts[i].barrier());
    EXPECT_EQ(parts[i].cause().status, Status::kDeadLink) << "part " << i;
    EXPECT_EQ(parts[i].cause().peer, kVictim) << "part " << i;
  }
  EXPECT_FALSE(world.barrier());
  EXPECT_EQ(world.cause().peer, kVictim);
}

void kill_among_parts(const std::string& provider) {
  const ServerProcess server(kPartRanks);
  ASSERT_NE(server.address(), "");
  Signal ready;
  const Signal killed;
  std::vector<pid_t> ranks;
  for (std::uint32_t rank = 0; rank < kPartRanks; ++rank) {
    ranks.push_back(start_child([&] {
      // Parts take no descriptors.
      const rlimit files = {kFiles, kFiles};
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
      outlive_the_victim(joined_options(server, provider, rank, kPartRanks), ready, killed);
      ready.give();  // if it ended early
    }));
  }
  ready.stop_giving();
  for (std::size_t i = 0; i < ranks.size(); ++i) ready.await();
  kill(ranks[kVictim], SIGKILL);
  (void)waitpid(ranks[kVictim], nullptr, 0);
  for (std::uint32_t rank = 0; rank < kVictim; ++rank) killed.give();
  for (std::uint32_t rank = 0; rank < kVictim; ++rank) {
    EXPECT_EQ(wait_for_child(ranks[rank]), 0) << "rank " << rank;
  }
}

TEST(Communicator, EveryPartNamesAKilledRank) {
  for (const char* provider : {"mem", "tcp"}) {
    SCOPED_TRACE(provider);
    kill_among_parts(provider);
  }
}

}  // namespace
}  // namespace espalier
