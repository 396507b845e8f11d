// The simulator and the verifier answer the same question in different ways: does any link carry
// more blocks in a step than it has lanes? The simulator counts the messages that machines post in
// lock step; the verifier analyses the programs. A thousand cases; with ESPALIER_WHOLE=1 twenty
// thousand.

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/contention/cases.h"
#include "tests/whole.h"

namespace espalier::contention {
namespace {

// The demand of a schedule on the links, up to some N.
struct Answer {
  bool free = true;
  // If not free: the first N with a conflict, and the load and lanes of the link that then has the
  // largest load per lane (load 0: not reported).
  std::int64_t blocks = 0;
  std::uint32_t load = 0, lanes = 1;
};

bool operator==(const Answer& a, const Answer& b) {
  if (a.free || b.free) return a.free == b.free;
  if (a.blocks != b.blocks || a.load == 0 || b.load == 0) return a.blocks == b.blocks;
  return std::uint64_t{a.load} * b.lanes == std::uint64_t{b.load} * a.lanes;
}

std::string text(const Answer& answer) {
  if (answer.free) return "free";
  return "from N = " + std::to_string(answer.blocks) + " on a link of " +
         std::to_string(answer.lanes) + " lanes carries " + std::to_string(answer.load);
}

// All properties except the links' must hold. The programs claim that the links hold in lock step.
Answer verifiers(const ContentionCase& contention_case) {
  Programs programs = contention_case.programs;
  for (Program& program : programs) program.contention = ContentionGuarantee::kSlot;
  const verify::Verdict verdict = verify::verdict_of(
      *contention_case.topology, programs,
      {.method = verify::Method::kExhaustive, .max_blocks = contention_case.blocks});
  Answer answer{.free = verdict.valid};
  EXPECT_TRUE(verdict.slot || !verdict.valid) << contention_case.name;
  if (verdict.valid) return answer;
  answer.blocks = verdict.counterexample.blocks;
  const verify::Property property = verdict.counterexample.property;
  // Between neighbours the lanes of a link are ports.
  if (property == verify::Property::kPorts && contention_case.links != "routed") return answer;
  EXPECT_EQ(property, verify::Property::kLinks)
      << contention_case.name << ": " << verdict.counterexample.message;
  EXPECT_FALSE(verdict.slot) << contention_case.name;
  answer.load = verdict.busiest.load;
  answer.lanes = verdict.busiest.capacity;
  return answer;
}

Answer simulators(const ContentionCase& contention_case) {
  Answer answer;
  for (std::int64_t blocks = 1; answer.free && blocks <= contention_case.blocks; ++blocks) {
    testing::JobCluster::Options options;
    options.model = model_of(contention_case);
    testing::JobCluster cluster(contention_case.programs, options);
    cluster.start_all(job_of(contention_case, blocks));
    const sim::RunResult result = cluster.run_lock_step();
    const sim::Contention& contention = cluster.network().contention();
    // The run ends if a neighbour is sent more messages in a step than there are lanes.
    const bool ended = result.status == Status::kNotInSchedule && contention.conflicts > 0;
    EXPECT_TRUE(result.status == Status::kOk || ended)
        << contention_case.name << ": " << result.message;
    if (result.status != Status::kOk && !ended) return answer;
    if (!ended) cluster.drive();
    for (std::uint32_t node = 0; !ended && node < cluster.nodes(); ++node) {
      EXPECT_EQ(cluster.done(node), 1u) << contention_case.name;
    }
    const bool free = contention.conflicts == 0;
    EXPECT_EQ(cluster.network().residence().longest() == 0, free) << contention_case.name;
    // Times show conflicts as well: a message that needs an occupied link must wait. (Two
    // exceptions: ticks are not simulated in time; and if a node sends several messages to one
    // neighbour, the second waits for the port.)
    std::uint64_t waits = 0;
    for (const sim::LinkTraffic& link : cluster.network().traffic()) waits += link.waits;
    const bool timed = contention_case.programs[0].send_ticks <= 1 && !ended;
    EXPECT_TRUE(!timed || (waits == 0) == free)
        << contention_case.name << ": " << waits << " waits";
    if (free) continue;
    answer = {false, cluster.machine(0).blocks(), contention.max_asked, contention.max_lanes};
  }
  return answer;
}

struct Tally {
  int free = 0, conflicting = 0;
};

void print(const char* what, const std::map<std::string, Tally>& tallies) {
  for (const auto& [name, tally] : tallies) {
    std::printf("%-10s %-20s %4d free, %4d with conflicts\n", what, name.c_str(), tally.free,
                tally.conflicting);
  }
}

TEST(Contention, SimulatorAndVerifierAgree) {
  const std::size_t cases = whole() ? 20'000 : 1000;
  std::map<std::string, Tally> by_family, by_placement, by_links, all;
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seen.size() < cases; ++seed) {
    const ContentionCase contention_case = random_case(seed, ESPALIER_EXAMPLES);
    ASSERT_FALSE(HasFailure());
    if (!seen.insert(contention_case.name).second) continue;
    const Answer proven = verifiers(contention_case), simulated = simulators(contention_case);
    EXPECT_TRUE(proven == simulated)
        << "seed " << seed << ": " << contention_case.name << "\n  verifier:  " << text(proven)
        << "\n  simulator: " << text(simulated);
    for (Tally* tally :
         {&by_family[contention_case.family], &by_placement[contention_case.placement],
          &by_links[contention_case.links], &all["all"]}) {
      ++(simulated.free ? tally->free : tally->conflicting);
    }
    if (HasFailure()) return;
  }
  print("topology", by_family);
  print("placement", by_placement);
  print("links", by_links);
  print("", all);
  EXPECT_GE(all["all"].free, static_cast<int>(cases) / 5);
  EXPECT_GE(all["all"].conflicting, static_cast<int>(cases) / 5);
  EXPECT_EQ(by_links["lowered"].conflicting, 0);
  EXPECT_GE(by_links["lowered, a hop moved"].conflicting, static_cast<int>(cases) / 50);
}

}  // namespace
}  // namespace espalier::contention
