// Rows and columns of 4x4 ranks, in flight at once. Each rank starts, tests and awaits random
// collectives of its row and its column in a random order of its own; every result is compared with
// the reference, bit by bit. A sample; ESPALIER_WHOLE=1: 10,000 collectives on each rank.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "base/testing/results.h"
#include "communicator/testing/local_job.h"
#include "communicator/testing/random_call.h"
#include "espalier/communicator.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using namespace communicator::testing;

constexpr std::uint32_t kSide = 4;
constexpr std::uint32_t kRanks = kSide * kSide;
constexpr std::size_t kMaxInFlight = 8;  // on one communicator

// How many collectives each rank starts, on its row and its column together.
std::uint64_t samples() {
  if (whole()) return 10'000;
  return small_sample() ? 40 : 400;
}

std::uint64_t seed() {
  const char* given = std::getenv("ESPALIER_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

// A collective that was started.
class Started : public RandomCall {
 public:
  Started(std::uint64_t seed, std::uint64_t number, std::uint32_t rank)
      : RandomCall(seed, number, kSide, rank) {}
  [[nodiscard]] Result<void> start(Communicator& communicator) {
    auto request = communicator.start(call());
    if (!request) return fail(request.error());
    request_ = *std::move(request);
    return {};
  }
  [[nodiscard]] Request& request() { return request_; }

 private:
  Request request_;
};

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
  std::atomic<std::size_t> max_in_flight{0};
  on_all(
      kRanks,
      [&](Communicator& world) {
        const std::uint32_t rank = world.rank();
        auto row = or_throw(world.split(rank / kSide));
        auto column = world.split(rank % kSide, -static_cast<std::int64_t>(rank));  // descends
        ASSERT_TRUE(column) << column.error().message;
        ASSERT_EQ(row->rank(), rank % kSide);
        ASSERT_EQ((*column)->rank(), kSide - 1 - rank / kSide);
        Interleaving all(seed(), rank, *row, **column, on_each);
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
      },
      [&](JoinOptions& options, std::uint32_t rank) {
        if (provider != nullptr) options.provider = provider;
        // Rows within hosts, columns between them.
        if (options.provider == "mem+tcp") options.host = "host" + std::to_string(rank / kSide);
      });
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
