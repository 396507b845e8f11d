// Operators of the program that throw: an error of the call on all ranks. The ranks are threads of
// one process, over tcp on the loopback interface.

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/results.h"
#include "collectives/schedule/selection.h"
#include "communicator/c_interface.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/espalier.h"

namespace espalier {
namespace {

using namespace communicator::testing;

constexpr std::uint32_t kRanks = 4;
constexpr std::int64_t kBad = 1'000'000;

// Adds, and throws at kBad. `context`: what to throw.
enum class Throws : std::uint8_t { kNothing, kException, kNumber, kLongText };
void add(void* into, const void* a, const void* b, std::uint64_t count, void* context) {
  const auto* const left = static_cast<const std::int64_t*>(a);
  const auto* const right = static_cast<const std::int64_t*>(b);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Throws throws = *static_cast<const Throws*>(context);
    if (left[i] == kBad || right[i] == kBad) {
      if (throws == Throws::kException) throw std::out_of_range("no sum\nof such numbers");
      if (throws == Throws::kLongText) throw std::runtime_error(std::string(1000, 'x'));
      if (throws == Throws::kNumber) throw 5;
    }
    static_cast<std::int64_t*>(into)[i] = left[i] + right[i];
  }
}

Call call_of(Collective collective, Vector& data, std::uint64_t count, Throws& throws) {
  return {
      .collective = collective,
      .send = data.data(),
      .receive = data.data() + (collective == Collective::kReduceScatter ? data.size() - count : 0),
      .count = count,
      .op = {.op = Op::kCustom,
             .type = Type::kI64,
             .custom_id = 1,
             .custom = add,
             .context = &throws},
      .root = collective == Collective::kReduce ? 2U : 0U};
}

void with_progress_thread(JoinOptions& options, std::uint32_t rank) {
  with_short_deadline(options, rank);
  options.progress_thread = true;
}

// Expects that the line names a rank and what it threw, and that the cause does.
void expect_thrown(const std::string& line, const Communicator& world, const std::string& what) {
  const Cause cause = world.cause();
  EXPECT_EQ(cause.status, Status::kBadOperator);
  EXPECT_EQ(cause.detector, cause.peer);
  const std::string expected =
      "the operator of rank " + std::to_string(cause.detector) + " threw an exception" + what;
  const std::size_t found = line.find(" failed: " + expected);
  ASSERT_NE(found, std::string::npos) << line << "\nexpected " << expected;
  EXPECT_EQ(line.substr(found + 9), expected);
}

// A call that completed before the failure has the right result, and the next call the error.
void expect_error(const Communicator& world, const std::string& line, const std::string& next,
                  const std::string& what) {
  expect_thrown(line.empty() ? next : line, world, what);
  expect_thrown(next, world, what);
}

TEST(ThrowingOperator, IsAnErrorOnAllRanks) {
  const auto check = [](Collective collective, std::uint64_t count) {
    on_all(
        kRanks,
        [&](Communicator& world) {
          SCOPED_TRACE(collective_name(collective) + std::string(" of ") + std::to_string(count));
          const std::uint64_t parts = collective == Collective::kReduceScatter ? kRanks : 1;
          Throws throws = Throws::kException;
          Vector data(count * (parts + 1), 1);  // the rest is for the result
          // A call that succeeds, unless a faster rank's next one fails meanwhile. Then the same
          // call, which the communicator knows.
          std::string line = message_of(world.run(call_of(collective, data, count, throws)));
          data.assign(data.size(), kBad);
          const std::string second =
              message_of(world.run(call_of(collective, data, count, throws)));
          if (line.empty()) line = second;
          expect_error(world, line, message_of(world.barrier()), ": no sum of such numbers");
        },
        with_short_deadline);
  };
  // All at once: each takes a quarter of its deadline.
  std::vector<std::thread> jobs;
  for (const Collective collective : {Collective::kAllreduce, Collective::kReduce,
                                      Collective::kScan, Collective::kReduceScatter}) {
    for (const std::uint64_t count : {1, 50'000}) jobs.emplace_back(check, collective, count);
  }
  for (std::thread& job : jobs) job.join();
}

TEST(ThrowingOperator, EndsStartsAndPlansAndTheProgressThreadToo) {
  for (const bool plans : {false, true}) {
    on_all(
        kRanks,
        [&](Communicator& world) {
          Throws throws = Throws::kNumber;
          Vector data(10, 1), more(10, 1);
          const Call call = call_of(Collective::kAllreduce, data, 10, throws);
          std::string line;
          if (plans) {
            auto plan = or_throw(world.plan(call));
            for (int i = 0; i < 4 && line.empty(); ++i) {
              data.assign(10, i == 3 ? kBad : 1);
              line = message_of(plan.start());
              if (line.empty()) line = message_of(plan.wait());
            }
          } else {
            data.assign(10, kBad);
            auto first = world.start(call);
            auto second = world.start(call_of(Collective::kAllreduce, more, 10, throws));
            line = first ? message_of(first->wait()) : first.error().message;
            EXPECT_NE(second ? message_of(second->wait()) : second.error().message, "");
          }
          expect_error(world, line, message_of(world.barrier()), "");
        },
        plans ? with_short_deadline : Change(with_progress_thread));
  }
}

// Only what fits travels; the program goes on with a communicator of the same ranks.
TEST(ThrowingOperator, LeavesRanksThatCanRejoin) {
  on_all(
      kRanks,
      [&](Communicator& world) {
        Throws throws = Throws::kLongText;
        Vector data(10, kBad);
        const std::string line =
            message_of(world.run(call_of(Collective::kAllreduce, data, 10, throws)));
        expect_error(world, line, message_of(world.barrier()), ": " + std::string(119, 'x'));
        auto again = or_throw(world.rejoin());
        throws = Throws::kNothing;
        data.assign(10, 1);
        ASSERT_EQ(message_of(again.run(call_of(Collective::kAllreduce, data, 10, throws))), "");
        EXPECT_EQ(data, Vector(10, kRanks));
      },
      with_short_deadline);
}

// Only the root of a reduce to the last of 2 ranks combines: the other rank did its part, or gets
// the error.
TEST(ThrowingOperator, NamesTheRankThatCombines) {
  on_all(
      2,
      [&](Communicator& world) {
        Throws throws = Throws::kException;
        Vector data(10, kBad);
        Call call = call_of(Collective::kReduce, data, 10, throws);
        call.root = 1;
        const std::string line = message_of(world.run(call));
        EXPECT_TRUE(world.rank() == 0 || !line.empty());
        expect_error(world, line, message_of(world.barrier()), ": no sum of such numbers");
        EXPECT_EQ(world.cause().detector, 1U);
      },
      with_short_deadline);
}

TEST(ThrowingOperator, IsAnErrorOfACallInC) {
  on_all(
      2,
      [&](Communicator& world) {
        espalier_comm* const comm = communicator::make_handle(std::move(world));
        Throws throws = Throws::kException;
        Vector data(10, kBad);
        espalier_call call = espalier_default_call();
        call.collective = ESPALIER_ALLREDUCE;
        call.type = ESPALIER_I64;
        call.op = ESPALIER_CUSTOM_OP;
        call.receive = data.data();
        call.send = data.data();
        call.count = 10;
        call.combine = add;
        call.context = &throws;
        call.commutes = 1;
        int status = espalier_run(&call, comm);
        if (status == ESPALIER_OK) status = espalier_barrier(comm);
        EXPECT_EQ(status, ESPALIER_BAD_OPERATOR);
        EXPECT_NE(std::strstr(espalier_error(), " threw an exception: no sum of such numbers"),
                  nullptr)
            << espalier_error();
        EXPECT_EQ(espalier_cause_of(comm).status, ESPALIER_BAD_OPERATOR);
        EXPECT_EQ(espalier_leave(comm), ESPALIER_BAD_OPERATOR);
      },
      with_short_deadline);
}

}  // namespace
}  // namespace espalier
