#include "tests/cancel/plan.h"

#include <random>

#include "base/splitmix64.h"

namespace espalier::cancel_test {
namespace {

constexpr const char* kProviders[] = {"tcp", "mem", "mem+tcp"};
constexpr std::uint32_t kRounds = 5;
constexpr std::uint64_t kMaxDelayNs = 8'000'000;
// The kill and the first cancel are as near as this.
constexpr std::uint64_t kSameMomentNs = 300'000;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(splitmix64(seed)) {}
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  std::mt19937_64 random_;
};

}  // namespace

Plan draw_job(std::uint64_t seed, std::uint64_t number) {
  Plan plan{.seed = splitmix64(splitmix64(seed) + number)};
  Dice dice(plan.seed);
  plan.provider = kProviders[number % std::size(kProviders)];
  // Two ranks are left after the kill.
  plan.ranks = 3 + static_cast<std::uint32_t>(dice.below(6));
  plan.rounds = kRounds;
  plan.kill_round = static_cast<std::uint32_t>(dice.below(kRounds));
  return plan;
}

Round draw_round(const Plan& plan, std::uint32_t number, std::uint32_t ranks) {
  Dice dice(plan.seed + 1 + number);
  Round round;
  const std::uint64_t count = dice.below(4) == 0 ? 2 : 1;
  const std::uint64_t first_ns = dice.below(kMaxDelayNs);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto rank = static_cast<std::uint32_t>(dice.below(ranks));
    const auto way = static_cast<Way>(dice.below(3));
    if (i > 0 && rank == round.cancels[0].rank) continue;
    round.cancels.push_back({rank, way, i == 0 ? first_ns : first_ns + dice.below(kSameMomentNs)});
  }
  if (number == plan.kill_round) {
    round.victim = static_cast<std::uint32_t>(dice.below(ranks));
    const std::uint64_t earliest = first_ns < kSameMomentNs ? 0 : first_ns - kSameMomentNs;
    round.kill_after_ns = earliest + dice.below(2 * kSameMomentNs);
  } else {
    round.in_part = dice.below(3) == 0;
  }
  return round;
}

}  // namespace espalier::cancel_test
