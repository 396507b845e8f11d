// Schedules over real links, run asynchronously with timing skew: correct results regardless of the
// links' delays, and every block stays in a node for fewer steps than the window has (rule 2).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/contention/cases.h"
#include "tests/whole.h"

namespace espalier::contention {
namespace {

struct Seen {
  std::uint32_t longest = 0;
  std::uint64_t blocks = 0, stayed = 0, waits = 0;
};

void run(const ContentionCase& contention_case, const sim::Model& model, std::uint32_t window,
         Seen& seen) {
  testing::JobCluster::Options options;
  options.model = model;
  options.config.window = window;
  testing::JobCluster cluster(contention_case.programs, options);
  cluster.start_all(job_of(contention_case, contention_case.blocks));
  cluster.network().begin_residence(contention_case.programs[0].latency_ticks);
  const sim::RunResult result = cluster.run();
  ASSERT_EQ(result.status, Status::kOk) << contention_case.name << ": " << result.message;
  cluster.drive();
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) {
    ASSERT_EQ(cluster.done(node), 1u) << contention_case.name;
  }
  const sim::Residence residence = cluster.network().residence();
  EXPECT_LT(residence.longest(), std::min(window, contention_case.programs[0].window))
      << contention_case.name;
  seen.longest = std::max(seen.longest, residence.longest());
  for (std::size_t steps = 0; steps < residence.blocks.size(); ++steps) {
    seen.blocks += residence.blocks[steps];
    seen.stayed += steps > 0 ? residence.blocks[steps] : 0;
  }
  for (const sim::LinkTraffic& link : cluster.network().traffic()) seen.waits += link.waits;
}

TEST(Contention, SkewChangesTimesAndNothingElse) {
  for (const Switching switching : {Switching::kCutThrough, Switching::kStoreAndForward}) {
    for (const std::uint32_t window : {1u, 3u, 16u}) {
      Seen seen;
      for (std::uint64_t seed = 0; seed < (whole() ? 2000 : 150); ++seed) {
        const ContentionCase contention_case = random_case(seed, ESPALIER_EXAMPLES);
        // The postal model's latency must fit.
        if (contention_case.programs[0].latency_ticks > window) continue;
        sim::Model model = model_of(contention_case);
        model.switching = switching;
        model.jitter = 2;
        model.link_jitter = 1;
        model.pace = 2 * model.alpha;
        model.seed = seed;
        model.eager_bytes = seed % 2 == 0 ? 0 : 4096;
        run(contention_case, model, window, seen);
        if (HasFailure()) return;
      }
      std::printf(
          "%s, windows up to %2u: %llu of %llu blocks stayed, for up to %u steps; %llu waits\n",
          switching == Switching::kCutThrough ? "cut-through" : "store and forward", window,
          static_cast<unsigned long long>(seen.stayed),
          static_cast<unsigned long long>(seen.blocks), seen.longest,
          static_cast<unsigned long long>(seen.waits));
      EXPECT_GT(seen.blocks, 0u);
      EXPECT_GT(seen.waits, 0u);
      EXPECT_EQ(seen.longest > 0, window > 1) << "timing skew must show, where the window lets it";
    }
  }
}

}  // namespace
}  // namespace espalier::contention
