// Ranks that call different collectives: every rank names the calls at both ends. The ranks are
// threads of one process, over tcp on the loopback interface.

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"

namespace espalier {
namespace {

using namespace communicator::testing;

using MakeCall = std::function<Call(Vector&)>;

// Runs `unusual` on one rank, and `usual` on the others. Returns the messages of all ranks. A rank
// that only sends may have completed its call: then the message is that of its next one.
std::vector<std::string> lines_of_mismatch(std::uint32_t ranks, std::uint32_t other,
                                           const MakeCall& usual, const MakeCall& unusual) {
  std::vector<std::string> messages(ranks);
  on_all(
      ranks,
      [&](Communicator& world) {
        Vector data(1000, 1);
        const Call call = world.rank() == other ? unusual(data) : usual(data);
        std::string& line = messages[world.rank()];
        line = message_of(world.run(call));
        const std::string next = message_of(world.barrier());
        EXPECT_NE(next, "");  // every later call has the same cause
        if (line.empty()) line = next;
        EXPECT_EQ(world.cause().status, Status::kMismatch);
      },
      with_short_deadline);
  return messages;
}

Call sum_of_elements(Vector& data, std::uint64_t count) {
  return call::allreduce(Out(data).first(count), Out(data).first(count), Op::kSum);
}

// Expects both texts in the line of every rank.
void expect_both(const std::vector<std::string>& lines, const std::string& usual,
                 const std::string& unusual) {
  for (const std::string& line : lines) {
    EXPECT_PRED2(contains, line, " failed: mismatch, found by rank ");
    EXPECT_PRED2(contains, line, usual) << "\nexpected " << usual;
    EXPECT_PRED2(contains, line, unusual) << "\nexpected " << unusual;
  }
}

TEST(Mismatch, NamesBothCallsOnAllRanks) {
  const auto usual = [](Vector& data) { return sum_of_elements(data, 100); };
  const std::pair<MakeCall, std::string> cases[] = {
      {[](Vector& data) { return sum_of_elements(data, 50); },
       "rank 2 called allreduce of 50 i64, sum"},
      {[](Vector& data) {
         return call::allreduce(Out(data).first(100), Out(data).first(100), Op::kMax);
       },
       "rank 2 called allreduce of 100 i64, max"},
      {[](Vector& data) {
         const std::span<double> doubles(reinterpret_cast<double*>(data.data()), 100);
         return call::allreduce(doubles, doubles, Op::kSum);
       },
       "rank 2 called allreduce of 100 f64, sum"},
      {[](Vector& data) { return call::broadcast(Out(data).first(100), 2); },
       "rank 2 called broadcast of 100 i64, root 2"},
      {[](Vector& data) { return call::broadcast(Out(data).first(100), 0); },
       "rank 2 called broadcast of 100 i64, root 0"},
      {[](Vector&) { return call::barrier(); }, "rank 2 called barrier"},
  };
  // All at once: each takes a quarter of its deadline.
  std::vector<std::thread> jobs;
  for (const auto& [unusual, expected] : cases) {
    jobs.emplace_back([&usual, &unusual = unusual, &expected = expected] {
      expect_both(lines_of_mismatch(4, 2, usual, unusual), " called allreduce of 100 i64, sum",
                  expected);
    });
  }
  for (std::thread& job : jobs) job.join();
}

// With a deadline of 1200 s: no rank waits for a quarter of it. Rank 3 computes until the others
// have the cause, and its call never begins.
TEST(Mismatch, EndsOnceAllRanksKnow) {
  const std::vector<std::uint64_t> counts = {1, 2, 3, 4}, others = {1, 2, 5, 4};
  const auto gathered = [](Vector& data, const std::vector<std::uint64_t>& parts) {
    return Call{.collective = Collective::kAllgather,
                .send = data.data(),
                .receive = data.data() + 100,
                .counts = parts,
                .op = {.type = Type::kI64}};
  };
  const auto throws = [](void*, const void*, const void*, std::uint64_t, void*) {
    throw std::runtime_error("division by zero");
  };
  const Operator custom{.op = Op::kCustom, .type = Type::kI64, .custom_id = 1, .custom = throws};
  const std::pair<std::function<Call(Vector&, std::uint32_t)>, std::string> cases[] = {
      {[](Vector& data, std::uint32_t rank) { return sum_of_elements(data, rank == 1 ? 7 : 9); },
       "; count: "},
      {[&](Vector& data, std::uint32_t rank) {
         return gathered(data, rank == 1 ? others : counts);
       },
       "count of rank 2: "},
      {[&](Vector& data, std::uint32_t) {
         return Call{.collective = Collective::kAllreduce,
                     .send = data.data(),
                     .receive = data.data(),
                     .count = 9,
                     .op = custom};
       },
       " threw an exception: division by zero"},
  };
  for (const auto& [call, expected] : cases) {
    const auto start = std::chrono::steady_clock::now();
    std::latch known(3);
    on_all(
        4,
        [&, &call = call, &expected = expected](Communicator& world) {
          Vector data(1000, 1);
          if (world.rank() == 3) known.wait();
          EXPECT_PRED2(contains, message_of(world.run(call(data, world.rank()))), expected);
          if (world.rank() != 3) known.count_down();
        },
        with_deadline(std::chrono::seconds(1200)));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(250));
  }
}

// Not all of the 7 ranks have links to both ends of the mismatch, and only some links exist at both
// ends.
TEST(Mismatch, NamesBothCallsOnRanksWithoutALinkToThem) {
  const auto gather = [](std::uint32_t root) {
    return [root](Vector& data) {
      return call::gather(In(data).first(10), Out(data).subspan(100, 70), root);
    };
  };
  expect_both(lines_of_mismatch(7, 5, gather(0), gather(5)), " called gather of 10 i64, root 0",
              "rank 5 called gather of 10 i64, root 5");
}

// A function that runs several collectives is named, and not one of these.
TEST(Mismatch, NamesTheFunctionThatWasCalled) {
  on_all(
      4,
      [](Communicator& world) {
        std::uint32_t one = 1;
        const std::uint32_t rank = world.rank();
        const std::string line = rank == 1   ? message_of(world.split(0))
                                 : rank == 2 ? message_of(world.neighbor_counts({}))
                                             : message_of(world.allreduce(one, Op::kSum));
        const std::string name = rank == 1 ? "split" : rank == 2 ? "neighbor_counts" : "allreduce";
        EXPECT_TRUE(line.starts_with(name + " failed: mismatch, ")) << line;
        const Cause cause = world.cause();
        const auto called = [&](std::uint32_t by) {
          return by == 1 ? "split" : by == 2 ? "neighbor_counts" : "allreduce of 1 u32, sum";
        };
        for (const std::uint32_t by : {cause.detector, cause.peer, rank}) {
          EXPECT_PRED2(contains, line, "rank " + std::to_string(by) + " called " + called(by));
        }
        EXPECT_PRED2(contains, line, "; collective: ");
        EXPECT_FALSE(contains(line, "allgather")) << line;
      },
      with_short_deadline);
  // A rank that ends the communicator in place of the collective.
  on_all(
      2,
      [](Communicator& world) {
        const bool leaves = world.rank() == 1;
        const std::string line = message_of(leaves ? world.leave() : world.barrier());
        EXPECT_TRUE(line.starts_with(leaves ? "leave failed: " : "barrier failed: ")) << line;
      },
      with_short_deadline);
}

TEST(Mismatch, OfCountsSaysSo) {
  const std::vector<std::uint64_t> counts = {1, 2, 3, 4}, others = {1, 2, 3, 5};
  const auto with = [](const std::vector<std::uint64_t>& parts) {
    return [&parts](Vector& data) {
      return Call{.collective = Collective::kAllgather,
                  .send = data.data(),
                  .receive = data.data() + 100,
                  .counts = parts,
                  .op = {.type = Type::kI64}};
    };
  };
  for (const std::string& line : lines_of_mismatch(4, 1, with(counts), with(others))) {
    EXPECT_PRED2(contains, line, "rank 1 called allgather with a count for each rank, of i64; ");
    const bool is_first = contains(line, "count of rank 3: 5 on rank 1, 4 on rank ");
    EXPECT_TRUE(is_first || contains(line, ", 5 on rank 1")) << line;
  }
}

// A rank that ends the communicator, or a part, in place of the collective is named so. Its own
// barrier does not stand for one of the program.
TEST(Mismatch, NamesARankThatLeaves) {
  using Use = std::string (*)(Communicator & communicator);
  const Use sum = [](Communicator& communicator) {
    Vector data(100, 1);
    return message_of(communicator.allreduce(Out(data), Op::kSum));
  };
  const Use meet = [](Communicator& communicator) { return message_of(communicator.barrier()); };
  for (const auto& [use, in_part, call] : {std::tuple(sum, false, "allreduce of 100 i64, sum"),
                                           {meet, false, "barrier"},
                                           {meet, true, "barrier"}}) {
    std::vector<std::string> lines(3);
    on_all(
        4,
        [&, use = use, in_part = in_part](Communicator& world) {
          std::optional<Communicator> part;
          if (in_part) part = or_throw(world.split(0));
          const std::uint32_t rank = world.rank();
          if (rank != 3) lines[rank] = use(in_part ? *part : world);
        },
        with_short_deadline);
    expect_both(lines, std::string(" called ") + call, "rank 3 is ending the communicator");
  }
}

// The root's short message is on its way when its call is complete: all name that call, and not
// what the root called next.
TEST(Mismatch, NamesTheCallOfARootThatWentOn) {
  std::vector<std::string> lines(4);
  on_all(
      4,
      [&lines](Communicator& world) {
        Vector data(100, 1);
        std::string& line = lines[world.rank()];
        line = message_of(world.broadcast(Out(data).first(world.rank() == 0 ? 10 : 20), 0));
        const std::string next = message_of(world.allreduce(Out(data), Op::kSum));
        if (line.empty()) line = next;
      },
      with_short_deadline);
  expect_both(lines, "rank 0 called broadcast of 10 i64, root 0",
              " called broadcast of 20 i64, root 0");
}

}  // namespace
}  // namespace espalier
