#include "collectives/search/fitting.h"

#include "collectives/lower/hop_writer.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::searched {

Result<Programs> write_what_fits(const topology::Topology& topology,
                                 const CollectiveParameters& parameters, const Outline& outline,
                                 const PackingGraph& graph, const std::vector<HopMaker>& makers,
                                 std::int32_t least_period) {
  Program common;
  const Status status = Builder(common).begin(parameters, 0, outline);
  if (status != Status::kOk) return fail(status_name(status));
  const Count bound = verify::provable_bound(topology, common, 1, is_two_way(graph));
  CollectiveParameters narrow = parameters;
  Result<Programs> programs;
  for (; narrow.window > 0; narrow.window /= 2) {
    const auto window = static_cast<std::int32_t>(narrow.window);
    for (const HopMaker& make : makers) {
      for (const std::int32_t near : {window - 1, 1, 0}) {
        if (near >= window) continue;
        const lower::Waits waits{near, window};
        lower::HopGraph hops = make(waits);
        const lower::Plan plan = lower::find_steps(hops, waits, least_period);
        programs = lower::write_hops(topology, narrow, outline, bound, 0, plan, hops, true);
        if (programs) return programs;
      }
    }
  }
  return programs;
}

}  // namespace espalier::searched
