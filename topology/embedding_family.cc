#include "topology/embedding_family.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "base/counted.h"
#include "embedding.pb.h"
#include "topology/text_file.h"

namespace espalier::topology {
namespace {

struct MeshSize {
  std::uint32_t rows, columns;
  [[nodiscard]] std::string text() const {
    return std::to_string(rows) + "x" + std::to_string(columns);
  }
};

// Returns 16 for a character that is not a digit.
std::uint32_t hex_digit(char c) {
  const std::size_t digit = std::string_view("0123456789abcdef").find(c);
  return digit == std::string_view::npos ? 16 : static_cast<std::uint32_t>(digit);
}

// The nodes of a row of the file.
Result<std::vector<std::uint32_t>> nodes_of(const MeshSize& mesh, const std::string& text) {
  std::vector<std::uint32_t> nodes;
  std::vector<bool> taken(std::size_t{mesh.rows} * mesh.columns, false);
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const std::uint32_t row = hex_digit(text[at]), column = hex_digit(text[at + 1]);
    if (row >= mesh.rows || column >= mesh.columns || taken[row * mesh.columns + column]) {
      return fail("mesh " + mesh.text() + ": node '" + text.substr(at, 2) +
                  "'; expected each node once, by row and column");
    }
    nodes.push_back(row * mesh.columns + column);
    taken[nodes.back()] = true;
  }
  if (nodes.size() == taken.size() && text.size() == 2 * nodes.size()) return nodes;
  return fail("mesh " + mesh.text() + ": " + counted(text.size(), "digit") +
              "; expected two for each node");
}

Embedding embedding_on(const MeshSize& mesh, const EmbeddingFamily& family,
                       const std::string& collective) {
  Embedding embedding{.name = "mesh-" + mesh.text() + "-" + collective + "-" + family.algorithm(),
                      .topology = "mesh:" + mesh.text(),
                      .collective = collective,
                      .algorithm = family.algorithm(),
                      .run_length = family.run_length()};
  if (family.run_length() != 0) embedding.name += "-r" + std::to_string(family.run_length());
  return embedding;
}

}  // namespace

Result<std::vector<Embedding>> parse_family(std::string_view text) {
  FirstError errors("");
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  EmbeddingFamily family;
  if (!parser.ParseFromString(std::string(text), &family)) {
    errors.AddError(0, 0, "the text cannot be parsed");  // ignored if there is an error already
    return fail("line " + std::to_string(errors.error->source.line + 1) + ": " +
                errors.error->what);
  }
  std::vector<Embedding> all;
  for (const EmbeddingFamily::Mesh& row : family.mesh()) {
    const MeshSize mesh{row.rows(), row.columns()}, turned{row.columns(), row.rows()};
    auto nodes = nodes_of(mesh, row.nodes());
    if (!nodes) return fail(nodes.error());
    Embedding own = embedding_on(mesh, family, family.collective());
    own.node_of = *std::move(nodes);
    own.found_by = family.found_by();
    const std::string placeholder = "RxC";
    if (const std::size_t at = own.found_by.find(placeholder); at != std::string::npos) {
      own.found_by.replace(at, placeholder.size(), mesh.text());
    }
    const bool is_own_reverse =
        family.reversed() == family.collective() && mesh.rows == mesh.columns;
    if (!family.reversed().empty() && !is_own_reverse) {
      Embedding backwards = reversed(own, family.reversed());
      backwards.name = embedding_on(turned, family, family.reversed()).name;
      all.push_back(std::move(backwards));
    }
    all.push_back(std::move(own));
  }
  return all;
}

}  // namespace espalier::topology
