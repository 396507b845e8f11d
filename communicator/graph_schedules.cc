// Schedules over cables: every message crosses one link of the graph of ranks.

#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "communicator/cables/fixed_algorithms.h"
#include "communicator/cables/rank_graph.h"
#include "communicator/schedules.h"
#include "planner/make/plan.h"

namespace espalier::communicator {

// A schedule that is lowered is for its root only. If the algorithm makes none for the request's
// root, a fixed algorithm serves under the same key.
Result<const PlannedProgram*> Schedules::plan_on_graph(planner::PlannedSchedule& schedule,
                                                       planner::PlanRequest wanted, const Key& key,
                                                       const ScheduleRequest& request) {
  if (wanted.root == request.root) return plan(schedule, key, request);
  wanted.root = request.root;
  auto for_root = planner::make_schedule(wanted);
  if (for_root) {
    for_root->rules = schedule.rules;
    auto planned = plan(*for_root, key, request);
    if (planned) return planned;
  }
  const FixedAlgorithms& fixed = named(request.collective);
  ESPALIER_TRY_TO(wanted, request_of(request, request.commutes ? fixed.commutes : fixed.in_order));
  ESPALIER_TRY_TO(auto instead, planner::make_schedule(wanted));
  return plan(instead, key, request);
}

bool Schedules::is_direct() const {
  return graph_ == nullptr || topology_->link_count() == std::uint64_t{ranks_} * (ranks_ - 1);
}

std::string Schedules::topology_name() const {
  return graph_ == nullptr ? topology_->spec() : "graph-" + std::to_string(topology_->digest());
}

// Checks that all messages of these programs stay on the graph's links.
Result<void> Schedules::check_links(const std::string& what,
                                    const std::vector<OwnedProgram>& programs) const {
  if (graph_ == nullptr) return {};
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    for (std::uint32_t i = 0; i < links_count(programs[node]); ++i) {
      const std::uint32_t peer = peer_of(programs[node], i);
      if (graph_->has_link(node, peer)) continue;
      return fail(what + " does not run over the cables: rank " + std::to_string(node) +
                  " exchanges messages with rank " + std::to_string(peer) +
                  ", and no cable joins the two; expected a schedule that was compiled hop by hop "
                  "for them");
    }
  }
  return {};
}

const FixedAlgorithms& Schedules::named(Collective collective) const {
  return fixed_algorithms(collective, graph_ != nullptr);
}

}  // namespace espalier::communicator
