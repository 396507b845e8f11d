// Rows and columns of 4x4 ranks, in flight at once. Each rank starts, tests and awaits random
// collectives of its row and its column in a random order of its own; every result is compared with
// the reference, bit by bit. A sample; ESPALIER_WHOLE=1: 10,000 collectives on each rank.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "communicator/testing/local_job.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/collectives/schedule/selection.h"
#include "espalier/communicator.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using communicator::testing::LocalJob;
using Vector = std::vector<std::int64_t>;

constexpr std::uint32_t kSide = 4;
constexpr std::uint32_t kRanks = kSide * kSide;
constexpr std::int64_t kUntouched = -1;
constexpr std::size_t kMaxInFlight = 8;  // on one communicator
constexpr Collective::Value kCollectives[] = {
    Collective::kBroadcast, Collective::kReduce,    Collective::kAllreduce,
    Collective::kScan,      Collective::kExscan,    Collective::kScatter,
    Collective::kGather,    Collective::kAllgather, Collective::kReduceScatter,
    Collective::kAllToAll,  Collective::kBarrier};

// How many collectives each rank starts, on its row and its column together.
std::uint64_t samples() {
  if (whole()) return 10'000;
  return small_sample() ? 40 : 400;
}

std::uint64_t seed() {
  const char* given = std::getenv("ESPALIER_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

// Collective number `number` of a communicator, the same on all of its ranks.
class Drawn {
 public:
  Drawn(std::uint64_t seed, std::uint64_t number) : random_(seed * 1'000'003 + number) {
    collective = kCollectives[random_() % std::size(kCollectives)];
    salt_ = random_() % 1000;
    if (has_root(collective)) root = static_cast<std::uint32_t>(random_() % kSide);
    constexpr Op kOperators[] = {Op::kSum, Op::kMax, Op::kXor};
    if (combines_operands(collective)) op = kOperators[random_() % std::size(kOperators)];
    count = draw_count();
    // A broadcast has one buffer. Exscan does not set the output of rank 0, so memory in place has
    // no reference there.
    in_place = collective != Collective::kExscan && random_() % 4 == 0;
    if (collective == Collective::kBroadcast) in_place = true;
    if (counts_per_rank(collective)) draw_counts();
    // The parts of an all-to-all in place would have to be as long in both directions.
    if (collective == Collective::kAllToAll && !unequal.empty()) in_place = false;
  }

  // Element i of the input of `rank`.
  [[nodiscard]] std::int64_t value(std::uint32_t rank, std::uint64_t i) const {
    return static_cast<std::int64_t>((salt_ * 7919 + rank * 104'729 + i * 31) % 1'000'003);
  }
  // Elements of the part from rank o to rank d; other collectives: of rank d.
  [[nodiscard]] std::uint64_t part(std::uint32_t o, std::uint32_t d) const {
    if (unequal.empty()) return count;
    return unequal[collective == Collective::kAllToAll ? o * kSide + d : d];
  }
  // Where that part begins in the message of rank o, or without an all-to-all in the whole one.
  [[nodiscard]] std::uint64_t offset(std::uint32_t o, std::uint32_t d) const {
    std::uint64_t sum = 0;
    for (std::uint32_t before = 0; before < d; ++before) sum += part(o, before);
    return sum;
  }
  // Element i of the reduction of ranks 0 .. ranks-1.
  [[nodiscard]] std::int64_t reduced(std::uint32_t ranks, std::uint64_t i) const {
    std::int64_t all = value(0, i);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const std::int64_t next = value(rank, i);
      if (op == Op::kSum) all += next;
      if (op == Op::kMax) all = std::max(all, next);
      if (op == Op::kXor) all ^= next;
    }
    return all;
  }

  Collective collective = Collective::kNone;
  std::uint32_t root = 0;
  Op op = Op::kNone;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> unequal;  // a count for each part; empty: all have `count`
  bool in_place = false;

 private:
  std::uint64_t draw_count() {
    switch (random_() % 16) {
      case 0: return 0;
      case 1: return 1;
      case 2: return 20'000 + random_() % 20'000;
      default: return random_() % (random_() % 2 == 0 ? 64 : 3000);
    }
  }
  void draw_counts() {
    if (random_() % 3 != 0) return;
    unequal.resize(collective == Collective::kAllToAll ? kSide * kSide : kSide);
    for (std::uint64_t& one : unequal) one = random_() % 4 == 0 ? 0 : draw_count() % 5000;
  }

  std::mt19937_64 random_;
  std::uint64_t salt_ = 0;
};

// A collective that was started, with its memory and the result that it must have.
class Started {
 public:
  Started(std::uint64_t seed, std::uint64_t number, std::uint32_t rank)
      : drawn_(seed, number), number_(number), me_(rank) {
    fill();
  }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] Result<void> start(Communicator& communicator) {
    auto request = communicator.start(call());
    if (!request) return fail(request.error());
    request_ = *std::move(request);
    return {};
  }
  [[nodiscard]] Request& request() { return request_; }
  [[nodiscard]] std::string check() const {
    const Vector& out = drawn_.in_place ? send_ : receive_;
    if (out == expected_) return "";
    const auto differs = std::mismatch(out.begin(), out.end(), expected_.begin(), expected_.end());
    return text() + ": element " + std::to_string(differs.first - out.begin()) + " of " +
           std::to_string(out.size()) + " is incorrect";
  }
  [[nodiscard]] std::string text() const {
    return std::string(collective_name(drawn_.collective)) + " number " + std::to_string(number_) +
           " on rank " + std::to_string(me_);
  }

 private:
  [[nodiscard]] Call call() {
    Call call{.collective = drawn_.collective,
              .send = send_.data() + sent_from_,
              .receive = drawn_.in_place ? send_.data() + received_from_ : receive_.data(),
              .count = drawn_.count,
              .counts = drawn_.unequal,
              .op = {.op = drawn_.op, .type = Type::kI64},
              .root = drawn_.root};
    if (drawn_.collective == Collective::kBarrier) return call::barrier();
    return call;
  }
  void fill();
  void fill_vectors();
  void fill_parts();

  Drawn drawn_;
  std::uint64_t number_;
  std::uint32_t me_;
  // In place: `send_` has input and output, and `receive_` is empty.
  Vector send_, receive_, expected_;
  std::uint64_t sent_from_ = 0, received_from_ = 0;
  Request request_;
};

void Started::fill() {
  if (drawn_.collective == Collective::kBarrier) {
    drawn_.in_place = false;
    return;
  }
  if (counts_per_rank(drawn_.collective)) {
    fill_parts();
  } else {
    fill_vectors();
  }
}

// Broadcast, reduce, allreduce, scan and exscan: every rank has one vector.
void Started::fill_vectors() {
  const std::uint64_t count = drawn_.count;
  send_.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) send_[i] = drawn_.value(me_, i);
  if (!drawn_.in_place) receive_.assign(count, kUntouched);
  expected_ = drawn_.in_place ? send_ : receive_;
  const bool is_root = me_ == drawn_.root;
  for (std::uint64_t i = 0; i < count; ++i) {
    switch (drawn_.collective) {
      case Collective::kBroadcast: expected_[i] = drawn_.value(drawn_.root, i); break;
      case Collective::kReduce:
        if (is_root) expected_[i] = drawn_.reduced(kSide, i);
        break;
      case Collective::kAllreduce: expected_[i] = drawn_.reduced(kSide, i); break;
      case Collective::kScan: expected_[i] = drawn_.reduced(me_ + 1, i); break;
      default:
        if (me_ > 0) expected_[i] = drawn_.reduced(me_, i);
    }
  }
}

// Scatter, gather, allgather, reduce-scatter and all-to-all: a part for each rank.
void Started::fill_parts() {
  const Collective collective = drawn_.collective;
  const bool is_exchange = collective == Collective::kAllToAll;
  const bool sends_all = is_exchange || collective == Collective::kReduceScatter ||
                         (collective == Collective::kScatter && me_ == drawn_.root);
  const bool receives_all = is_exchange || collective == Collective::kAllgather ||
                            (collective == Collective::kGather && me_ == drawn_.root);
  const std::uint64_t own = drawn_.part(me_, me_);
  const std::uint64_t place = drawn_.offset(me_, me_);
  const std::uint64_t all = drawn_.offset(me_, kSide);
  Vector input(sends_all ? all : own), output;
  for (std::uint64_t i = 0; i < input.size(); ++i) input[i] = drawn_.value(me_, i);
  if (collective == Collective::kScatter && !sends_all) input.clear();
  if (receives_all) {
    for (std::uint32_t from = 0; from < kSide; ++from) {
      const std::uint64_t begin = is_exchange ? drawn_.offset(from, me_) : 0;
      for (std::uint64_t i = 0; i < drawn_.part(from, is_exchange ? me_ : from); ++i) {
        output.push_back(drawn_.value(from, begin + i));
      }
    }
  } else if (collective != Collective::kGather) {
    output.resize(own);
    for (std::uint64_t i = 0; i < own; ++i) {
      output[i] = collective == Collective::kScatter ? drawn_.value(drawn_.root, place + i)
                                                     : drawn_.reduced(kSide, place + i);
    }
  }
  // Elsewhere memory in place is that of the part alone, and no other than input or output.
  drawn_.in_place = drawn_.in_place && (sends_all || receives_all);
  if (!drawn_.in_place) {
    send_ = std::move(input);
    receive_.assign(output.size(), kUntouched);
    expected_ = std::move(output);
    return;
  }
  if (sends_all && receives_all) {
    send_ = std::move(input);
    expected_ = std::move(output);
  } else if (sends_all) {  // The own part of the result is at its place in the whole.
    send_ = std::move(input);
    expected_ = send_;
    std::copy(output.begin(), output.end(), expected_.begin() + static_cast<std::ptrdiff_t>(place));
    received_from_ = place;
  } else {
    send_.assign(output.size(), kUntouched);
    std::copy(input.begin(), input.end(), send_.begin() + static_cast<std::ptrdiff_t>(place));
    expected_ = std::move(output);
    sent_from_ = place;
  }
}

// One rank's collectives on its row and its column.
class Interleaving {
 public:
  Interleaving(std::uint64_t seed, std::uint32_t world_rank, Communicator& row,
               Communicator& column, std::uint64_t on_each)
      : random_(seed * 77 + world_rank), on_each_(on_each) {
    sides_[0] = {&row, seed * 100 + world_rank / kSide, 0, {}};
    sides_[1] = {&column, seed * 100 + 50 + world_rank % kSide, 0, {}};
  }

  // Returns the first error; empty: every result was right.
  [[nodiscard]] std::string run() {
    while (error_.empty() && !is_over()) {
      Side& side = sides_[random_() % 2];
      switch (random_() % 4) {
        case 0:
        case 1: start(side); break;
        case 2: test(side); break;
        default: wait(side);
      }
    }
    return error_;
  }
  [[nodiscard]] std::size_t max_in_flight() const { return max_in_flight_; }

 private:
  struct Side {
    Communicator* communicator = nullptr;
    std::uint64_t seed = 0;
    std::uint64_t next = 0;  // number of the next collective
    std::deque<std::unique_ptr<Started>> in_flight;
  };

  [[nodiscard]] bool is_over() const {
    return std::all_of(sides_.begin(), sides_.end(), [this](const Side& side) {
      return side.next == on_each_ && side.in_flight.empty();
    });
  }
  void start(Side& side) {
    if (side.next == on_each_ || side.in_flight.size() == kMaxInFlight) return;
    auto started = std::make_unique<Started>(side.seed, side.next, side.communicator->rank());
    if (auto good = started->start(*side.communicator); !good) {
      error_ = started->text() + ": " + good.error().message;
    }
    ++side.next;
    side.in_flight.push_back(std::move(started));
    max_in_flight_ = std::max(max_in_flight_, side.in_flight.size());
  }
  void test(Side& side) {
    if (side.in_flight.empty()) return;
    const std::size_t which = random_() % side.in_flight.size();
    const auto done = side.in_flight[which]->request().test();
    if (!done) {
      error_ = done.error().message;
    } else if (*done) {
      end(side, which);
    }
  }
  // A rank may block only if it has started, on both communicators, all collectives up to the
  // number of the awaited one. Otherwise two ranks could wait for each other.
  void wait(Side& side) {
    if (side.in_flight.empty()) return;
    const std::size_t which = random_() % side.in_flight.size();
    Started& awaited = *side.in_flight[which];
    if (awaited.number() >= std::min(sides_[0].next, sides_[1].next)) return;
    if (auto done = awaited.request().wait(); !done) {
      error_ = done.error().message;
    } else {
      end(side, which);
    }
  }
  void end(Side& side, std::size_t which) {
    error_ = side.in_flight[which]->check();
    side.in_flight.erase(side.in_flight.begin() + static_cast<std::ptrdiff_t>(which));
  }

  std::mt19937_64 random_;
  std::uint64_t on_each_;
  std::array<Side, 2> sides_;
  std::string error_;
  std::size_t max_in_flight_ = 0;
};

TEST(Interleaved, RowsAndColumnsOfSixteenRanks) {
  const std::uint64_t on_each = samples() / 2;
  const char* provider = std::getenv("ESPALIER_PROVIDER");
  LocalJob job(kRanks);
  std::atomic<std::size_t> max_in_flight{0};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      JoinOptions options;
      options.membership = job.member(rank);
      options.provider = provider == nullptr ? "tcp" : provider;
      auto world = join(options);
      ASSERT_TRUE(world) << world.error().message;
      auto row = world->split(rank / kSide);
      ASSERT_TRUE(row) << row.error().message;
      auto column = world->split(rank % kSide, -static_cast<std::int64_t>(rank));  // descends
      ASSERT_TRUE(column) << column.error().message;
      ASSERT_EQ(row->front().rank(), rank % kSide);
      ASSERT_EQ(column->front().rank(), kSide - 1 - rank / kSide);
      Interleaving all(seed(), rank, row->front(), column->front(), on_each);
      const std::string error = all.run();
      if (!error.empty()) {
        // The others would wait for what this rank does not start.
        std::fprintf(stderr, "world rank %u: %s\n", rank, error.c_str());
        std::abort();
      }
      std::size_t before = max_in_flight;
      while (before < all.max_in_flight() &&
             !max_in_flight.compare_exchange_weak(before, all.max_in_flight())) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(max_in_flight, 2u);
  std::printf(
      "%s: %llu random collectives on each rank, %llu on rows and columns together, seed %llu\n",
      whole() ? "whole" : "sample", static_cast<unsigned long long>(2 * on_each),
      static_cast<unsigned long long>(2 * kSide * on_each),
      static_cast<unsigned long long>(seed()));
}

// The comparison finds one incorrect element.
TEST(Interleaved, AnIncorrectResultIsFound) {
  std::uint32_t found = 0;
  for (std::uint64_t number = 0; number < 50; ++number) {
    // Never started, so the output is not the reference unless it is empty or the input.
    found += Started(1, number, 2).check().empty() ? 0 : 1;
  }
  EXPECT_GT(found, 25u);
}

}  // namespace
}  // namespace espalier
