// Communicators of the threads of one process, over tcp on the loopback interface.

#include "espalier/communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "communicator/testing/local_job.h"

namespace espalier {
namespace {

using namespace communicator::testing;

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
  EXPECT_EQ(message_of(world.broadcast(Out(data), root)), "");
  EXPECT_EQ(data, values(root, count));

  Vector sums(count);
  for (std::uint64_t i = 0; i < count; ++i) sums[i] = sum_of(ranks, i);
  const Vector own = values(me, count);
  Vector out(count, -1);
  EXPECT_EQ(message_of(world.reduce(In(own), Out(out), Op::kSum, root)), "");
  EXPECT_EQ(out, me == root ? sums : Vector(count, -1));
  Vector in_place = own;
  EXPECT_EQ(message_of(world.reduce(In(in_place), Out(in_place), Op::kSum, root)), "");
  if (me == root) {
    EXPECT_EQ(in_place, sums);
  }
  out.assign(count, -1);
  EXPECT_EQ(message_of(world.allreduce(In(own), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, sums);
  in_place = own;
  EXPECT_EQ(message_of(world.allreduce(Out(in_place), Op::kSum)), "");
  EXPECT_EQ(in_place, sums);

  Vector prefix(count), before(count, -1);
  for (std::uint64_t i = 0; i < count; ++i) {
    prefix[i] = sum_of(me + 1, i);
    if (me > 0) before[i] = sum_of(me, i);
  }
  out.assign(count, -1);
  EXPECT_EQ(message_of(world.scan(In(own), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, prefix);
  out.assign(count, -1);
  EXPECT_EQ(message_of(world.exscan(In(own), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, before);
  in_place = own;
  EXPECT_EQ(message_of(world.scan(In(in_place), Out(in_place), Op::kSum)), "");
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
  EXPECT_EQ(message_of(world.scatter(In(parts), Out(out), root)), "");
  EXPECT_EQ(out, own);
  Vector all(count * ranks, -1);
  EXPECT_EQ(message_of(world.gather(In(own), Out(all), root)), "");
  EXPECT_EQ(all, me == root ? parts : Vector(count * ranks, -1));
  all.assign(count * ranks, -1);
  EXPECT_EQ(message_of(world.allgather(In(own), Out(all))), "");
  EXPECT_EQ(all, parts);
  // In place: this rank's part is where it belongs.
  all.assign(count * ranks, -1);
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(me * count));
  EXPECT_EQ(message_of(world.allgather(In(all).subspan(me * count, count), Out(all))), "");
  EXPECT_EQ(all, parts);

  out.assign(count, -1);
  Vector expected(count);
  for (std::uint64_t i = 0; i < count; ++i) expected[i] = value(me, i) * ranks;
  EXPECT_EQ(message_of(world.reduce_scatter(In(parts), Out(out), Op::kSum)), "");
  EXPECT_EQ(out, expected);

  Vector to_all(count * ranks), from_all(count * ranks, -1), wanted(count * ranks);
  for (std::uint32_t other = 0; other < ranks; ++other) {
    for (std::uint64_t i = 0; i < count; ++i) {
      to_all[other * count + i] = value(me, i) * 100 + other;
      wanted[other * count + i] = value(other, i) * 100 + me;
    }
  }
  EXPECT_EQ(message_of(world.all_to_all(In(to_all), Out(from_all))), "");
  EXPECT_EQ(from_all, wanted);
  EXPECT_EQ(message_of(world.all_to_all(In(to_all), Out(to_all))), "");
  EXPECT_EQ(to_all, wanted);
  EXPECT_EQ(message_of(world.barrier()), "");
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
          auto plan = or_throw(world.plan(call::barrier()));
          EXPECT_EQ(plan.algorithm(), barrier) << names;
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
    EXPECT_EQ(message_of(world.run(gather)), "");
    EXPECT_EQ(all, parts);
    Vector out(counts[me], -1);
    Call scatter = call::scatter(In(parts), Out(out), 3);
    scatter.counts = counts;
    EXPECT_EQ(message_of(world.run(scatter)), "");
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
    EXPECT_EQ(message_of(world.run(exchange)), "");
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
      auto counts = or_throw(world.neighbor_counts(neighbors));
      Vector received(expected.size(), -1);
      Call call = call::all_to_all(In(all), Out(received), 0);
      call.counts = counts;
      EXPECT_EQ(message_of(world.run(call)), "");
      EXPECT_EQ(received, expected);

      if (ranks == 1) return;
      neighbors.front().send += me == 1 ? 7 : 0;
      const auto refused = world.neighbor_counts(neighbors);
      ASSERT_FALSE(refused);
      EXPECT_PRED2(contains, refused.error().message, "neighbors: rank 1 sends ");
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
    EXPECT_EQ(message_of(world.run({.collective = Collective::kAllreduce,
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

static_assert(type_of<char>() == Type::kI8 && type_of<bool>() == Type::kU8);

// Elements are whatever is contiguous, or a scalar; `{}` where only the root uses them.
TEST(Communicator, RangesAndScalars) {
  on_all(3, [](Communicator& world) {
    const bool is_root = world.rank() == 0;
    std::vector<float> vector(4, 1);
    const std::array<float, 4> array = {1, 2, 3, 4};
    float plain[4] = {};
    EXPECT_EQ(message_of(world.allreduce(vector, Op::kSum)), "");
    EXPECT_EQ(vector, std::vector<float>(4, 3));
    EXPECT_EQ(message_of(world.allreduce(array, plain, Op::kMax)), "");
    EXPECT_EQ(plain[3], 4);
    std::uint32_t sum = world.rank();
    EXPECT_EQ(message_of(world.allreduce(sum, Op::kSum)), "");
    EXPECT_EQ(sum, 3u);
    const double own = world.rank();
    double first = -1;
    EXPECT_EQ(message_of(world.reduce(own, first, Op::kMax, 0)), "");
    EXPECT_EQ(first, is_root ? 2 : -1);
    std::vector<double> all(is_root ? 3 : 0);
    EXPECT_EQ(message_of(is_root ? world.gather(own, all, 0) : world.gather(own, {}, 0)), "");
    if (is_root) {
      EXPECT_EQ(all, std::vector<double>({0, 1, 2}));
    }
    double mine = -1;
    EXPECT_EQ(message_of(is_root ? world.scatter(all, mine, 0) : world.scatter({}, mine, 0)), "");
    EXPECT_EQ(mine, own);
    auto text = is_root ? std::string("root") : std::string("    ");
    EXPECT_EQ(message_of(world.broadcast(text, 0)), "");
    EXPECT_EQ(text, "root");
    bool any = is_root;
    EXPECT_EQ(message_of(world.allreduce(any, Op::kMax)), "");
    EXPECT_TRUE(any);
    EXPECT_EQ(message_of(world.allreduce(any, Op::kSum)),
              "allreduce: operator sum is not defined for type bool; expected max or min");
    std::uint32_t scanned = 1, below = 2;
    EXPECT_EQ(message_of(world.scan(scanned, Op::kSum)), "");
    EXPECT_EQ(scanned, world.rank() + 1);
    EXPECT_EQ(message_of(world.exscan(below, Op::kSum)), "");
    EXPECT_EQ(below, is_root ? 2 : 2 * world.rank());
    EXPECT_EQ(message_of(world.run(call::allreduce(scanned, Op::kMax))), "");
    EXPECT_EQ(scanned, 3u);
  });
}

TEST(Communicator, PartsOfUnequalCounts) {
  on_all(3, [](Communicator& world) {
    const std::uint32_t me = world.rank();
    const std::vector<std::uint64_t> counts = {2, 0, 3};
    const Vector whole = {10, 11, 20, 21, 22};
    const Vector mine = me == 0 ? Vector{10, 11} : me == 1 ? Vector{} : Vector{20, 21, 22};
    Vector part(mine.size());
    EXPECT_EQ(message_of(me == 2 ? world.scatterv(whole, part, counts, 2)
                                 : world.scatterv({}, part, counts, 2)),
              "");
    EXPECT_EQ(part, mine);
    Vector all(whole.size());
    EXPECT_EQ(message_of(world.allgatherv(part, all, counts)), "");
    EXPECT_EQ(all, whole);
    Vector at_root(me == 1 ? whole.size() : 0);
    EXPECT_EQ(message_of(world.gatherv(part, at_root, counts, 1)), "");
    if (me == 1) {
      EXPECT_EQ(at_root, whole);
    }
    EXPECT_EQ(message_of(world.reduce_scatterv(whole, part, counts, Op::kSum)), "");
    for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], 3 * mine[i]);
    // Rank o sends o elements to each.
    const std::vector<std::uint64_t> pairs = {0, 0, 0, 1, 1, 1, 2, 2, 2};
    const Vector sent(3 * me, me);
    Vector got(3);
    EXPECT_EQ(message_of(world.all_to_allv(sent, got, pairs)), "");
    EXPECT_EQ(got, (Vector{1, 2, 2}));
    EXPECT_EQ(message_of(world.allgatherv(part, all, std::vector<std::uint64_t>{1, 2})),
              "allgather: 2 counts; expected 3");
  });
}

// Requests and plans may last longer: they keep no membership in the job.
TEST(Communicator, Leaves) {
  std::shared_ptr<bootstrap::Bootstrap> members[2];
  const auto body = [&](Communicator& world) {
    const std::string left = "the communicator has left; expected this call before leave()";
    const auto& member = members[world.rank()];
    auto part = or_throw(world.split(0));
    std::vector<Request> requests;
    std::vector<Plan> plans;
    for (Communicator* each : {&*part, &world}) {
      requests.push_back(or_throw(each->start(call::barrier())));
      plans.push_back(or_throw(each->plan(call::barrier())));
    }
    EXPECT_EQ(message_of(part->leave()), "");
    EXPECT_EQ(part->size(), 0u);
    EXPECT_EQ(message_of(plans[0].start()), left);
    EXPECT_NE(message_of(part->leave()), "");
    EXPECT_GT(member.use_count(), 2);
    EXPECT_EQ(message_of(world.leave()), "");
    EXPECT_EQ(member.use_count(), 2);  // and of the options
    EXPECT_NE(message_of(world.barrier()), "");
    for (Request& each : requests) EXPECT_EQ(message_of(each.wait()), "");
    for (Plan& each : plans) EXPECT_EQ(message_of(each.start()), left);
  };
  on_all(2, body,
         [&](JoinOptions& options, std::uint32_t rank) { members[rank] = options.membership; });
}

// Between two calls the library's thread wakes at most 10 times a second in each process.
TEST(Communicator, AnIdleProcessWakesSeldom) {
  for (const char* provider : {"mem", "tcp"}) {
    std::atomic<long> before = 0;
    constexpr int kSeconds = 2;
    constexpr long kRanks = 2;
    const auto switches = [] {
      rusage usage = {};
      getrusage(RUSAGE_SELF, &usage);
      return usage.ru_nvcsw;
    };
    on_all(
        kRanks,
        [&](Communicator& world) {
          ASSERT_EQ(message_of(world.barrier()), "");
          if (world.rank() == 0) before = switches();
          std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
          // Each thread of the program sleeps once, too.
          if (world.rank() == 0) {
            EXPECT_LE(switches() - before, kRanks * (10 * kSeconds + 3)) << provider;
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        },
        [&](JoinOptions& options, std::uint32_t) { options.provider = provider; });
  }
}

TEST(Communicator, TakesIpv6Addresses) {
  for (const char* address : {"::1", "[::1]"}) {
    on_all(
        2, [](Communicator& world) { check_all(world, 1'000, 1); },
        [address](JoinOptions& options, std::uint32_t) { options.local_address = address; });
  }
}

TEST(Communicator, StartsRunInOrder) {
  on_all(4, [](Communicator& world) {
    std::vector<Vector> data(20);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = values(world.rank(), 10 + 500 * i);
      auto request = world.start(call::allreduce(data[i], data[i], Op::kMax));
      ASSERT_TRUE(request) << request.error().message;
      requests.push_back(*std::move(request));
    }
    while (!or_throw(requests.back().test())) continue;
    for (std::size_t i = 0; i < data.size(); ++i) {
      EXPECT_EQ(message_of(requests[i].wait()), "");
      EXPECT_EQ(data[i], values(3, 10 + 500 * i));
    }
  });
}

TEST(Communicator, Plans) {
  on_all(3, [](Communicator& world) {
    Vector data(100), out(100);
    auto plan = or_throw(world.plan(call::allreduce(data, out, Op::kSum)));
    EXPECT_NE(plan.algorithm(), "");
    for (std::int64_t repetition = 0; repetition < 50; ++repetition) {
      data.assign(100, repetition + world.rank());
      EXPECT_EQ(message_of(plan.start()), "");
      EXPECT_EQ(message_of(plan.wait()), "");
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
      ASSERT_EQ(message_of(world.allreduce(from, into, op)), "");
      const std::int64_t expected = op == Op::kMax ? repetition + 2 : 3 * repetition + 3;
      EXPECT_EQ(Vector(into.begin(), into.end()), Vector(count, expected)) << repetition;
      ASSERT_EQ(message_of(world.allreduce(data, op)), "");  // in place
      EXPECT_EQ(data, Vector(40, expected)) << repetition;
      data.assign(40, repetition + rank);
      const auto root = static_cast<std::uint32_t>(repetition / 2 % 3);
      ASSERT_EQ(message_of(world.broadcast(data, root)), "");
      EXPECT_EQ(data, Vector(40, repetition + root)) << repetition;
      ASSERT_EQ(message_of(world.barrier()), "");
    }
  });
}

// Rows and columns of a grid, in flight at once, in random order.
TEST(Communicator, RowsAndColumns) {
  on_all(6, [](Communicator& world) {
    const std::uint32_t row = world.rank() / 3, column = world.rank() % 3;
    auto rows = world.split(row);
    ASSERT_TRUE(rows) << rows.error().message;
    auto columns = or_throw(world.split(column, -static_cast<std::int64_t>(world.rank())));
    ASSERT_TRUE(*rows && columns);
    Communicator& my_row = **rows;
    Communicator& my_column = *columns;
    EXPECT_EQ(my_row.rank(), column);
    EXPECT_EQ(my_column.rank(), 1 - row);  // keys descend
    std::mt19937 random(1);
    for (int repetition = 0; repetition < 200; ++repetition) {
      const std::uint64_t count = random() % 3000;
      Vector a(count, world.rank()), b(count, world.rank());
      auto first = my_row.start(call::allreduce(a, a, Op::kSum));
      auto second = my_column.start(call::allreduce(b, b, Op::kSum));
      ASSERT_TRUE(first && second);
      // Ranks wait in different orders.
      Request* order[] = {&*first, &*second};
      if (world.rank() % 2 == 0) std::swap(order[0], order[1]);
      for (Request* request : order) ASSERT_EQ(message_of(request->wait()), "");
      ASSERT_EQ(a, Vector(count, 9 * row + 3));
      ASSERT_EQ(b, Vector(count, 2 * column + 3));
    }
    EXPECT_EQ(or_throw(world.split(world.rank() == 0 ? 0 : -1)).has_value(), world.rank() == 0);
  });
}

TEST(Communicator, ProgressThread) {
  on_all(
      3,
      [](Communicator& world) {
        Vector data = values(world.rank(), 50'000);
        auto request = or_throw(world.start(call::allreduce(data, data, Op::kMax)));
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        EXPECT_EQ(message_of(request.wait()), "");
        EXPECT_EQ(data, values(2, 50'000));
      },
      [](JoinOptions& options, std::uint32_t) { options.progress_thread = true; });
}

// More parts than ports for long messages, which several threads of each rank use at once: every
// message reaches its own part, and no thread sleeps while another has read what it awaits.
TEST(Communicator, ThreadsWaitOnDifferentParts) {
  constexpr std::uint32_t kThreads = 4, kPartsOfThread = 4, kRounds = 20;
  on_all(3, [&](Communicator& world) {
    std::vector<Communicator> parts;
    for (std::uint32_t i = 0; i < kThreads * kPartsOfThread; ++i) {
      parts.push_back(*or_throw(world.split(0)));
    }
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::uint32_t turn = 0; turn < kRounds * kPartsOfThread; ++turn) {
          const std::uint32_t part = thread * kPartsOfThread + turn % kPartsOfThread;
          const std::uint64_t count = turn % 3 == 0 ? 20'000 + part : 1 + part;
          Vector data(count), sums(count, 3 * static_cast<std::int64_t>(part + turn) + 3);
          for (std::int64_t& each : data) each = part + turn + world.rank();
          EXPECT_EQ(message_of(parts[part].allreduce(Out(data), Op::kSum)), "");
          EXPECT_EQ(data, sums) << "part " << part << " of rank " << world.rank();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

// A part that fails amid long messages ends only its own: those of other parts go on.
TEST(Communicator, APartThatFailsDisturbsNoOther) {
  const auto body = [](Communicator& world) {
    Communicator sound = *or_throw(world.split(0));
    Communicator failing = *or_throw(world.split(0));
    Vector data(3'000'000, 1), wrong(world.rank() == 0 ? 2'000'000 : 1'000'000, 1);
    auto request = or_throw(sound.start(call::allreduce(data, data, Op::kSum)));
    EXPECT_FALSE(failing.allreduce(Out(wrong), Op::kSum));
    EXPECT_EQ(failing.cause().status, Status::kMismatch);
    EXPECT_EQ(message_of(request.wait()), "");
    EXPECT_EQ(data, Vector(data.size(), 2));
    { const Communicator gone = std::move(failing); }
    EXPECT_EQ(message_of(sound.allreduce(Out(data), Op::kSum)), "");
    EXPECT_EQ(data, Vector(data.size(), 4));
  };
  on_all(2, body, with_deadline(std::chrono::seconds(20)));
}

// A call whose messages are the first long ones needs files that the earlier calls did not.
TEST(Communicator, LongMessagesWithoutFilesAreNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::atomic<rlim_t> limit = 0;
  std::atomic<std::uint32_t> named = 0;
  const auto body = [&](Communicator& world) {
    Vector one(1, 1), many(1'000'000, 1);
    EXPECT_EQ(message_of(world.allreduce(Out(one), Op::kSum)), "");
    EXPECT_EQ(message_of(world.barrier()), "");
    if (world.rank() == 0) {
      while (fcntl(static_cast<int>(limit.load()), F_GETFD) >= 0) ++limit;
      const rlimit none{limit, before.rlim_max};
      EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    EXPECT_EQ(message_of(world.barrier()), "");
    const std::string text = message_of(world.allreduce(Out(many), Op::kSum));
    EXPECT_PRED2(contains, text, "allreduce failed: back end, found by rank ");
    const std::string files = "; node " + std::to_string(world.rank()) +
                              " needs 2 more open files; the limit of " + std::to_string(limit) +
                              " leaves 0 (ulimit -n)";
    if (text.ends_with(files)) ++named;
  };
  on_all(2, body, with_deadline(std::chrono::seconds(20)));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GE(named, 1u);
}

// A rank that ends its parts waits for no other rank: the others end theirs later, in another
// order.
TEST(Communicator, PartsEndInAnyOrder) {
  std::atomic<int> ended = 0;
  on_all(3, [&](Communicator& world) {
    for (int round = 1; round <= 5; ++round) {
      auto first = *or_throw(world.split(0));
      auto second = *or_throw(world.split(0));
      std::vector<std::int64_t> one = {1}, sums = {0}, later = {0};
      EXPECT_TRUE(first.allreduce(In(one), Out(sums), Op::kSum));
      EXPECT_EQ(sums[0], 3);
      auto request = or_throw(second.start(call::allreduce(one, later, Op::kSum)));
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
