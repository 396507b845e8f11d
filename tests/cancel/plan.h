#pragma once
// What happens in one round of a job: drawn from a seed, so that every process knows it without a
// message.

#include <cstdint>
#include <optional>
#include <vector>

namespace espalier::cancel_test {

// How a rank cancels.
enum class Way : std::uint8_t {
  kCaller,  // its own thread, between two calls
  kThread,  // another thread, while the first one is in a call
  kSignal,  // a signal handler, which sets a flag
};

struct Cancel {
  std::uint32_t rank = 0;
  Way way = Way::kCaller;
  std::uint64_t after_ns = 0;  // since the round's begin
};

struct Round {
  std::vector<Cancel> cancels;          // one or two
  std::optional<std::uint32_t> victim;  // is killed
  std::uint64_t kill_after_ns = 0;      // since the round's begin
  bool in_part = false;                 // of all ranks, made by split()
};

// A job: its rounds begin with `ranks` ranks; each victim is one fewer.
struct Plan {
  std::uint64_t seed = 0;
  const char* provider = nullptr;
  std::uint32_t ranks = 0;
  std::uint32_t rounds = 0;
  std::uint32_t kill_round = 0;  // `rounds`: none
};

// Draws job number `number` of a run.
[[nodiscard]] Plan draw_job(std::uint64_t seed, std::uint64_t number);
// Draws a round in which `ranks` ranks take part.
[[nodiscard]] Round draw_round(const Plan& plan, std::uint32_t number, std::uint32_t ranks);

}  // namespace espalier::cancel_test
