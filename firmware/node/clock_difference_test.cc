#include "firmware/node/clock_difference.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace espalier::node {
namespace {

// Two hosts that exchange frames. `there` is ahead by ahead_ns when the time begins, and its clock
// runs faster by ppm.
class Hosts {
 public:
  Hosts(std::int64_t ahead_ns, std::int64_t ppm) : ahead_ns_(ahead_ns), ppm_(ppm) {}

  void wait(std::uint64_t ns) { time_ns_ += ns; }
  void to_there(std::uint64_t delay_ns) { carry(here, here_ns(), there, delay_ns, false); }
  void to_here(std::uint64_t delay_ns) { carry(there, there_ns(), here, delay_ns, true); }

  [[nodiscard]] std::uint64_t here_ns() const { return time_ns_; }
  [[nodiscard]] std::uint64_t there_ns() const {
    const auto passed = static_cast<std::int64_t>(time_ns_);
    return static_cast<std::uint64_t>(passed + ahead_ns_ + passed / 1'000'000 * ppm_);
  }
  // By how much the estimate here is wrong now.
  [[nodiscard]] std::uint64_t error_ns() const {
    const std::uint64_t converted = there_ns() + here.estimate(here_ns())->shift;
    return converted > here_ns() ? converted - here_ns() : here_ns() - converted;
  }

  ClockDifference here, there;

 private:
  void carry(const ClockDifference& from, std::uint64_t sent_ns, ClockDifference& to,
             std::uint64_t delay_ns, bool arrives_here) {
    const auto bound = from.bound(sent_ns);
    time_ns_ += delay_ns;
    to.note(sent_ns, bound, arrives_here ? here_ns() : there_ns());
  }

  std::int64_t ahead_ns_;
  std::int64_t ppm_;
  std::uint64_t time_ns_ = 1'000'000'000;
};

TEST(ClockDifference, IsUnknownUntilFramesWentBothWays) {
  Hosts hosts(0, 0);
  EXPECT_FALSE(hosts.here.bound(hosts.here_ns()));
  hosts.to_here(10);
  EXPECT_EQ(hosts.here.bound(hosts.here_ns()), 10);
  EXPECT_FALSE(hosts.here.estimate(hosts.here_ns()));
  hosts.to_there(10);
  EXPECT_FALSE(hosts.here.estimate(hosts.here_ns()));
  EXPECT_TRUE(hosts.there.estimate(hosts.there_ns()));
  hosts.to_here(10);
  EXPECT_TRUE(hosts.here.estimate(hosts.here_ns()));
}

// Random delays, clocks far apart in both directions, and all rates that are allowed: no estimate
// is wrong by more than it says.
TEST(ClockDifference, IsWrongByNoMoreThanItSays) {
  std::mt19937_64 random(20260101);
  for (const std::int64_t ahead :
       {std::int64_t{0}, std::int64_t{-900'000'000}, std::int64_t{1'000'000'000'000'000}}) {
    for (const std::int64_t ppm : {-190, 0, 190}) {
      SCOPED_TRACE("ahead " + std::to_string(ahead) + " ns, faster by " + std::to_string(ppm));
      Hosts hosts(ahead, ppm);
      for (int i = 0; i < 1000; ++i) {
        hosts.wait(random() % 1'000'000'000);
        const std::uint64_t delay = random() % 10 == 0 ? 50'000'000 : 100'000;
        random() % 2 == 0 ? hosts.to_here(delay + random() % delay)
                          : hosts.to_there(delay + random() % delay);
        const auto estimate = hosts.here.estimate(hosts.here_ns());
        if (!estimate) continue;
        ASSERT_LE(hosts.error_ns(), estimate->error_ns) << i;
      }
    }
  }
}

// A late frame changes nothing: the best one counts.
TEST(ClockDifference, IsThatOfTheFastestFrames) {
  Hosts hosts(5'000'000, 0);
  hosts.to_here(20'000);
  hosts.to_there(20'000);
  hosts.to_here(30'000'000);
  EXPECT_LE(hosts.here.estimate(hosts.here_ns())->error_ns, 20'000 + 30'000'000 / 5000 + 1);
  EXPECT_LE(hosts.error_ns(), 10'000u);
}

// An old bound is worth less: clocks that change their difference are followed.
TEST(ClockDifference, Ages) {
  Hosts hosts(0, 0);
  for (int i = 0; i < 2; ++i) {
    hosts.to_here(1000);
    hosts.to_there(1000);
  }
  const std::uint64_t before = hosts.here.estimate(hosts.here_ns())->error_ns;
  hosts.wait(10'000'000'000);
  EXPECT_EQ(hosts.here.estimate(hosts.here_ns())->error_ns, before + 10'000'000'000 / 5000);
}

}  // namespace
}  // namespace espalier::node
