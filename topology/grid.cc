#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "topology/families.h"
#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

// The links along one line of a grid.
enum class Line : std::uint8_t { kPath, kRing, kAll };

// Where the links of a grid bend in pictures, see Topology::bend().
constexpr double kLeastBend = 0.46;
constexpr double kBendPerUnit = 0.06;
constexpr double kGreatestBend = 0.64;
// Planes of a three-dimensional grid are drawn one behind the other, this far apart.
constexpr double kPlaneShift = 0.55;

// A rank's number has one digit per dimension, the last one fastest: rank r*C + c of mesh:RxC is in
// row r, column c.
class Grid final : public Topology {
 public:
  Grid(std::string family, std::vector<std::uint32_t> sizes, Line line)
      : family_(std::move(family)), sizes_(std::move(sizes)), line_(line) {
    for (std::size_t d = sizes_.size(); d-- > 0; ranks_ *= sizes_[d]) {
      strides_.insert(strides_.begin(), ranks_);
    }
  }

  [[nodiscard]] std::string spec() const override {
    if (is_hypercube()) return family_ + std::to_string(sizes_.size());
    std::string text = family_ + std::to_string(sizes_[0]);
    for (std::size_t d = 1; d < sizes_.size(); ++d) text += "x" + std::to_string(sizes_[d]);
    return text;
  }
  [[nodiscard]] std::uint32_t ranks() const override { return ranks_; }
  [[nodiscard]] std::uint32_t nodes() const override { return ranks_; }
  [[nodiscard]] std::uint64_t link_count() const override {
    std::uint64_t count = 0;
    for (const std::uint32_t size : sizes_) {
      std::uint64_t of_line = 2 * (std::uint64_t{size} - 1);
      if (line_ == Line::kRing && size > 2) of_line = 2 * std::uint64_t{size};
      if (line_ == Line::kAll) of_line = std::uint64_t{size} * (size - 1);
      count += of_line * (ranks_ / size);
    }
    return count;
  }

  [[nodiscard]] std::vector<Link> links() const override {
    std::vector<Link> links;
    links.reserve(link_count());
    std::vector<std::uint32_t> neighbours;
    for (std::uint32_t node = 0; node < ranks_; ++node) {
      neighbours.clear();
      for (std::size_t d = 0; d < sizes_.size(); ++d) add_neighbours(node, d, neighbours);
      std::sort(neighbours.begin(), neighbours.end());
      for (const std::uint32_t to : neighbours) links.push_back({node, to, 1});
    }
    return links;
  }

  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    if (from >= ranks_ || to >= ranks_) return 0;
    std::uint32_t others = 0;
    bool adjacent = false;
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
      const std::uint32_t a = digit(from, d), b = digit(to, d);
      if (a == b) continue;
      ++others;
      const std::uint32_t apart = a < b ? b - a : a - b;
      adjacent =
          line_ == Line::kAll || apart == 1 || (line_ == Line::kRing && apart + 1 == sizes_[d]);
    }
    return others == 1 && adjacent ? 1 : 0;
  }

  // Dimension order, beginning with the last dimension: XY on a mesh of rows and columns.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    std::vector<std::uint32_t> nodes = {from};
    std::uint32_t node = from;
    for (std::size_t d = sizes_.size(); d-- > 0;) {
      while (digit(node, d) != digit(to, d)) {
        node = node - digit(node, d) * strides_[d] + next(node, to, d) * strides_[d];
        nodes.push_back(node);
      }
    }
    return nodes;
  }

  [[nodiscard]] Position position(std::uint32_t node) const override {
    if (sizes_.size() == 1 && !is_hypercube()) return on_circle(node);
    if (sizes_.size() == 2) {
      return {static_cast<double>(digit(node, 1)), static_cast<double>(digit(node, 0))};
    }
    if (sizes_.size() == 3) return in_plane(node);
    // A hypercube: its bits belong to x and y in turn, beginning with the lowest.
    Position position;
    for (std::uint32_t bit = 0; bit < sizes_.size(); ++bit) {
      (bit % 2 == 0 ? position.x : position.y) += (node >> bit & 1) << bit / 2;
    }
    return position;
  }

  // A link between ranks that are not next to each other would pass over those between them.
  [[nodiscard]] double bend(std::uint32_t from, std::uint32_t to) const override {
    if (sizes_.size() == 1) return 0;
    const Position a = position(from), b = position(to);
    const double scale = sizes_.size() == 3 ? plane_unit() : 1;
    const double units = std::hypot(b.x - a.x, b.y - a.y) / scale;
    if (sizes_.size() == 3 && digit(from, 0) != digit(to, 0)) {
      return std::abs(std::int64_t{digit(from, 0)} - digit(to, 0)) == 1 ? 0 : kLeastBend;
    }
    if (units < 1.5) return 0;
    return std::min(kGreatestBend, kLeastBend + kBendPerUnit * (units - 2));
  }

  [[nodiscard]] Shape shape() const override {
    Shape shape;
    if (is_hypercube()) shape.hypercube = static_cast<std::uint32_t>(sizes_.size());
    if (line_ == Line::kAll || is_hypercube()) return shape;
    shape.grid = sizes_;
    shape.wraps = line_ == Line::kRing;
    if (sizes_.size() != 2 || shape.wraps) return shape;
    shape.rows = sizes_[0];
    shape.columns = sizes_[1];
    return shape;
  }

  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    std::string name = "rank " + std::to_string(node);
    if (is_hypercube()) {
      name += " (";
      for (std::size_t d = 0; d < sizes_.size(); ++d) name += digit(node, d) == 0 ? '0' : '1';
      return name + ")";
    }
    if (sizes_.size() == 1) return name;
    name += " (";
    if (sizes_.size() == 3) name += "plane " + std::to_string(digit(node, 0)) + ", ";
    return name + "row " + std::to_string(digit(node, sizes_.size() - 2)) + ", column " +
           std::to_string(digit(node, sizes_.size() - 1)) + ")";
  }

 private:
  [[nodiscard]] bool is_hypercube() const { return family_ == "hypercube:"; }
  [[nodiscard]] std::uint32_t digit(std::uint32_t node, std::size_t d) const {
    return node / strides_[d] % sizes_[d];
  }

  void add_neighbours(std::uint32_t node, std::size_t d, std::vector<std::uint32_t>& out) const {
    const std::uint32_t size = sizes_[d], at = digit(node, d);
    const auto add = [&](std::uint32_t other) {
      out.push_back(node - at * strides_[d] + other * strides_[d]);
    };
    if (line_ == Line::kAll) {
      for (std::uint32_t other = 0; other < size; ++other) {
        if (other != at) add(other);
      }
      return;
    }
    const bool wraps = line_ == Line::kRing && size > 2;
    if (at > 0 || wraps) add((at + size - 1) % size);
    if (at + 1 < size || wraps) add((at + 1) % size);
  }

  // The next digit on the way from `node` to `to`, whose digits differ. In a ring: the shorter way,
  // and in the increasing direction if both are equally long.
  [[nodiscard]] std::uint32_t next(std::uint32_t node, std::uint32_t to, std::size_t d) const {
    const std::uint32_t size = sizes_[d], at = digit(node, d), end = digit(to, d);
    if (line_ == Line::kAll) return end;
    bool up = at < end;
    if (line_ == Line::kRing) up = (end + size - at) % size <= size / 2;
    return (at + (up ? 1 : size - 1)) % size;
  }

  // Rank 0 at the top, clockwise; neighbours are one unit apart.
  [[nodiscard]] Position on_circle(std::uint32_t node) const {
    if (ranks_ == 1) return {0, 0};
    const double radius = 0.5 / std::sin(std::numbers::pi / ranks_);
    const double angle = 2 * std::numbers::pi * node / ranks_;
    return {radius * (1 + std::sin(angle)), radius * (1 - std::cos(angle))};
  }

  // The distance between neighbours of a plane: so far that the planes behind it fit between them.
  [[nodiscard]] double plane_unit() const { return 0.45 + kPlaneShift * sizes_[0]; }
  [[nodiscard]] Position in_plane(std::uint32_t node) const {
    const double shift = kPlaneShift * digit(node, 0);
    return {plane_unit() * digit(node, 2) + shift,
            plane_unit() * digit(node, 1) + kPlaneShift * (sizes_[0] - 1) - shift};
  }

  std::string family_;
  std::vector<std::uint32_t> sizes_;  // of the dimensions
  Line line_;
  std::vector<std::uint32_t> strides_;  // difference of rank between neighbours of a dimension
  std::uint32_t ranks_ = 1;
};

// Two numbers, or three.
Result<std::unique_ptr<Topology>> parse_grid(std::string family, std::string_view text, Line line,
                                             std::string_view shape) {
  SpecReader reader(family, text, shape);
  std::vector<std::uint32_t> sizes;
  const bool planes = std::count(text.begin(), text.end(), 'x') > 1;
  if (planes) {
    sizes.push_back(reader.number("the number of planes"));
    reader.literal("x");
  }
  sizes.push_back(reader.number("the number of rows"));
  reader.literal("x");
  sizes.push_back(reader.number("the number of columns"));
  reader.end();
  std::uint64_t ranks = 1;
  for (const std::uint32_t size : sizes) {
    ranks = size != 0 && ranks > kMaxTopologyNodes ? ranks : ranks * size;
  }
  reader.limit_nodes(ranks);
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Grid>(std::move(family), std::move(sizes), line);
}

}  // namespace

Result<std::unique_ptr<Topology>> parse_mesh(std::string_view text) {
  return parse_grid("mesh:", text, Line::kPath,
                    "mesh:RxC with R and C at least 1, e.g. mesh:4x4, or mesh:AxBxC");
}

Result<std::unique_ptr<Topology>> parse_torus(std::string_view text) {
  return parse_grid("torus:", text, Line::kRing,
                    "torus:RxC with R and C at least 1, e.g. torus:4x4, or torus:AxBxC");
}

Result<std::unique_ptr<Topology>> parse_hyperx(std::string_view text) {
  return parse_grid("hyperx:", text, Line::kAll,
                    "hyperx:AxB with A and B at least 1, e.g. hyperx:4x4, or hyperx:AxBxC");
}

Result<std::unique_ptr<Topology>> parse_ring(std::string_view text) {
  SpecReader reader("ring:", text, "ring:P with P at least 1, e.g. ring:8");
  const std::uint32_t ranks = reader.number("the number of ranks");
  reader.end();
  reader.limit_nodes(ranks);
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Grid>("ring:", std::vector{ranks}, Line::kRing);
}

Result<std::unique_ptr<Topology>> parse_hypercube(std::string_view text) {
  SpecReader reader("hypercube:", text,
                    "hypercube:D with D dimensions, 1 to 24, e.g. hypercube:4 of 16 ranks");
  const std::uint32_t dimensions = reader.number("the number of dimensions");
  reader.end();
  reader.limit_nodes(std::uint64_t{1} << std::min(dimensions, 32u));
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<Grid>("hypercube:", std::vector(dimensions, 2u), Line::kPath);
}

}  // namespace espalier::topology
