#include <algorithm>

#include "tests/storm/draw.h"
#include "tests/storm/trial.h"

namespace espalier::storm {
namespace {

constexpr int kMaxTrials = 600;

// Replaces the topology by a smaller complete graph, and the nodes of faults by those there are.
Plan on_fewer_ranks(Plan plan, std::uint32_t ranks) {
  plan.schedule.topology = "complete:" + std::to_string(ranks);
  plan.schedule.links = Links::kRouted;
  plan.schedule.root %= ranks;
  for (Fault& fault : plan.faults) {
    fault.node %= ranks;
    fault.peer %= ranks;
    if (fault.peer == fault.node) fault.peer = (fault.node + 1) % ranks;
  }
  return plan;
}

// Every plan that is one step shorter, or simpler.
std::vector<Plan> simpler(const Plan& plan, std::uint32_t ranks) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < plan.faults.size(); ++i) {
    plans.push_back(plan);
    plans.back().faults.erase(plans.back().faults.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const auto with = [&](auto change) {
    plans.push_back(plan);
    change(plans.back());
  };
  for (const std::uint32_t fewer : {2u, 3u, 4u, ranks / 2, ranks - 1}) {
    if (fewer < 2 || fewer >= ranks) continue;
    plans.push_back(on_fewer_ranks(plan, fewer));
  }
  if (!plan.schedule.topology.starts_with("complete")) plans.push_back(on_fewer_ranks(plan, ranks));
  for (const char* algorithm : {"chain", "ring", "binomial", "pairwise", "dissemination"}) {
    if (plan.schedule.algorithm == algorithm) break;
    with([&](Plan& p) { p.schedule.algorithm = algorithm; });
  }
  with([](Plan& p) { p.rounds = 1; });
  with([](Plan& p) { p.rounds = std::max(1u, p.rounds - 1); });
  with([](Plan& p) { p.blocks = 1; });
  with([](Plan& p) { p.blocks = std::max<std::uint64_t>(1, p.blocks - 1); });
  with([](Plan& p) { p.schedule.links = Links::kRouted; });
  with([](Plan& p) { p.schedule.root = 0; });
  with([](Plan& p) { p.missing = 0; });
  with([](Plan& p) { p.unequal = p.in_place = false; });
  with([](Plan& p) { p.op = Op::kSum, p.type = Type::kI32; });
  with([](Plan& p) { p.jitter = 0; });
  with([](Plan& p) { p.link_jitter = 0; });
  with([](Plan& p) { p.pace_ns = 0; });
  with([](Plan& p) { p.poison = false; });
  with([](Plan& p) { p.machine_window = 16; });
  with([](Plan& p) { p.endpoint_window = 16; });
  with([](Plan& p) { p.schedule.window = Plan().schedule.window; });
  with([](Plan& p) { p.eager_bytes = Plan().eager_bytes; });
  with([](Plan& p) { p.eager_copies = true; });
  with([](Plan& p) { p.check_blocks = true; });
  with([](Plan& p) { p.seed = 1; });
  return plans;
}

std::string kind_of(const Plan& plan, Schedules& schedules, std::uint32_t& ranks) {
  std::string error;
  const Schedule* schedule = schedules.made(plan.schedule, error);
  if (schedule == nullptr) return "";
  ranks = schedule->programs[0].ranks;
  return run_trial(plan, *schedule).wrong_kind;
}

}  // namespace

Plan shrink(Plan plan, const std::string& kind, Schedules& schedules) {
  std::uint32_t ranks = 0;
  static_cast<void>(kind_of(plan, schedules, ranks));
  int trials = 0;
  for (bool again = true; again;) {
    again = false;
    for (Plan& candidate : simpler(plan, ranks)) {
      if (plan_text(candidate) == plan_text(plan)) continue;
      if (++trials > kMaxTrials) return plan;
      std::uint32_t new_ranks = ranks;
      if (kind_of(candidate, schedules, new_ranks) != kind) continue;
      plan = std::move(candidate);
      ranks = new_ranks;
      again = true;
      break;
    }
  }
  return plan;
}

}  // namespace espalier::storm
