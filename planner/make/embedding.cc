#include "planner/make/embedding.h"

#include "base/one_line.h"
#include "base/try.h"
#include "espalier/collectives/embed/place.h"

namespace espalier::planner {
namespace {

// Whether its schedules can be placed anywhere: only ranks have programs, and any topology will do.
bool may_stand_anywhere(const AlgorithmEntry& entry) {
  return (entry.any_topology || entry.has_groups) && embed::check_placeable(entry.collective) &&
         entry.collective != Collective::kBarrier;
}

std::optional<topology::Embedding> best(const PlanRequest& request,
                                        const PlannedSchedule& schedule) {
  if (!may_stand_anywhere(schedule.algorithm)) return std::nullopt;
  const bool hop_by_hop = request.is_hop_by_hop;
  topology::Wanted wanted{
      .collective = collective_name(schedule.algorithm.collective),
      .algorithm = schedule.algorithm.name,
      .run_length = schedule.parameters.run_length,
      .root = {},
      .switching = hop_by_hop ? Switching::kStoreAndForward : Switching::kCutThrough};
  if (has_root(schedule.algorithm.collective)) wanted.root = schedule.parameters.root;
  auto found = topology::best_embedding(*schedule.topology, wanted);
  // A chain keeps the order of ranks where its operator may want it.
  const bool in_any_order = schedule.algorithm.collective == Collective::kBroadcast;
  if (!found && hop_by_hop && schedule.algorithm.is_chain && in_any_order) {
    found = topology::snake(*schedule.topology, schedule.parameters.root);
  }
  return found;
}

Result<topology::Embedding> named(const Placement& placement, const PlannedSchedule& schedule) {
  if (placement.kind == Placement::Kind::kSnake) {
    auto found = topology::snake(*schedule.topology, schedule.parameters.root);
    if (found) return *std::move(found);
    return fail("no snake on " + schedule.topology->title() + " from rank " +
                std::to_string(schedule.parameters.root) +
                "; expected a mesh with an even number of rows or columns, or a corner of it");
  }
  if (placement.kind == Placement::Kind::kZOrder) {
    if (auto found = topology::z_order(*schedule.topology)) return *std::move(found);
    return fail("no z-order on " + schedule.topology->title() +
                "; expected a mesh whose numbers of rows and of columns are powers of two");
  }
  return *placement.given;
}

Result<void> check(const topology::Embedding& embedding, const PlannedSchedule& schedule) {
  const AlgorithmEntry& entry = schedule.algorithm;
  const std::string who = "embedding " + quoted_name(embedding) + " is for ";
  if (embedding.topology != schedule.topology->spec()) {
    ESPALIER_TRY_TO(const auto topology, topology::parse(embedding.topology));
    return fail(who + "topology " + topology->title() + "; expected one for " +
                schedule.topology->title());
  }
  const std::string wanted = std::string(collective_name(entry.collective)) + " by " + entry.name;
  const std::string own = embedding.collective + " by " + embedding.algorithm;
  if (!embedding.algorithm.empty() && own != wanted) {
    return fail(who + one_line(own) + "; expected one for " + wanted);
  }
  if (!may_stand_anywhere(entry)) {
    const auto placeable = embed::check_placeable(entry.collective);
    return fail(
        wanted + " takes no embedding: " +
        (placeable ? "it is for " + entry.topologies + " as they are" : placeable.error().message) +
        "; expected --embedding none");
  }
  if (schedule.parameters.run_length != 0 && embedding.run_length != 0 &&
      embedding.run_length != schedule.parameters.run_length) {
    return fail(who + "runs of " + std::to_string(embedding.run_length) +
                "; expected --run-length " + std::to_string(embedding.run_length));
  }
  if (has_root(entry.collective) && embedding.node_of.front() != schedule.parameters.root) {
    return fail(who + "root " + std::to_string(embedding.node_of.front()) + "; expected --root " +
                std::to_string(embedding.node_of.front()));
  }
  return {};
}

}  // namespace

std::string quoted_name(const topology::Embedding& embedding) {
  return "'" + one_line(embedding.name) + "'";
}

Result<std::optional<topology::Embedding>> choose_embedding(const PlanRequest& request,
                                                            const PlannedSchedule& schedule) {
  if (request.placement.kind == Placement::Kind::kBest) return best(request, schedule);
  if (request.placement.kind == Placement::Kind::kAsNumbered) return std::nullopt;
  ESPALIER_TRY_TO(auto embedding, named(request.placement, schedule));
  ESPALIER_TRY(check(embedding, schedule));
  return embedding;
}

}  // namespace espalier::planner
