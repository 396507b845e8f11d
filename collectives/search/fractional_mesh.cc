// Broadcast and commutative reduce on a mesh by one fractional tree. Its groups are rectangles,
// each wound as a snake, so that no link carries two blocks in a step ([Sanders03], section 4,
// "Meshes", and Fig. 4).
//
// Steps: d + N + ceil(N/r) - 1, where d is the step in which the last rank gets its first block.
// Cost: steps * (alpha + beta*m/N), N as in fractional.cc.
//
// An embedding (include/espalier/topology/topology.h) gives the place of each group;
// collectives/embed finds it. A reduce is a broadcast reversed in time, and so are its routes: an
// embedding of a broadcast on mesh:CxR serves the reduce on mesh:RxC (topology::reversed).

#include "collectives/search/fractional_mesh.h"

#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/search/fractional_groups.h"
#include "collectives/search/searches.h"

namespace espalier::searched {

namespace {

// The tree of the embedding's groups.
FractionalForest forest_of(const topology::Embedding& embedding) {
  FractionalForest forest{.run_length = embedding.run_length, .groups = {}};
  for (std::uint32_t index = 0; index < embedding.groups.size(); ++index) {
    const topology::Embedding::TreeGroup& own = embedding.groups[index];
    std::int32_t arrival = -1;
    if (index > 0) {
      arrival = own.is_right ? forest.right_arrival(own.parent) : forest.down_arrival(own.parent);
      own.is_right ? forest.set_right(own.parent, index) : forest.set_down(own.parent, index);
    }
    const std::span<const std::uint32_t> ranks(embedding.node_of);
    forest.add_group(ranks.subspan(std::size_t{index} * embedding.run_length, embedding.run_length),
                     arrival);
  }
  return forest;
}

}  // namespace

Result<Programs> fractional_mesh(const topology::Topology& topology,
                                 const CollectiveParameters& parameters,
                                 const topology::Embedding& embedding) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const std::string who = "fractional-mesh on " + topology.title() + ": ";
  if (embedding.groups.empty() || embedding.topology != topology.spec()) {
    return fail(who + "embedding '" + embedding.name +
                "' has no groups for it; expected one that has");
  }
  const bool reduces = embedding.collective == collective_name(Collective::kReduce);
  if (!reduces && embedding.collective != collective_name(Collective::kBroadcast)) {
    return fail(who + "embedding '" + embedding.name + "' is for " + embedding.collective +
                "; expected one for broadcast or reduce");
  }
  const std::uint32_t longest = reduces ? kMaxReduceRunLength : kMaxRunLength;
  if (embedding.run_length > longest ||
      (parameters.run_length != 0 && parameters.run_length != embedding.run_length)) {
    return fail(
        who + "runs of " +
        std::to_string(parameters.run_length != 0 ? parameters.run_length : embedding.run_length) +
        "; expected at most " + std::to_string(longest) + ", and " +
        std::to_string(embedding.run_length) + " as in " + embedding.name);
  }
  if (parameters.root != embedding.node_of.front()) {
    return fail(who + "root " + std::to_string(parameters.root) + " with " + embedding.name +
                "; expected root " + std::to_string(embedding.node_of.front()));
  }
  const Broadcast broadcast = forest_of(embedding).broadcast(
      {.collective = reduces ? Collective::kReduce : Collective::kBroadcast,
       .algorithm = "fractional-mesh",
       .needs_commutative = reduces,
       .contention = ContentionGuarantee::kSlot});
  return reduces ? write_reduce(parameters, broadcast) : write_broadcast(parameters, broadcast);
}

namespace {

Result<Programs> by_known_embedding(Collective collective, const topology::Topology& topology,
                                    const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const auto embedding =
      topology::best_embedding(topology, {.collective = collective_name(collective),
                                          .algorithm = "fractional-mesh",
                                          .run_length = parameters.run_length,
                                          .root = parameters.root});
  if (!embedding) {
    return fail(
        "fractional-mesh on " + topology.title() + ": no embedding is known for root " +
        std::to_string(parameters.root) +
        (parameters.run_length == 0 ? "" : ", r = " + std::to_string(parameters.run_length)) +
        "; expected one of 'espalier list --embeddings', or one that 'espalier embed' finds");
  }
  return fractional_mesh(topology, parameters, *embedding);
}

}  // namespace

const SearchedAlgorithm kFractionalMeshRows[] = {
    row("fractional-mesh", Collective::kBroadcast, by_known_embedding,
        "a fractional tree of rectangles, by a known embedding: d+N+ceil(N/r)-1 steps",
        {.topologies = "mesh:RxC",
         .applies = on_mesh,
         .max_run_length = kMaxRunLength,
         .has_groups = true}),
    row("fractional-mesh", Collective::kReduce, by_known_embedding,
        "a fractional tree of rectangles, by a known embedding: d+N+ceil(N/r)-1 steps",
        {.needs_commutative = true,
         .topologies = "mesh:RxC",
         .applies = on_mesh,
         .max_run_length = kMaxReduceRunLength,
         .has_groups = true}),
};

}  // namespace espalier::searched
