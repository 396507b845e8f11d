#include "bootstrap/cables/job_graph.h"

namespace espalier::cables {

std::shared_ptr<const JobGraph> job_graph(const bootstrap::Bootstrap& members) {
  const auto* const over_cables = dynamic_cast<const OverCables*>(&members);
  return over_cables == nullptr ? nullptr : over_cables->job_graph();
}

}  // namespace espalier::cables
