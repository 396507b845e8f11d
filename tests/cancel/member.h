#pragma once
// One rank of a job, in a process of its own, and what it tells the controller in shared memory.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "tests/cancel/plan.h"

namespace espalier::cancel_test {

constexpr std::uint32_t kMaxRanks = 8, kMaxRounds = 5;

// What a rank saw of a round.
struct Seen {
  bool has_ended = false;  // the rank got the cause, and checked what works afterwards
  std::uint32_t status = 0, detector = 0, peer = 0;
  std::uint64_t returned_ns = 0;   // when the first call failed (monotonic_ns())
  std::uint64_t cancelled_ns = 0;  // when this rank cancelled; 0: it did not
  std::uint64_t completed = 0;     // calls with the right result
  std::array<char, 400> line = {};
};

// Zero at first.
struct Board {
  // Ranks that may begin a round: no rank cancels before all have joined.
  std::array<std::atomic<std::uint32_t>, kMaxRounds> arrived = {};
  std::array<std::array<Seen, kMaxRanks>, kMaxRounds> seen = {};  // by round and its rank
  std::array<std::array<char, 400>, kMaxRanks> errors = {};       // by rank of the job
};

// Takes part in a job. `address`: of its server. Writes what is wrong into board.errors.
void run_member(const Plan& plan, const std::string& address, std::uint32_t rank, Board& board);

}  // namespace espalier::cancel_test
