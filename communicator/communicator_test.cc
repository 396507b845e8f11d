// Communicators of the threads of one process, over tcp on the loopback interface.

#include "espalier/communicator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "base/testing/results.h"
#include "communicator/testing/local_job.h"
#include "espalier/bootstrap/server.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier {
namespace {

using communicator::testing::LocalJob;
using communicator::testing::on_all;
using communicator::testing::on_hosts;
using communicator::testing::options_of;

std::string message(const Result<void>& result) { return result ? "" : result.error().message; }

using Vector = std::vector<std::int64_t>;
using In = std::span<const std::int64_t>;
using Out = std::span<std::int64_t>;

std::int64_t value(std::uint32_t rank, std::uint64_t i) {
  return static_cast<std::int64_t>(rank * 1000 + i);
}
Vector values(std::uint32_t rank, std::uint64_t count) {
  Vector all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = value(rank, i);
  return all;
}
std::int64_t sum_of(std::uint32_t ranks, std::uint64_t i) {
  std::int64_t sum = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) sum += value(rank, i);
  return sum;
}

void check_parts(Communicator& world, std::uint64_t count, std::uint32_t root);

// Every collective, with `count` elements (of each part, where counts are per rank) and this root.
void check_all(Communicator& world, std::uint64_t count, std::uint32_t root) {
  const std::uint32_t me = world.rank();
  const std::uint32_t ranks = world.size();
  SCOPED_TRACE("rank " + std::to_string(me) + " of " + std::to_string(ranks) + ", count " +
               std::to_string(count) + ", root " + std::to_string(root));
  Vector data = values(me == root ? root : 99, count);
  EXPECT_EQ(message(world.broadcast(Out(data), root)), "");
  EXPECT_EQ(data, values(root, count));

  Vector sums(count);
  for (std::uint64_t i = 0; i < count; ++i) sums[i] = sum_of(ranks, i);
  const Vector own = values(me, count);
  Vector out(count, -1);
  EXPECT_EQ(message(world.reduce(In(own), Out(out), Op::kSum, root)), "");
  EXPECT_EQ(out, me == root ? sums : Vector(count, -1));
  Vector in_place = own;
  EXPECT_EQ(message(world.reduce(In(in_place), Out(in_place), Op::kSum, root)), "");
  if (me == root) {
    EXPECT_EQ(in_place, sums);
  }
  out.assign(count, -1);
  EXPECT_EQ(message(world.allreduce(In(own), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, sums);
  in_place = own;
  EXPECT_EQ(message(world.allreduce(Out(in_place), Op::kSum)), "");
  EXPECT_EQ(in_place, sums);

  Vector prefix(count), before(count, -1);
  for (std::uint64_t i = 0; i < count; ++i) {
    prefix[i] = sum_of(me + 1, i);
    if (me > 0) before[i] = sum_of(me, i);
  }
  out.assign(count, -1);
  EXPECT_EQ(message(world.scan(In(own), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, prefix);
  out.assign(count, -1);
  EXPECT_EQ(message(world.exscan(In(own), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, before);
  in_place = own;
  EXPECT_EQ(message(world.scan(In(in_place), Out(in_place), Op::kSum)), "");
  EXPECT_EQ(in_place, prefix);

  check_parts(world, count, root);
}

// The collectives with a part for each rank.
void check_parts(Communicator& world, std::uint64_t count, std::uint32_t root) {
  const std::uint32_t me = world.rank();
  const std::uint32_t ranks = world.size();
  const Vector own = values(me, count);
  Vector out(count, -1), parts;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Vector part = values(rank, count);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  out.assign(count, -1);
  EXPECT_EQ(message(world.scatter(In(parts), Out(out), root)), "");
  EXPECT_EQ(out, own);
  Vector all(count * ranks, -1);
  EXPECT_EQ(message(world.gather(In(own), Out(all), root)), "");
  EXPECT_EQ(all, me == root ? parts : Vector(count * ranks, -1));
  all.assign(count * ranks, -1);
  EXPECT_EQ(message(world.allgather(In(own), Out(all))), "");
  EXPECT_EQ(all, parts);
  // In place: this rank's part is where it belongs.
  all.assign(count * ranks, -1);
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(me * count));
  EXPECT_EQ(message(world.allgather(In(all).subspan(me * count, count), Out(all))), "");
  EXPECT_EQ(all, parts);

  out.assign(count, -1);
  Vector expected(count);
  for (std::uint64_t i = 0; i < count; ++i) expected[i] = value(me, i) * ranks;
  EXPECT_EQ(message(world.reduce_scatter(In(parts), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, expected);

  Vector to_all(count * ranks), from_all(count * ranks, -1), wanted(count * ranks);
  for (std::uint32_t other = 0; other < ranks; ++other) {
    for (std::uint64_t i = 0; i < count; ++i) {
      to_all[other * count + i] = value(me, i) * 100 + other;
      wanted[other * count + i] = value(other, i) * 100 + me;
    }
  }
  EXPECT_EQ(message(world.all_to_all(In(to_all), Out(from_all))), "");
  EXPECT_EQ(from_all, wanted);
  EXPECT_EQ(message(world.all_to_all(In(to_all), Out(to_all))), "");
  EXPECT_EQ(to_all, wanted);
  EXPECT_EQ(message(world.barrier()), "");
}

TEST(Communicator, EveryCollectiveOnEveryNumberOfRanks) {
  for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
    on_all(ranks, [ranks](Communicator& world) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}}) {
        for (const std::uint32_t root : {0u, ranks - 1}) check_all(world, count, root);
      }
    });
  }
}

// Ranks of several hosts: schedules of hosts:HxR where each host has as many, in succession.
TEST(Communicator, RanksOfHosts) {
  const std::pair<const char*, const char*> kCases[] = {{"aabbcc", "hosts-dissemination"},
                                                        {"aaabbb", "hosts-dissemination"},
                                                        {"aaabbc", "dissemination"},
                                                        {"aaaabbbb", "hosts-dissemination"},
                                                        {"abab", "recursive-doubling"}};
  for (const auto& [hosts, barrier] : kCases) {
    const std::string names = hosts;
    const auto ranks = static_cast<std::uint32_t>(names.size());
    on_all(
        ranks,
        [&](Communicator& world) {
          auto plan = world.plan(call::barrier());
          ASSERT_TRUE(plan) << plan.error().message;
          EXPECT_EQ(plan->algorithm(), barrier) << names;
          for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{3000}}) {
            for (const std::uint32_t root : {0u, 1u, ranks - 1}) check_all(world, count, root);
          }
        },
        on_hosts(names));
  }
}

TEST(Communicator, LargeMessages) {
  on_all(4, [](Communicator& world) { check_all(world, 200'000, 2); });
}

TEST(Communicator, UnequalCounts) {
  on_all(5, [](Communicator& world) {
    const std::vector<std::uint64_t> counts = {3, 0, 7, 1, 2000};
    const std::uint32_t me = world.rank();
    const Vector own = values(me, counts[me]);
    Vector parts;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
      const Vector part = values(rank, counts[rank]);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    Vector all(parts.size(), -1);
    Call gather = call::allgather(In(own), Out(all));
    gather.counts = counts;
    EXPECT_EQ(message(world.run(gather)), "");
    EXPECT_EQ(all, parts);
    Vector out(counts[me], -1);
    Call scatter = call::scatter(In(parts), Out(out), 3);
    scatter.counts = counts;
    EXPECT_EQ(message(world.run(scatter)), "");
    EXPECT_EQ(out, own);
    // Rank o sends o + d elements to rank d.
    std::vector<std::uint64_t> each(25);
    Vector to_all, wanted;
    for (std::uint32_t o = 0; o < 5; ++o) {
      for (std::uint32_t d = 0; d < 5; ++d) {
        each[o * 5 + d] = o + d;
        if (o == me) to_all.insert(to_all.end(), o + d, 10 * o + d);
        if (d == me) wanted.insert(wanted.end(), o + d, 10 * o + d);
      }
    }
    Vector from_all(wanted.size(), -1);
    Call exchange = call::all_to_all(In(to_all), Out(from_all), 0);
    exchange.counts = each;
    EXPECT_EQ(message(world.run(exchange)), "");
    EXPECT_EQ(from_all, wanted);
  });
}

// A map x -> a * x + b; (f (+) g)(x) = g(f(x)), which does not commute.
void compose(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto* f = static_cast<const std::int64_t*>(a) + 2 * i;
    const auto* g = static_cast<const std::int64_t*>(b) + 2 * i;
    const std::int64_t composed[] = {f[0] * g[0], f[1] * g[0] + g[1]};
    std::copy_n(composed, 2, static_cast<std::int64_t*>(into) + 2 * i);
  }
}

// Rank r sends r + 1 numbers to the right in a ring, and one to itself if r is even.
TEST(Communicator, Neighbors) {
  for (const std::uint32_t ranks : {1u, 2u, 6u}) {
    on_all(ranks, [&](Communicator& world) {
      const std::uint32_t me = world.rank(), right = (me + 1) % ranks;
      const std::uint32_t left = (me + ranks - 1) % ranks;
      std::vector<std::uint64_t> sends(ranks), receives(ranks);
      sends[right] += me + 1;
      receives[left] += left + 1;
      if (me % 2 == 0) sends[me] += 1, receives[me] += 1;
      std::vector<Neighbor> neighbors;
      Vector expected, all;
      for (std::uint32_t rank = ranks; rank-- > 0;) {
        if (sends[rank] + receives[rank] > 0) {
          neighbors.push_back({rank, sends[rank], receives[rank]});
        }
      }
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::uint64_t i = 0; i < sends[rank]; ++i) all.push_back(value(me, rank));
        for (std::uint64_t i = 0; i < receives[rank]; ++i) expected.push_back(value(rank, me));
      }
      auto counts = world.neighbor_counts(neighbors);
      ASSERT_TRUE(counts) << counts.error().message;
      Vector received(expected.size(), -1);
      Call call = call::all_to_all(In(all), Out(received), 0);
      call.counts = *counts;
      EXPECT_EQ(message(world.run(call)), "");
      EXPECT_EQ(received, expected);

      if (ranks == 1) return;
      neighbors.front().send += me == 1 ? 7 : 0;
      const auto refused = world.neighbor_counts(neighbors);
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().message.find("neighbors: rank 1 sends "), std::string::npos)
          << refused.error().message;
      neighbors.push_back(neighbors.front());
      EXPECT_FALSE(world.neighbor_counts(neighbors));
      neighbors.assign(1, {ranks, 1, 1});
      EXPECT_FALSE(world.neighbor_counts(neighbors));
    });
  }
}

TEST(Communicator, OperatorThatDoesNotCommute) {
  on_all(6, [](Communicator& world) {
    std::vector<std::int64_t> map = {2, world.rank() + 1}, out(2);
    const Operator op{.op = Op::kCustom,
                      .type = Type::kCustom,
                      .commutes = false,
                      .element_bytes = 16,
                      .custom_id = 7,
                      .custom = compose};
    EXPECT_EQ(message(world.run({.collective = Collective::kAllreduce,
                                 .send = map.data(),
                                 .receive = out.data(),
                                 .count = 1,
                                 .op = op})),
              "");
    std::int64_t expected[] = {1, 0};
    for (std::int64_t rank = 0; rank < 6; ++rank) {
      expected[0] *= 2;
      expected[1] = expected[1] * 2 + rank + 1;
    }
    EXPECT_EQ(out, std::vector<std::int64_t>(expected, expected + 2));
  });
}

TEST(Communicator, StartsRunInOrder) {
  on_all(4, [](Communicator& world) {
    std::vector<Vector> data(20);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = values(world.rank(), 10 + 500 * i);
      auto request = world.start(call::allreduce<std::int64_t>(data[i], data[i], Op::kMax));
      ASSERT_TRUE(request) << request.error().message;
      requests.push_back(*std::move(request));
    }
    while (true) {
      const auto done = requests.back().test();
      ASSERT_TRUE(done);
      if (*done) break;
    }
    for (std::size_t i = 0; i < data.size(); ++i) {
      EXPECT_EQ(message(requests[i].wait()), "");
      EXPECT_EQ(data[i], values(3, 10 + 500 * i));
    }
  });
}

TEST(Communicator, Plans) {
  on_all(3, [](Communicator& world) {
    Vector data(100), out(100);
    auto plan = world.plan(call::allreduce<std::int64_t>(data, out, Op::kSum));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_NE(plan->algorithm(), "");
    for (std::int64_t repetition = 0; repetition < 50; ++repetition) {
      data.assign(100, repetition + world.rank());
      EXPECT_EQ(message(plan->start()), "");
      EXPECT_EQ(message(plan->wait()), "");
      EXPECT_EQ(out, Vector(100, 3 * repetition + 3));
    }
  });
}

// Calls that come again take their operation again. There are more kinds of call than are kept.
TEST(Communicator, CallsComeAgain) {
  on_all(3, [](Communicator& world) {
    Vector data(40), out(40), other(40);
    const std::int64_t rank = world.rank();
    for (std::int64_t repetition = 0; repetition < 40; ++repetition) {
      const auto kind = repetition % 7;
      Vector& target = kind == 3 ? other : out;
      const std::uint64_t count = kind == 5 ? 20 : 40;
      const std::span<const std::int64_t> from(data.data(), count);
      const std::span<std::int64_t> into(target.data(), count);
      data.assign(40, repetition + rank);
      out.assign(40, -1);
      const Op op = kind == 4 ? Op::kMax : Op::kSum;
      ASSERT_EQ(message(world.allreduce<std::int64_t>(from, into, op)), "");
      const std::int64_t expected = op == Op::kMax ? repetition + 2 : 3 * repetition + 3;
      EXPECT_EQ(Vector(into.begin(), into.end()), Vector(count, expected)) << repetition;
      ASSERT_EQ(message(world.allreduce<std::int64_t>(data, op)), "");  // in place
      EXPECT_EQ(data, Vector(40, expected)) << repetition;
      data.assign(40, repetition + rank);
      const auto root = static_cast<std::uint32_t>(repetition / 2 % 3);
      ASSERT_EQ(message(world.broadcast<std::int64_t>(data, root)), "");
      EXPECT_EQ(data, Vector(40, repetition + root)) << repetition;
      ASSERT_EQ(message(world.barrier()), "");
    }
  });
}

// Rows and columns of a grid, in flight at once, in random order.
TEST(Communicator, RowsAndColumns) {
  on_all(6, [](Communicator& world) {
    const std::uint32_t row = world.rank() / 3, column = world.rank() % 3;
    auto rows = world.split(row);
    ASSERT_TRUE(rows) << rows.error().message;
    auto columns = world.split(column, -static_cast<std::int64_t>(world.rank()));
    ASSERT_TRUE(columns) << columns.error().message;
    ASSERT_EQ(rows->size(), 1u);
    Communicator& my_row = rows->front();
    Communicator& my_column = columns->front();
    EXPECT_EQ(my_row.rank(), column);
    EXPECT_EQ(my_column.rank(), 1 - row);  // keys descend
    std::mt19937 random(1);
    for (int repetition = 0; repetition < 200; ++repetition) {
      const std::uint64_t count = random() % 3000;
      Vector a(count, world.rank()), b(count, world.rank());
      auto first = my_row.start(call::allreduce<std::int64_t>(a, a, Op::kSum));
      auto second = my_column.start(call::allreduce<std::int64_t>(b, b, Op::kSum));
      ASSERT_TRUE(first && second);
      // Ranks wait in different orders.
      Request* order[] = {&*first, &*second};
      if (world.rank() % 2 == 0) std::swap(order[0], order[1]);
      for (Request* request : order) ASSERT_EQ(message(request->wait()), "");
      ASSERT_EQ(a, Vector(count, 9 * row + 3));
      ASSERT_EQ(b, Vector(count, 2 * column + 3));
    }
    const auto none = world.split(world.rank() == 0 ? 0 : -1);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->size(), world.rank() == 0 ? 1u : 0u);
  });
}

TEST(Communicator, ProgressThread) {
  on_all(
      3,
      [](Communicator& world) {
        Vector data = values(world.rank(), 50'000);
        auto request = world.start(call::allreduce<std::int64_t>(data, data, Op::kMax));
        ASSERT_TRUE(request);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        EXPECT_EQ(message(request->wait()), "");
        EXPECT_EQ(data, values(2, 50'000));
      },
      [](JoinOptions& options, std::uint32_t) { options.progress_thread = true; });
}

// Elements that no rank would get are refused, by the one rank that has them or by all.
TEST(Communicator, RefusesElementsThatWouldBeLost) {
  on_all(4, [](Communicator& world) {
    Vector nine(9), out(20);
    EXPECT_EQ(message(world.all_to_all(In(nine), Out(out))),
              "all-to-all: `send` has 9 elements; expected a multiple of 4");
    EXPECT_EQ(message(world.all_to_all(In(nine), Out(nine))),
              "all-to-all: `send` has 9 elements; expected a multiple of 4");
    EXPECT_EQ(message(world.run(call::all_to_all(In(nine).first(8), Out(out), 1))),
              "all-to-all: `send` has 8 elements; expected 4");
    EXPECT_EQ(message(world.reduce_scatter(In(nine), Out(out).first(2), Op::kSum)),
              "reduce-scatter: `send` has 9 elements; expected 8");
    if (world.rank() == 1) {
      EXPECT_EQ(message(world.scatter(In(nine), Out(out).first(2), 1)),
                "scatter: `send` has 9 elements; expected 8");
    }
    const std::vector<std::uint64_t> counts = {1, 2, 3, 4};
    Call unequal = call::allgather(In(nine), Out(out));
    unequal.counts = counts;
    EXPECT_EQ(message(world.run(unequal)),
              "allgather: `send` has 9 elements; expected " + std::to_string(counts[world.rank()]));
    // `receive` may be longer; its rest stays as it was.
    out.assign(20, -1);
    EXPECT_EQ(message(world.allgather(In(nine).first(2), Out(out))), "");
    EXPECT_EQ(out, [] {
      Vector expected(20, -1);
      std::fill_n(expected.begin(), 8, 0);
      return expected;
    }());
  });
}

// Memory of the two that overlaps by an element: refused before anything starts, whatever schedule
// would serve the call.
TEST(Communicator, RefusesOverlappingBuffers) {
  on_all(3, [](Communicator& world) {
    const std::string overlap = ": `send` and `receive` overlap; expected ";
    const std::string same = "the same memory or none in common";
    Vector data(400);
    const auto check = [&](Call call, const std::string& expected) {
      EXPECT_EQ(message(world.run(call)), expected);
      EXPECT_FALSE(world.plan(call));
      EXPECT_FALSE(world.start(call));
    };
    const In low = In(data).first(60);
    const Out high = Out(data).subspan(59, 60);
    const std::uint32_t me = world.rank();
    for (const auto& [send, receive] :
         {std::pair<In, Out>{low, high}, {high, Out(data).first(60)}}) {
      check(call::allreduce(send, receive, Op::kSum), "allreduce" + overlap + same);
      check(call::scan(send, receive, Op::kSum), "scan" + overlap + same);
      if (me != 0) check(call::exscan(send, receive, Op::kSum), "exscan" + overlap + same);
      check(call::reduce(send, receive, Op::kSum, me), "reduce" + overlap + same);
      check(call::all_to_all(send, receive, 20), "all-to-all" + overlap + same);
      Call exchange = call::all_to_all(send, receive, 0);
      const std::vector<std::uint64_t> each(9, 20);
      exchange.counts = each;
      check(exchange, "all-to-all" + overlap + same);
    }
    // Not at this rank's part: one element below it.
    const std::string part = "`send` at this rank's part of `receive` or none in common";
    const In own = In(data).subspan(10 * me + 99, 10);
    const Out whole = Out(data).subspan(100, 30);
    check(call::gather(own, whole, me), "gather" + overlap + part);
    check(call::allgather(own, whole), "allgather" + overlap + part);
    const std::vector<std::uint64_t> counts(3, 10);
    Call unequal = call::allgather(own, whole);
    unequal.counts = counts;
    check(unequal, "allgather" + overlap + part);
    const std::string of_send = "`receive` at this rank's part of `send` or none in common";
    const Out into = Out(data).subspan(10 * me + 101, 10);
    check(call::scatter(In(whole), into, me), "scatter" + overlap + of_send);
    check(call::reduce_scatter(In(whole), into, Op::kSum), "reduce-scatter" + overlap + of_send);
    EXPECT_EQ(message(world.barrier()), "");  // nothing was started
    // In place, and next to each other, both are served; so is memory that this rank does not use.
    EXPECT_EQ(message(world.allgather(In(data).subspan(100 + 10 * me, 10), whole)), "");
    EXPECT_EQ(message(world.allreduce(In(data).first(60), Out(data).subspan(60, 60), Op::kSum)),
              "");
    EXPECT_EQ(message(world.reduce(low, me == 0 ? Out(data).subspan(60, 60) : high, Op::kSum, 0)),
              "");
  });
}

TEST(Communicator, RefusesArgumentsThatContradict) {
  on_all(2, [](Communicator& world) {
    Vector data(4), out(7);
    EXPECT_EQ(message(world.broadcast(Out(data), 2)), "broadcast: root 2 of 2 ranks");
    EXPECT_EQ(message(world.allgather(In(data), Out(out))),
              "allgather: `receive` has 7 elements; expected 8");
    std::vector<float> floats(4);
    EXPECT_EQ(message(world.allreduce<float>(floats, Op::kXor)),
              "allreduce: operator xor is not defined for type f32");
    Call gather = call::gather(In(data), Out(out), 0);
    const std::vector<std::uint64_t> counts = {4};
    gather.counts = counts;
    EXPECT_EQ(message(world.run(gather)), "gather: 1 counts; expected 2");
    EXPECT_EQ(message(world.allreduce(Out(data), Op::kSum)), "");  // nothing was started
  });
}

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
      Vector data = values(rank, 1000);
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

TEST(Communicator, JoinRefusesOptions) {
  LocalJob job(1);
  JoinOptions options = options_of(job, 0);
  options.provider = "none such";
  EXPECT_FALSE(join(options));
  options = options_of(job, 0);
  options.schedules = {"/no/such/file"};
  const auto unread = join(options);
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().message,
            "the schedule: cannot read '/no/such/file': No such file or directory");
  options = options_of(job, 0);
  options.model = "/no/such/model";
  EXPECT_FALSE(join(options));
}

TEST(Communicator, JoinRefusesToAuthenticateData) {
  LocalJob job(1);
  JoinOptions options = options_of(job, 0);
  options.authenticate_data = true;
  EXPECT_TRUE(join(options));
  options.provider = "mem";
  const auto over_memory = join(options);
  ASSERT_FALSE(over_memory);
  EXPECT_EQ(over_memory.error().message,
            "authenticate_data: provider 'mem' cannot authenticate payloads; expected tcp or shm");
  auto server = bootstrap::Server::start("127.0.0.1:0", 1, {});
  ASSERT_TRUE(server) << server.error().message;
  options = {};
  options.bootstrap.method = bootstrap::Method::kTable;
  options.bootstrap.table = {(*server)->address()};
  options.bootstrap.rank = 0;
  options.provider = "tcp";
  options.authenticate_data = true;
  const auto without_secret = join(options);
  ASSERT_FALSE(without_secret);
  EXPECT_EQ(
      without_secret.error().message,
      "authenticate_data needs a job secret; expected ESPALIER_SECRET_FILE, or a launcher that "
      "makes one");
}

TEST(Communicator, JoinRefusesImages) {
  LocalJob job(1);
  const std::pair<NodeImage, std::string> cases[] = {
      {{.public_key = "k"},
       "image: public_key or takes_unsigned without an image; expected file or flash"},
      {{.takes_unsigned = true},
       "image: public_key or takes_unsigned without an image; expected file or flash"},
      {{.file = "a", .flash = "b", .takes_unsigned = true},
       "image: a file and a flash; expected one of them"},
      {{.file = "a"}, "image: expected public_key, or takes_unsigned, and not both"},
      {{.flash = "a", .public_key = "k", .takes_unsigned = true},
       "image: expected public_key, or takes_unsigned, and not both"},
      {{.file = "/no/such-%r.img", .takes_unsigned = true},
       "the image: cannot read '/no/such-0.img': No such file or directory"},
  };
  for (const auto& [image, expected] : cases) {
    JoinOptions options = options_of(job, 0);
    options.image = image;
    const auto joined = join(options);
    ASSERT_FALSE(joined) << expected;
    EXPECT_EQ(joined.error().message, expected);
  }
}

// One thread copies most of the time, while another one calls, too.
TEST(Communicator, TwoThreadsAtOnceAreAnError) {
  LocalJob job(1);
  auto world = or_throw(join(options_of(job, 0)));
  Vector data(1 << 20), out(1 << 20), other(1 << 20);
  std::atomic<bool> seen = false;
  std::atomic<int> errors = 0;
  const auto copy = [&](Vector& to) {
    const auto done = world.allreduce(In(data), Out(to), Op::kSum);
    if (done) return;
    EXPECT_EQ(message_of(done),
              "another thread uses this communicator; expected one thread at a time");
    ++errors;
    seen = true;
  };
  std::thread copies([&] {
    for (int i = 0; i < 20'000 && !seen; ++i) copy(out);
  });
  for (int i = 0; i < 20'000 && !seen; ++i) copy(other);
  copies.join();
  EXPECT_GT(errors, 0);
  EXPECT_TRUE(world.barrier());  // Nothing has changed.
}

// A rank that ends its parts waits for no other rank: the others end theirs later, in another
// order.
TEST(Communicator, PartsEndInAnyOrder) {
  std::atomic<int> ended = 0;
  on_all(3, [&](Communicator& world) {
    for (int round = 1; round <= 5; ++round) {
      auto first = std::move(or_throw(world.split(0)).front());
      auto second = std::move(or_throw(world.split(0)).front());
      std::vector<std::int64_t> one = {1}, sums = {0}, later = {0};
      EXPECT_TRUE(first.allreduce(In(one), Out(sums), Op::kSum));
      EXPECT_EQ(sums[0], 3);
      auto request = or_throw(second.start(call::allreduce<std::int64_t>(one, later, Op::kSum)));
      if (world.rank() == 0) {
        { const Communicator gone = std::move(first); }
        { const Communicator gone = std::move(second); }
        ended = round;
      } else {
        while (ended < round) std::this_thread::yield();
        { const Communicator gone = std::move(second); }
        { const Communicator gone = std::move(first); }
      }
      EXPECT_TRUE(request.wait());
      EXPECT_EQ(later[0], 3);
      EXPECT_TRUE(world.barrier());
    }
  });
}

}  // namespace
}  // namespace espalier
