// Newcomers of a running job: accept(), alone and after a failure.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "base/testing/child.h"
#include "base/testing/contains.h"
#include "base/testing/free_port.h"
#include "base/testing/results.h"
#include "bootstrap/newcomers.h"
#include "bootstrap/server.h"
#include "communicator/record/folder.h"
#include "communicator/record/view.h"
#include "communicator/testing/chain_file.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/espalier.h"
#include "firmware/image/image_writer.h"
#include "firmware/node/boot_options.h"
#include "tests/directory_test.h"
#include "tests/nodes/images.h"

namespace espalier {
namespace {

using namespace communicator::testing;
using std::chrono::milliseconds;

// A job of threads with a server of its own.
class Growing : public DirectoryTest {
 protected:
  void begin(std::uint32_t ranks, const std::string& address = "127.0.0.1:0") {
    server_ = or_throw(bootstrap::Server::start(address, ranks, secret_));
    ranks_ = ranks;
    file_ = directory_ / "job";
    ASSERT_EQ(
        message_of(bootstrap::write_ticket(
            file_, bootstrap::job_ticket({.address = server_->address(), .secret = secret_}))),
        "");
  }

  JoinOptions options_of(std::uint32_t rank, const std::string& address,
                         std::uint32_t ranks) const {
    bootstrap::Place place{.method = bootstrap::Method::kEnvironment,
                           .rank = rank,
                           .size = ranks,
                           .address = address,
                           .secret = secret_,
                           .is_secret = true};
    JoinOptions options = common();
    options.membership = or_throw(bootstrap::connect(std::move(place), milliseconds(20'000)));
    return options;
  }
  JoinOptions newcomer() const {
    JoinOptions options = common();
    options.bootstrap = {.method = bootstrap::Method::kNewcomer, .job_file = file_};
    return options;
  }
  JoinOptions common() const {
    return {.provider = provider_,
            .deadline = std::chrono::seconds(4),
            .schedules = schedules_,
            .image = image_};
  }

  // Runs `member` on each rank of the job, and `late` in as many newcomers.
  void run(const std::function<void(Communicator&)>& member, std::uint32_t newcomers,
           const std::function<void(Communicator&)>& late) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      threads.emplace_back([&, rank] {
        auto world = join(options_of(rank, server_->address(), ranks_));
        ASSERT_TRUE(world) << world.error().message;
        member(*world);
      });
    }
    for (std::uint32_t i = 0; i < newcomers; ++i) {
      threads.emplace_back([&] {
        auto world = join(newcomer());
        ASSERT_TRUE(world) << world.error().message;
        late(*world);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  bootstrap::JobSecret secret_{7};
  std::unique_ptr<bootstrap::Server> server_;
  std::uint32_t ranks_ = 0;
  std::string file_, provider_ = "tcp";
  std::vector<std::string> schedules_;
  NodeImage image_;
};

void expect_sum(Communicator& on, std::uint32_t ranks) {
  Vector ones(100, 1);
  EXPECT_EQ(message_of(on.allreduce(Out(ones), Op::kSum)), "");
  EXPECT_EQ(ones, Vector(100, ranks));
  EXPECT_EQ(on.size(), ranks);
}

const std::string kCancelled = "cancelled by rank 1: no more input";

// The old communicator, its parts and the new one work side by side, and end in any order.
TEST_F(Growing, NewcomersGetTheRanksAfterTheMembers) {
  for (const char* provider : {"tcp", "mem"}) {
    SCOPED_TRACE(provider);
    provider_ = provider;
    begin(3);
    run(
        [](Communicator& world) {
          auto part = or_throw(world.split(world.rank() % 2));
          auto grown = or_throw(world.accept(2));
          EXPECT_EQ(grown.rank(), world.rank());
          expect_sum(grown, 5);
          expect_sum(world, 3);
          EXPECT_PRED2(contains, message_of(world.accept(1)), "before accept()");
          EXPECT_PRED2(contains, message_of(world.rejoin()), "before accept()");
          if (world.rank() == 1) {
            EXPECT_EQ(message_of(world.leave()), "");
          }
          expect_sum(*part, part->size());
          auto both = or_throw(grown.split(0));
          expect_sum(*both, 5);
        },
        2,
        [](Communicator& grown) {
          EXPECT_GE(grown.rank(), 3U);
          expect_sum(grown, 5);
          auto both = or_throw(grown.split(0));
          expect_sum(*both, 5);
        });
  }
}

// A schedule file serves the number of ranks that the job was started with, and no other.
TEST_F(Growing, ScheduleFilesServeTheFirstSize) {
  schedules_ = {directory_ / "chain.esp"};
  write_chain(schedules_.front(), 2);
  begin(2);
  const auto algorithm = [](Communicator& on) {
    Vector data(10, on.rank());
    const std::string name = or_throw(on.plan(call::broadcast(data, 0))).algorithm();
    EXPECT_EQ(message_of(on.broadcast(data, 0)), "");
    EXPECT_EQ(data, Vector(10, 0));
    return name;
  };
  run(
      [&](Communicator& world) {
        EXPECT_EQ(algorithm(world), schedules_.front());
        auto grown = or_throw(world.accept(1));
        EXPECT_NE(algorithm(grown), schedules_.front());
        EXPECT_EQ(algorithm(world), schedules_.front());
      },
      1, [&](Communicator& grown) { EXPECT_NE(algorithm(grown), schedules_.front()); });
}

// The same for images. If a process cannot load its own, all have the same line, and what they had.
TEST_F(Growing, ImagesServeTheFirstRanks) {
  const auto path = [&](std::uint32_t node) {
    return directory_ / ("image-" + std::to_string(node));
  };
  for (std::uint32_t node = 0; node < nodes::kRanks; ++node) {
    std::vector<std::uint8_t> image;
    ASSERT_EQ(write_image(nodes::content_of(node, node::BootOptions().board), image), Status::kOk);
    std::ofstream(path(node), std::ios::binary)
        .write(reinterpret_cast<const char*>(image.data()),
               static_cast<std::streamsize>(image.size()));
  }
  image_ = {.file = directory_ / "image-%r", .takes_unsigned = true};
  begin(nodes::kRanks);
  const auto algorithm = [](Communicator& on) {
    Vector data(10, 1);
    std::string name = or_throw(on.plan(call::allreduce(Out(data), Op::kSum))).algorithm();
    expect_sum(on, on.size());
    return name;
  };
  std::barrier meeting(nodes::kRanks);
  run(
      [&](Communicator& world) {
        EXPECT_EQ(algorithm(world), "two-tree");
        auto same = or_throw(world.accept(0, milliseconds(0)));
        EXPECT_EQ(algorithm(same), "two-tree");
        meeting.arrive_and_wait();
        if (same.rank() == 2) std::filesystem::remove(path(2));
        EXPECT_PRED2(contains, message_of(same.accept(0, milliseconds(0))),
                     "accept(): rank 2: the image: cannot read '");
        EXPECT_EQ(algorithm(same), "two-tree");
        meeting.arrive_and_wait();
        std::optional<std::jthread> late;
        if (same.rank() == 0) {
          late.emplace([&] {
            auto grown = or_throw(join(newcomer()));
            EXPECT_NE(algorithm(grown), "two-tree");
          });
        }
        auto grown = or_throw(same.accept(1));
        EXPECT_EQ(grown.size(), nodes::kRanks + 1);
        EXPECT_NE(algorithm(grown), "two-tree");
      },
      0, {});
}

// A membership of a program's own without newcomers: each rank gets the same line at once, also
// after a cancel.
TEST_F(Growing, NeedsAMembershipThatTakesNewcomers) {
  on_all(2, [](Communicator& world) {
    EXPECT_EQ(message_of(world.accept(1, std::chrono::hours(1))),
              "accept(): this membership takes no newcomers; expected one of bootstrap::join()");
    expect_sum(world, 2);
    if (world.rank() == 1) {
      EXPECT_EQ(message_of(world.cancel("no more input")), "");
    }
    EXPECT_EQ(message_of(world.barrier()), "barrier failed: " + kCancelled);
    EXPECT_EQ(message_of(world.accept(1)), "accept(): " + kCancelled);
    auto rest = or_throw(world.rejoin());
    expect_sum(rest, 2);
  });
}

// With none needed, none come, and the ranks are the same.
TEST_F(Growing, WithoutNewcomers) {
  begin(2);
  run(
      [](Communicator& world) {
        EXPECT_EQ(message_of(world.accept(1, milliseconds(50))),
                  "accept(): 0 of 1 newcomer came within 50 ms; expected more processes that join "
                  "through the job file");
        EXPECT_PRED2(contains, message_of(world.accept(1, milliseconds(-1))), "below 0");
        expect_sum(world, 2);
        auto same = or_throw(world.accept(0, milliseconds(0)));
        expect_sum(same, 2);
        EXPECT_PRED2(contains, message_of(or_throw(same.split(0))->accept()), "a part of the job");
        // Ranks that disagree get the same line.
        const std::string line = message_of(same.accept(1 + same.rank(), milliseconds(50)));
        EXPECT_PRED2(contains, line, "another one for");
        expect_sum(same, 2);
      },
      0, {});
}

// A job of one process grows, too.
TEST_F(Growing, FromOneRank) {
  begin(1);
  run(
      [](Communicator& world) {
        auto grown = or_throw(world.accept(2));
        expect_sum(grown, 3);
      },
      2, [](Communicator& grown) { expect_sum(grown, 3); });
}

// The two communicators that were made last have the same ids in the records of all ranks.
void expect_same_ids(const std::string& folder, std::size_t ranks) {
  std::vector<std::array<std::uint64_t, 2>> ids;
  for (const std::string& path : or_throw(record::list(folder))) {
    const record::View view = or_throw(record::read_view(path));
    if (view.process.pid != static_cast<std::uint32_t>(getpid())) continue;
    const auto& all = view.communicators;
    ASSERT_GE(all.size(), 2U);
    ids.push_back({all[all.size() - 2].id, all.back().id});
  }
  EXPECT_EQ(ids.size(), ranks);
  for (const auto& each : ids) EXPECT_EQ(each, ids.front());
}

// Rank 1 is killed. The others cannot accept before they have rejoined; then a newcomer takes its
// place.
TEST_F(Growing, ANewcomerTakesTheNumberOfARankThatEnded) {
  setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
  const auto use = [&](Communicator& grown) {
    expect_sum(grown, 3);
    auto part = or_throw(grown.split(0));
    expect_sum(*part, 3);
    if (grown.rank() == 1) expect_same_ids(directory_ / "espalier", 3);
    expect_sum(grown, 3);
  };
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  // It begins before this process has threads.
  const pid_t victim = start_child([&] {
    auto world = join(options_of(1, address, 3));
    if (world) (void)world->barrier();
    while (world) pause();
  });
  begin(3, address);
  std::vector<std::thread> threads;
  for (const std::uint32_t rank : {0U, 2U}) {
    threads.emplace_back([&, rank] {
      auto world = or_throw(join(options_of(rank, address, 3)));
      (void)world.barrier();
      if (rank == 0) kill(victim, SIGKILL);
      EXPECT_FALSE(world.barrier());
      EXPECT_PRED2(contains, message_of(world.accept()), "the communicator failed before");
      auto rest = or_throw(world.rejoin());
      expect_sum(rest, 2);
      auto grown = or_throw(rest.accept(1));
      EXPECT_EQ(grown.rank(), rank);
      use(grown);
    });
  }
  threads.emplace_back([&] {
    auto grown = or_throw(join(newcomer()));
    EXPECT_EQ(grown.rank(), 1U);
    use(grown);
  });
  for (std::thread& thread : threads) thread.join();
  (void)waitpid(victim, nullptr, 0);
  unsetenv("XDG_RUNTIME_DIR");
}

// Cancels the communicator from another thread while this one is in a call.
class LateCancel {
 public:
  LateCancel(Communicator& world, milliseconds after)
      : thread_([&world, after] {
          std::this_thread::sleep_for(after);
          EXPECT_EQ(message_of(world.cancel("no more input")), "");
        }) {}
  ~LateCancel() { thread_.join(); }

 private:
  std::thread thread_;
};

// The ranks wait for a rank, or for newcomers. The newcomer that is there waits for the next
// accept().
TEST_F(Growing, CancelEndsAccept) {
  for (const char* provider : {"tcp", "mem"}) {
    for (const bool is_late : {true, false}) {
      SCOPED_TRACE(provider);
      provider_ = provider;
      begin(4);
      std::barrier meeting(4);
      run(
          [&](Communicator& world) {
            meeting.arrive_and_wait();
            std::optional<LateCancel> other;
            if (world.rank() == 1) other.emplace(world, milliseconds(50));
            // Rank 3 calls once the others have returned.
            if (is_late && world.rank() == 3) meeting.arrive_and_wait();
            const std::uint32_t least = is_late ? 1 : 2;
            EXPECT_EQ(message_of(world.accept(least, milliseconds(600'000))),
                      "accept(): " + kCancelled);
            if (is_late && world.rank() != 3) meeting.arrive_and_wait();
            EXPECT_EQ(message_of(world.barrier()), "barrier failed: " + kCancelled);
            EXPECT_EQ(message_of(world.accept(1)), "accept(): " + kCancelled);
            EXPECT_EQ(world.cause().detector, 1U);
            auto rest = or_throw(world.rejoin());
            other.reset();
            expect_sum(rest, 4);
            auto grown = or_throw(rest.accept(1));
            expect_sum(grown, 5);
          },
          1, [](Communicator& grown) { expect_sum(grown, 5); });
    }
  }
}

TEST_F(Growing, CancelByAFlagEndsAccept) {
  begin(3);
  run(
      [&](Communicator& world) {
        std::atomic<std::sig_atomic_t> flag = 0;
        ASSERT_EQ(message_of(world.cancel_on(&flag, "signal 15")), "");
        ASSERT_EQ(message_of(world.barrier()), "");
        std::optional<std::thread> other;
        if (world.rank() == 2) {
          other.emplace([&flag] {
            std::this_thread::sleep_for(milliseconds(50));
            flag = 1;  // as a signal handler does
          });
        }
        EXPECT_EQ(message_of(world.accept(1, milliseconds(600'000))),
                  "accept(): cancelled by rank 2: signal 15");
        if (other) other->join();
      },
      0, {});
}

// The rank that cancels leaves, or rejoins, before the others have heard of it.
TEST_F(Growing, CancelAndLeaveEndsAccept) {
  for (const bool rejoins : {false, true}) {
    begin(3);
    run(
        [&](Communicator& world) {
          ASSERT_EQ(message_of(world.barrier()), "");
          if (world.rank() == 1) {
            std::this_thread::sleep_for(milliseconds(50));
            EXPECT_EQ(message_of(world.cancel("no more input")), "");
          } else {
            EXPECT_EQ(message_of(world.accept(1, milliseconds(600'000))),
                      "accept(): " + kCancelled);
          }
          if (!rejoins) return;
          auto rest = or_throw(world.rejoin());
          expect_sum(rest, 3);
        },
        0, {});
  }
}

// A cancel at any moment: either all ranks have the larger communicator, or none has, all have the
// same line, and the newcomer is taken after rejoin().
TEST_F(Growing, CancelWhileNewcomersConnect) {
  int grown_rounds = 0;
  for (int round = 0; round < 24; ++round) {
    provider_ = round % 2 == 0 ? "tcp" : "mem";
    begin(3);
    std::array<std::string, 3> lines;
    std::barrier meeting(3);
    run(
        [&](Communicator& world) {
          meeting.arrive_and_wait();
          std::optional<LateCancel> other;
          if (world.rank() == 1) other.emplace(world, milliseconds(round / 2));
          auto grown = world.accept(1, milliseconds(20'000));
          lines[world.rank()] = message_of(grown);
          other.reset();
          meeting.arrive_and_wait();
          EXPECT_EQ(lines[world.rank()], lines[0]);
          EXPECT_PRED2(contains, message_of(world.barrier()), kCancelled);
          if (grown) return expect_sum(*grown, 4);
          EXPECT_EQ(lines[0], "accept(): " + kCancelled);
          auto rest = or_throw(world.rejoin());
          auto later = or_throw(rest.accept(1));
          expect_sum(later, 4);
        },
        1, [](Communicator& grown) { expect_sum(grown, 4); });
    grown_rounds += lines[0].empty() ? 1 : 0;
  }
  RecordProperty("grown_rounds", grown_rounds);
}

// rejoin() is the call after a cancel, which does not end it.
TEST_F(Growing, CancelDoesNotEndRejoin) {
  begin(3);
  run(
      [](Communicator& world) {
        if (world.rank() == 1) {
          EXPECT_EQ(message_of(world.cancel("no more input")), "");
          std::this_thread::sleep_for(milliseconds(100));
          EXPECT_EQ(message_of(world.cancel("again")), "");
        }
        EXPECT_EQ(message_of(world.barrier()), "barrier failed: " + kCancelled);
        auto rest = or_throw(world.rejoin());
        expect_sum(rest, 3);
      },
      0, {});
}

// In C.
TEST_F(Growing, FromC) {
  secret_ = {};
  begin(2);
  const auto grow = [](espalier_comm* comm) {
    espalier_comm* grown = nullptr;
    EXPECT_EQ(espalier_accept(comm, 1, 20'000, &grown), ESPALIER_OK) << espalier_error();
    EXPECT_EQ(espalier_size(grown), 3U);
    EXPECT_EQ(espalier_cancel(grown, "no more input"), ESPALIER_OK);
    espalier_comm* none = nullptr;
    EXPECT_EQ(espalier_accept(grown, 1, 20'000, &none), ESPALIER_CANCELLED);
    EXPECT_PRED2(contains, espalier_error(), "accept(): cancelled by rank ");
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(espalier_leave(grown), ESPALIER_CANCELLED);
    EXPECT_EQ(espalier_leave(comm), ESPALIER_OK);
  };
  EXPECT_EQ(espalier_accept(nullptr, 1, 0, nullptr), ESPALIER_BAD_ARGUMENT);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      espalier_join_options options = espalier_default_join_options();
      options.method = rank < 2 ? ESPALIER_TABLE : ESPALIER_NEWCOMER;
      const std::string address = server_->address();
      const char* const table[] = {address.c_str(), address.c_str()};
      if (rank < 2) {
        options.table = table;
        options.rank = rank;
        options.size = 2;
      } else {
        options.job_file = file_.c_str();
      }
      espalier_comm* comm = nullptr;
      ASSERT_EQ(espalier_join(&options, &comm), ESPALIER_OK) << espalier_error();
      if (rank < 2) return grow(comm);
      EXPECT_EQ(espalier_barrier(comm), ESPALIER_CANCELLED) << espalier_error();
      EXPECT_EQ(espalier_leave(comm), ESPALIER_CANCELLED) << espalier_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace espalier
