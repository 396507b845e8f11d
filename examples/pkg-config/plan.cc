// Plans two broadcasts for the links of a 4 x 4 mesh, and proves them for every message size: the
// two-tree algorithm, placed by its known embedding, and one that a search finds. Both are lowered,
// so that every message goes to a neighbour.

#include <cstdio>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace {

using espalier::CollectiveParameters;
using espalier::Programs;
using espalier::Result;
using espalier::Status;
using espalier::topology::Topology;

// Makes the programs of the two-tree broadcast, each on the node where the known embedding places
// it.
Result<Programs> two_tree(const Topology& mesh, const CollectiveParameters& parameters) {
  const espalier::Algorithm* algorithm =
      espalier::find_algorithm(espalier::Collective::kBroadcast, "two-tree");
  Programs programs(parameters.ranks);
  for (std::uint32_t rank = 0; rank < parameters.ranks; ++rank) {
    const Status status = algorithm->generate(parameters, rank, programs[rank]);
    if (status != Status::kOk) return espalier::fail(espalier::status_name(status));
  }
  espalier::topology::Wanted wanted{.collective = "broadcast",
                                    .algorithm = "two-tree",
                                    .root = parameters.root,
                                    .switching = espalier::Switching::kStoreAndForward};
  const auto embedding = espalier::topology::best_embedding(mesh, wanted);
  if (!embedding) return espalier::fail("no known embedding");
  const Status status = espalier::embed::place_all(embedding->node_of, programs);
  if (status != Status::kOk) return espalier::fail(espalier::status_name(status));
  return programs;
}

Result<Programs> searched(const Topology& mesh, const CollectiveParameters& parameters) {
  return espalier::searched::find_searched(espalier::Collective::kBroadcast, "double-fibonacci")
      ->search(mesh, parameters);
}

// Lowers the programs onto the mesh's links, proves the result and prints what it is.
Result<void> plan(const char* name, const Topology& mesh, const CollectiveParameters& parameters,
                  const Result<Programs>& routed) {
  if (!routed) return espalier::fail(routed.error());
  espalier::lower::Report report;
  const auto lowered =
      espalier::lower::lower(mesh, parameters, espalier::PortModel::kMultiport, *routed, report);
  if (!lowered) return espalier::fail(lowered.error());
  const auto program = [&](std::uint32_t node) -> const espalier::Program& {
    return (*lowered)[node];
  };
  const espalier::verify::Verdict verdict = espalier::verify::verify(mesh, program, {});
  if (!verdict.valid) return espalier::fail(verdict.counterexample.message);
  if (!verdict.for_all) return espalier::fail("not proven for every message size");
  std::printf("%s: proven for every message size, %s", name,
              espalier::lower::describe(mesh, report).c_str());
  return {};
}

int failed(const char* what, const espalier::Error& error) {
  std::fprintf(stderr, "plan: %s: %s\n", what, error.message.c_str());
  return 1;
}

}  // namespace

int main() {
  const auto mesh = espalier::topology::parse("mesh:4x4");
  if (!mesh) return failed("no topology", mesh.error());
  CollectiveParameters parameters{.ranks = (*mesh)->ranks(), .topology_digest = (*mesh)->digest()};
  const auto placed = plan("two-tree", **mesh, parameters, two_tree(**mesh, parameters));
  if (!placed) return failed("two-tree", placed.error());
  const auto found = plan("double-fibonacci", **mesh, parameters, searched(**mesh, parameters));
  if (!found) return failed("double-fibonacci", found.error());
  return 0;
}
