// Plans two broadcasts for the links of a 4 x 4 mesh, and proves them for every message size: the
// two-tree algorithm, placed by its known embedding, and one that a search finds. Both are lowered,
// so that every message goes to a neighbour.

#include <cstdio>
#include <string>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/algorithms/searched.h"
#include "espalier/collectives/embed/place.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/embedding.h"
#include "espalier/topology/topology.h"

namespace {

using espalier::Group;
using espalier::Programs;
using espalier::Status;
using espalier::topology::Topology;

// Makes the programs of the two-tree broadcast, each on the node where the known embedding places
// it. Returns an empty string, or the error.
std::string two_tree(const Topology& mesh, const Group& group, Programs& programs) {
  const espalier::Algorithm* algorithm =
      espalier::find_algorithm(espalier::Collective::kBroadcast, "two-tree");
  programs.resize(group.ranks);
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    const Status status = algorithm->generate(group, rank, programs[rank]);
    if (status != Status::kOk) return espalier::status_name(status);
  }
  espalier::topology::Wanted wanted;
  wanted.collective = "broadcast";
  wanted.algorithm = "two-tree";
  wanted.root = group.root;
  wanted.hops = espalier::topology::Hops::kStoreAndForward;
  const auto embedding = espalier::topology::best_embedding(mesh, wanted);
  if (!embedding) return "no known embedding";
  const Status status = espalier::embed::place_all(embedding->node_of, programs);
  return status == Status::kOk ? "" : espalier::status_name(status);
}

std::string searched(const Topology& mesh, const Group& group, Programs& programs) {
  return espalier::searched::find_searched(espalier::Collective::kBroadcast, "double-fibonacci")
      ->search(mesh, group, programs);
}

// Lowers the programs onto the mesh's links, proves the result and prints what it is.
std::string plan(const char* name, const Topology& mesh, const Group& group,
                 const Programs& routed) {
  Programs lowered;
  espalier::lower::Report report;
  std::string error =
      espalier::lower::lower(mesh, group, espalier::PortModel::kMultiport, routed, lowered, report);
  if (!error.empty()) return error;
  const auto program = [&](std::uint32_t node) -> const espalier::Program& {
    return lowered[node];
  };
  const espalier::verify::Verdict verdict = espalier::verify::verify(mesh, program, {});
  if (!verdict.valid) return verdict.counterexample.message;
  if (!verdict.for_all) return "not proven for every message size";
  std::printf("%s: proven for every message size, %s", name,
              espalier::lower::describe(mesh, report).c_str());
  return "";
}

}  // namespace

int main() {
  std::string error;
  const auto mesh = espalier::topology::parse("mesh:4x4", error);
  if (mesh == nullptr) {
    std::fprintf(stderr, "plan: %s\n", error.c_str());
    return 1;
  }
  Group group;
  group.ranks = mesh->ranks();
  group.topology_digest = mesh->digest();
  for (const bool search : {false, true}) {
    const char* const name = search ? "double-fibonacci" : "two-tree";
    Programs programs;
    error = search ? searched(*mesh, group, programs) : two_tree(*mesh, group, programs);
    if (error.empty()) error = plan(name, *mesh, group, programs);
    if (error.empty()) continue;
    std::fprintf(stderr, "plan: %s: %s\n", name, error.c_str());
    return 1;
  }
  return 0;
}
