// Calls and options that a communicator refuses: nothing is started, and later calls work.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/testing/contains.h"
#include "base/testing/results.h"
#include "bootstrap/server.h"
#include "communicator/testing/local_job.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/communicator.h"

namespace espalier {
namespace {

using namespace communicator::testing;

// Elements that no rank would get are refused, by the one rank that has them or by all.
TEST(Communicator, RefusesElementsThatWouldBeLost) {
  on_all(4, [](Communicator& world) {
    Vector nine(9), out(20);
    EXPECT_EQ(message_of(world.all_to_all(In(nine), Out(out))),
              "all-to-all: `send` has 9 elements; expected a multiple of 4");
    EXPECT_EQ(message_of(world.all_to_all(In(nine), Out(nine))),
              "all-to-all: `send` has 9 elements; expected a multiple of 4");
    EXPECT_EQ(message_of(world.run(call::all_to_all(In(nine).first(8), Out(out), 1))),
              "all-to-all: `send` has 8 elements; expected 4");
    EXPECT_EQ(message_of(world.reduce_scatter(In(nine), Out(out).first(2), Op::kSum)),
              "reduce-scatter: `send` has 9 elements; expected 8");
    if (world.rank() == 1) {
      EXPECT_EQ(message_of(world.scatter(In(nine), Out(out).first(2), 1)),
                "scatter: `send` has 9 elements; expected 8");
    }
    const std::vector<std::uint64_t> counts = {1, 2, 3, 4};
    Call unequal = call::allgather(In(nine), Out(out));
    unequal.counts = counts;
    EXPECT_EQ(message_of(world.run(unequal)),
              "allgather: `send` has 9 elements; expected " + std::to_string(counts[world.rank()]));
    // `receive` may be longer; its rest stays as it was.
    out.assign(20, -1);
    EXPECT_EQ(message_of(world.allgather(In(nine).first(2), Out(out))), "");
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
      EXPECT_EQ(message_of(world.run(call)), expected);
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
    EXPECT_EQ(message_of(world.barrier()), "");  // nothing was started
    // In place, and next to each other, both are served; so is memory that this rank does not use.
    EXPECT_EQ(message_of(world.allgather(In(data).subspan(100 + 10 * me, 10), whole)), "");
    EXPECT_EQ(message_of(world.allreduce(In(data).first(60), Out(data).subspan(60, 60), Op::kSum)),
              "");
    EXPECT_EQ(
        message_of(world.reduce(low, me == 0 ? Out(data).subspan(60, 60) : high, Op::kSum, 0)), "");
  });
}

TEST(Communicator, RefusesArgumentsThatContradict) {
  on_all(2, [](Communicator& world) {
    Vector data(4), out(7);
    EXPECT_EQ(message_of(world.broadcast(Out(data), 2)), "broadcast: root 2 of 2 ranks");
    EXPECT_EQ(message_of(world.allgather(In(data), Out(out))),
              "allgather: `receive` has 7 elements; expected 8");
    std::vector<float> floats(4);
    EXPECT_EQ(
        message_of(world.allreduce(floats, Op::kXor)),
        "allreduce: operator xor is not defined for type f32; expected sum, product, min, max "
        "or custom");
    Call custom = call::allreduce(In(data), Out(data), Op::kCustom);
    EXPECT_EQ(message_of(world.run(custom)),
              "allreduce: the custom operator has no function; expected Operator::custom, in C "
              "espalier_call::combine");
    custom.op = {.op = Op::kSum, .type = Type::kCustom, .element_bytes = 8};
    EXPECT_EQ(message_of(world.run(custom)),
              "allreduce: operator sum is not defined for type custom; expected custom");
    Call gather = call::gather(In(data), Out(out), 0);
    const std::vector<std::uint64_t> counts = {4};
    gather.counts = counts;
    EXPECT_EQ(message_of(world.run(gather)), "gather: 1 count; expected 2");
    EXPECT_EQ(message_of(world.allreduce(Out(data), Op::kSum)), "");  // nothing was started
  });
}

TEST(Communicator, RefusesCountsThatAreTooLargeOrMissing) {
  const auto body = [](Communicator& world) {
    Vector data(4), out(4);
    for (const std::uint64_t count : {UINT64_MAX, UINT64_MAX / 4 + 1, std::uint64_t{1} << 38}) {
      for (const Collective collective : kAllCollectives) {
        if (collective == Collective::kBarrier) continue;
        EXPECT_EQ(message_of(world.run({.collective = collective,
                                        .send = data.data(),
                                        .receive = out.data(),
                                        .count = count,
                                        .op = {.op = Op::kSum, .type = Type::kI64}})),
                  collective_name(collective) + std::string(": too large"));
      }
      const std::vector<std::uint64_t> counts(world.size(), count);
      EXPECT_EQ(message_of(world.allgatherv(data, out, counts)), "allgather: too large");
    }
    const auto expected = [&](const std::string& name, std::uint32_t entries) {
      return name + ": 0 counts; expected " + std::to_string(entries);
    };
    const std::uint32_t ranks = world.size();
    EXPECT_EQ(message_of(world.scatterv(data, out, {}, 0)), expected("scatter", ranks));
    EXPECT_EQ(message_of(world.gatherv(data, out, {}, 0)), expected("gather", ranks));
    EXPECT_EQ(message_of(world.allgatherv(data, out, {})), expected("allgather", ranks));
    EXPECT_EQ(message_of(world.reduce_scatterv(data, out, {}, Op::kSum)),
              expected("reduce-scatter", ranks));
    EXPECT_EQ(message_of(world.all_to_allv(data, out, {})), expected("all-to-all", ranks * ranks));
    EXPECT_TRUE(world.barrier());  // nothing was started
  };
  on_all(1, body);
  on_all(2, body);
}

constexpr char kShmRefusal[] =
    "\": a peer that is stopped or killed can block all processes that share its memory; expected "
    "mem, which joins the processes of one host";

TEST(Communicator, JoinRefusesOptions) {
  LocalJob job(1);
  JoinOptions options = options_of(job, 0);
  options.provider = "none such";
  EXPECT_FALSE(join(options));
  for (const char* name : {"shm", "mem+shm"}) {
    options.provider = name;
    const auto refused = join(options);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().message, std::string("provider \"") + name + kShmRefusal);
  }
  options = options_of(job, 0);
  options.provider.clear();
  for (const auto& [name, expected] :
       {std::pair{"shm", std::string("FI_PROVIDER=shm: provider \"shm") + kShmRefusal},
        {"nonsense", "FI_PROVIDER=nonsense: "}}) {
    setenv("FI_PROVIDER", name, 1);
    EXPECT_PRED2(contains, message_of(join(options)), expected);
    unsetenv("FI_PROVIDER");
  }
  options = options_of(job, 0);
  for (const char* address : {"[::1", "fe80::1%none", "here"}) {
    options.local_address = address;
    EXPECT_PRED2(contains, message_of(join(options)),
                 std::string("local_address '") + address + "' is not an IP address; expected");
  }
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
            "authenticate_data: provider 'mem' cannot authenticate payloads; expected tcp");
  auto server = or_throw(bootstrap::Server::start("127.0.0.1:0", 1, {}));
  options = {};
  options.bootstrap.method = bootstrap::Method::kTable;
  options.bootstrap.table = {server->address()};
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

}  // namespace
}  // namespace espalier
