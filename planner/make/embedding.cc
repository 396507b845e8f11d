#include "planner/make/embedding.h"

#include <map>
#include <string>

#include "base/one_line.h"
#include "espalier/collectives/embed/place.h"
#include "planner/failure.h"

namespace espalier::planner {
namespace {

// Whether its schedules can be placed anywhere: only ranks have programs, and any topology will do.
bool may_stand_anywhere(const AlgorithmEntry& entry) {
  return (entry.any_topology || entry.has_groups) && embed::check_placeable(entry.collective) &&
         entry.collective != Collective::kBarrier;
}

std::optional<topology::Embedding> best(const Selection& selection,
                                        const SelectedAlgorithm& selected) {
  if (!may_stand_anywhere(selected.algorithm)) return std::nullopt;
  const bool hop_by_hop = selection.links == "hop-by-hop";
  topology::Wanted wanted{
      .collective = collective_name(selected.algorithm.collective),
      .algorithm = selected.algorithm.name,
      .run_length = selected.parameters.run_length,
      .root = {},
      .switching = hop_by_hop ? Switching::kStoreAndForward : Switching::kCutThrough};
  if (has_root(selected.algorithm.collective)) wanted.root = selected.parameters.root;
  auto found = topology::best_embedding(*selected.topology, wanted);
  // A chain keeps the order of ranks where its operator may want it.
  const bool in_any_order = selected.algorithm.collective == Collective::kBroadcast;
  if (!found && hop_by_hop && selected.algorithm.is_chain && in_any_order) {
    found = topology::snake(*selected.topology, selected.parameters.root);
  }
  return found;
}

// Every candidate of a choice asks for the file, and a pipe can be read only once.
const Result<topology::Embedding>& of_file(const std::string& path) {
  static std::map<std::string, Result<topology::Embedding>> files;
  const auto found = files.find(path);
  if (found != files.end()) return found->second;
  return files.emplace(path, topology::read_embedding(path)).first->second;
}

topology::Embedding stored(const std::string& name) {
  if (auto known = topology::known_embedding(name)) return *std::move(known);
  if (name.find('/') != std::string::npos || name.ends_with(".textproto")) {
    return or_bad_input(of_file(name));
  }
  bad_input(
      "unknown embedding '" + one_line(name) +
      "'; expected none, snake, z-order, one that 'espalier list --embeddings' names, or a file "
      "(NAME.textproto)");
}

topology::Embedding named(const std::string& name, const SelectedAlgorithm& selected) {
  if (name == "snake") {
    auto found = topology::snake(*selected.topology, selected.parameters.root);
    if (found) return *found;
    bad_input("no snake on " + selected.topology->title() + " from rank " +
              std::to_string(selected.parameters.root) +
              "; expected a mesh with an even number of rows or columns, or a corner of it");
  }
  if (name == "z-order") {
    if (auto found = topology::z_order(*selected.topology)) return *std::move(found);
    bad_input("no z-order on " + selected.topology->title() +
              "; expected a mesh whose numbers of rows and of columns are powers of two");
  }
  return stored(name);
}

void check(const topology::Embedding& embedding, const SelectedAlgorithm& selected) {
  const AlgorithmEntry& entry = selected.algorithm;
  const std::string who = "embedding " + quoted_name(embedding) + " is for ";
  if (embedding.topology != selected.topology->spec()) {
    const auto topology = or_bad_input(topology::parse(embedding.topology));
    bad_input(who + "topology " + topology->title() + "; expected one for " +
              selected.topology->title());
  }
  const std::string wanted = std::string(collective_name(entry.collective)) + " by " + entry.name;
  const std::string own = embedding.collective + " by " + embedding.algorithm;
  if (!embedding.algorithm.empty() && own != wanted) {
    bad_input(who + one_line(own) + "; expected one for " + wanted);
  }
  if (!may_stand_anywhere(entry)) {
    const auto placeable = embed::check_placeable(entry.collective);
    bad_input(
        wanted + " takes no embedding: " +
        (placeable ? "it is for " + entry.topologies + " as they are" : placeable.error().message) +
        "; expected --embedding none");
  }
  if (selected.parameters.run_length != 0 && embedding.run_length != 0 &&
      embedding.run_length != selected.parameters.run_length) {
    bad_input(who + "runs of " + std::to_string(embedding.run_length) + "; expected --run-length " +
              std::to_string(embedding.run_length));
  }
  if (has_root(entry.collective) && embedding.node_of.front() != selected.parameters.root) {
    bad_input(who + "root " + std::to_string(embedding.node_of.front()) + "; expected --root " +
              std::to_string(embedding.node_of.front()));
  }
}

}  // namespace

void check_embedding_name(const std::string& name) {
  if (name.empty() || name == "none" || name == "snake" || name == "z-order") return;
  (void)stored(name);
}

std::string quoted_name(const topology::Embedding& embedding) {
  return "'" + one_line(embedding.name) + "'";
}

std::optional<topology::Embedding> choose_embedding(const Selection& selection,
                                                    const SelectedAlgorithm& selected) {
  if (selection.embedding.empty()) return best(selection, selected);
  if (selection.embedding == "none") return std::nullopt;
  topology::Embedding embedding = named(selection.embedding, selected);
  check(embedding, selected);
  return embedding;
}

}  // namespace espalier::planner
