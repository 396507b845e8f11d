#include "topology/mesh.h"

#include <algorithm>

#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

// Rank r*columns + c is in row r, column c.
class Mesh final : public Topology {
 public:
  Mesh(std::uint32_t rows, std::uint32_t columns) : rows_(rows), columns_(columns) {}
  [[nodiscard]] std::string spec() const override {
    return "mesh:" + std::to_string(rows_) + "x" + std::to_string(columns_);
  }
  [[nodiscard]] std::uint32_t ranks() const override { return rows_ * columns_; }
  [[nodiscard]] std::uint32_t nodes() const override { return rows_ * columns_; }
  [[nodiscard]] std::uint64_t link_count() const override {
    const std::uint64_t in_rows = std::uint64_t{rows_} * (columns_ - 1);
    const std::uint64_t in_columns = std::uint64_t{columns_} * (rows_ - 1);
    return 2 * (in_rows + in_columns);
  }

  [[nodiscard]] std::vector<Link> links() const override {
    std::vector<Link> links;
    links.reserve(link_count());
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      const std::uint32_t row = node / columns_;
      const std::uint32_t column = node % columns_;
      if (row > 0) links.push_back({node, node - columns_, 1});
      if (column > 0) links.push_back({node, node - 1, 1});
      if (column + 1 < columns_) links.push_back({node, node + 1, 1});
      if (row + 1 < rows_) links.push_back({node, node + columns_, 1});
    }
    return links;
  }

  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    if (from >= nodes() || to >= nodes()) return 0;
    const std::uint32_t low = std::min(from, to), high = std::max(from, to);
    const bool in_row = high == low + 1 && high % columns_ != 0;
    return in_row || high == low + columns_ ? 1 : 0;
  }

  // XY: first along the row to the destination's column, then along the column.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    std::vector<std::uint32_t> nodes = {from};
    std::uint32_t node = from;
    while (node % columns_ != to % columns_) {
      node = node % columns_ < to % columns_ ? node + 1 : node - 1;
      nodes.push_back(node);
    }
    while (node != to) {
      node = node < to ? node + columns_ : node - columns_;
      nodes.push_back(node);
    }
    return nodes;
  }

  [[nodiscard]] Position position(std::uint32_t node) const override {
    return {static_cast<double>(node % columns_), static_cast<double>(node / columns_)};
  }

  [[nodiscard]] Shape shape() const override {
    Shape shape;
    shape.rows = rows_;
    shape.columns = columns_;
    return shape;
  }

  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    return "rank " + std::to_string(node) + " (row " + std::to_string(node / columns_) +
           ", column " + std::to_string(node % columns_) + ")";
  }

 private:
  std::uint32_t rows_, columns_;
};

}  // namespace

Result<std::unique_ptr<Topology>> parse_mesh(std::string_view text) {
  SpecReader reader("mesh:", text, "mesh:RxC with R and C at least 1, e.g. mesh:4x4");
  const std::uint32_t rows = reader.number("the number of rows");
  reader.literal("x");
  const std::uint32_t columns = reader.number("the number of columns");
  reader.end();
  reader.limit_nodes(std::uint64_t{rows} * columns);
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Mesh>(rows, columns);
}

}  // namespace espalier::topology
