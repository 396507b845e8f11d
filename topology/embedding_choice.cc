// The known embeddings, and the choice of one for a topology, collective and algorithm.

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "espalier/internal/base/assert.h"
#include "espalier/topology/topology.h"
#include "topology/embedding_family.h"

namespace espalier::topology {
namespace {

// The reduce of a broadcast whose ranks are placed by groups. Name: mesh-CxR-reduce-... for
// mesh-RxC-broadcast-...
Embedding reduce_of(const Embedding& broadcast) {
  Embedding reduce = reversed(broadcast, "reduce");
  const std::string word = "-broadcast-";
  const std::size_t at = broadcast.name.find(word);
  ESPALIER_ASSERT(at != std::string::npos);
  reduce.name = "mesh-" + reduce.topology.substr(reduce.topology.find(':') + 1) + "-reduce-" +
                broadcast.name.substr(at + word.size());
  return reduce;
}

std::vector<Embedding> parse_known() {
  std::vector<Embedding> all;
  for (const KnownEmbedding& known : kKnownEmbeddings) {
    auto embedding = parse_embedding(known.text, std::string(known.name));
    ESPALIER_ASSERT(embedding);
    if (!embedding) continue;
    if (!embedding->groups.empty()) all.push_back(reduce_of(*embedding));
    all.push_back(*std::move(embedding));
  }
  for (const std::string_view text : kKnownFamilies) {
    auto family = parse_family(text);
    ESPALIER_ASSERT(family);
    if (family) std::move(family->begin(), family->end(), std::back_inserter(all));
  }
  return all;
}

const std::vector<Embedding>& all_known() {
  static const std::vector<Embedding> all = parse_known();
  return all;
}

// Mirrors the embedding: the mesh upside down, or left and right exchanged. XY routes remain XY
// routes.
Embedding mirrored(Embedding embedding, const Shape& mesh, bool rows, bool columns) {
  for (std::uint32_t& node : embedding.node_of) {
    const std::uint32_t row = node / mesh.columns, column = node % mesh.columns;
    node = (rows ? mesh.rows - 1 - row : row) * mesh.columns +
           (columns ? mesh.columns - 1 - column : column);
  }
  return embedding;
}

// Returns the embedding, mirrored if necessary so that its root is `root`. Nothing if impossible.
std::optional<Embedding> turned(const Embedding& embedding, const Topology& topology,
                                const std::optional<std::uint32_t>& root) {
  if (!root || embedding.node_of.front() == *root) return embedding;
  const Shape mesh = topology.shape();
  if (mesh.rows == 0) return std::nullopt;
  for (const auto& [rows, columns] : {std::pair{true, false}, {false, true}, {true, true}}) {
    Embedding other = mirrored(embedding, mesh, rows, columns);
    if (other.node_of.front() != *root) continue;
    other.name += rows && columns ? " (turned)" : rows ? " (upside down)" : " (mirrored)";
    return other;
  }
  return std::nullopt;
}

// Appends nodes row by row, back and forth, in the columns from `first` onward.
void wind(std::vector<std::uint32_t>& order, std::uint32_t rows, std::uint32_t columns,
          std::uint32_t first) {
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t column = first; column < columns; ++column) {
      order.push_back(row * columns + (row % 2 == 0 ? column : columns - 1 + first - column));
    }
  }
}

// A ring around the whole mesh for an even number of rows: back and forth, and back in column 0.
std::vector<std::uint32_t> ring(std::uint32_t rows, std::uint32_t columns) {
  std::vector<std::uint32_t> order{0};
  wind(order, rows, columns, 1);
  for (std::uint32_t row = rows; row-- > 1;) order.push_back(row * columns);
  return order;
}

}  // namespace

std::vector<std::string> known_embeddings() {
  std::vector<std::string> names;
  for (const Embedding& known : all_known()) names.push_back(known.name);
  return names;
}

std::optional<Embedding> known_embedding(const std::string& name) {
  for (const Embedding& known : all_known()) {
    if (known.name == name) return known;
  }
  return std::nullopt;
}

std::optional<Embedding> best_embedding(const Topology& topology, const Wanted& wanted) {
  std::optional<Embedding> best;
  const std::string spec = topology.spec();
  for (const Embedding& known : all_known()) {
    if (known.topology != spec || known.collective != wanted.collective ||
        known.algorithm != wanted.algorithm ||
        (wanted.run_length != 0 && known.run_length != 0 &&
         known.run_length != wanted.run_length)) {
      continue;
    }
    if (best && (best->switching == wanted.switching || known.switching != wanted.switching))
      continue;
    if (auto found = turned(known, topology, wanted.root)) best = std::move(found);
  }
  return best;
}

std::optional<Embedding> snake(const Topology& topology, std::uint32_t root) {
  const Shape mesh = topology.shape();
  if (mesh.rows == 0) return std::nullopt;
  Embedding embedding{
      .name = "snake", .topology = topology.spec(), .switching = Switching::kStoreAndForward};
  std::vector<std::uint32_t>& order = embedding.node_of;
  const bool by_columns = mesh.rows % 2 != 0 && mesh.columns % 2 == 0;
  const std::uint32_t rows = by_columns ? mesh.columns : mesh.rows;
  const std::uint32_t columns = by_columns ? mesh.rows : mesh.columns;
  if (rows % 2 != 0 || columns < 2) {  // no ring exists
    wind(order, rows, columns, 0);
    return turned(embedding, topology, root);
  }
  order = ring(rows, columns);
  if (by_columns) {
    for (std::uint32_t& node : order) node = node % columns * mesh.columns + node / columns;
  }
  std::rotate(order.begin(), std::find(order.begin(), order.end(), root), order.end());
  return embedding;
}

std::optional<Embedding> z_order(const Topology& topology) {
  const Shape mesh = topology.shape();
  if (!std::has_single_bit(mesh.rows) || !std::has_single_bit(mesh.columns)) return std::nullopt;
  Embedding embedding{.name = "z-order", .topology = topology.spec()};
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    std::uint32_t row = 0, column = 0, digits = rank;
    for (std::uint32_t weight = 1; weight < mesh.columns || weight < mesh.rows; weight *= 2) {
      for (const auto& [into, limit] : {std::pair{&column, mesh.columns}, {&row, mesh.rows}}) {
        if (weight >= limit) continue;
        *into += digits % 2 * weight;
        digits /= 2;
      }
    }
    embedding.node_of.push_back(row * mesh.columns + column);
  }
  return embedding;
}

}  // namespace espalier::topology
