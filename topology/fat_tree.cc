#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "topology/families.h"
#include "topology/spec_reader.h"

namespace espalier::topology {
namespace {

constexpr std::string_view kFatTreeForm =
    "fattree:k=K,h=H,c=1 or c=k or c=c1,...,cH with K at least 2 and H at least 1, e.g. "
    "fattree:k=4,h=2,c=1; or k=K1xK2x...xKH by level, e.g. fattree:k=4x3,c=1";

// A tree of this height has more than kMaxTopologyNodes nodes for any arities.
constexpr std::uint32_t kTooHigh = std::bit_width(kMaxTopologyNodes);

// Nodes: the ranks (level 0) in order, then the routers of level 1, level 2, and so on; the root is
// last.
class FatTree final : public Topology {
 public:
  // `arities` and `capacities`: of the levels from 1 upwards, the same number of each.
  FatTree(std::vector<std::uint32_t> arities, std::vector<std::uint32_t> capacities)
      : arities_(std::move(arities)), capacities_(std::move(capacities)) {
    const std::size_t height = capacities_.size();
    std::vector<std::uint32_t> sizes(height + 1, 1);
    for (std::size_t level = height; level-- > 0;)
      sizes[level] = sizes[level + 1] * arities_[level];
    first_.assign(1, 0);
    for (const std::uint32_t size : sizes) first_.push_back(first_.back() + size);
  }

  [[nodiscard]] std::string spec() const override {
    std::string text = "fattree:k=" + std::to_string(arities_[0]);
    if (equal()) {
      text += ",h=" + std::to_string(arities_.size());
    } else {
      for (std::size_t i = 1; i < arities_.size(); ++i) text += "x" + std::to_string(arities_[i]);
    }
    text += ",c=";
    if (constant()) return text + "1";
    if (exponential()) return text + "k";
    for (std::size_t i = 0; i < capacities_.size(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(capacities_[i]);
    }
    return text;
  }

  [[nodiscard]] std::uint32_t ranks() const override { return first_[1]; }
  [[nodiscard]] std::uint32_t nodes() const override { return first_.back(); }
  // Every node except the root has a branch up, which has one link per direction.
  [[nodiscard]] std::uint64_t link_count() const override {
    return 2 * (std::uint64_t{nodes()} - 1);
  }

  [[nodiscard]] std::vector<Link> links() const override {
    std::vector<Link> links;
    links.reserve(link_count());
    for (std::uint32_t node = 0; node + 1 < nodes(); ++node) {
      const std::uint32_t capacity = capacities_[level(node)];
      links.push_back({node, parent(node), capacity});
      links.push_back({parent(node), node, capacity});
    }
    return links;
  }

  [[nodiscard]] std::uint32_t capacity(std::uint32_t from, std::uint32_t to) const override {
    const std::uint32_t low = std::min(from, to), high = std::max(from, to);
    if (high >= nodes() || low + 1 >= nodes() || low == high || parent(low) != high) return 0;
    return capacities_[level(low)];
  }

  // Up to the lowest common ancestor, then down.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from,
                                                 std::uint32_t to) const override {
    std::vector<std::uint32_t> up = {from};
    std::vector<std::uint32_t> down = {to};
    while (up.back() != down.back()) {
      const bool rise_left = level(up.back()) <= level(down.back());
      const bool rise_right = level(down.back()) <= level(up.back());
      if (rise_left) up.push_back(parent(up.back()));
      if (rise_right) down.push_back(parent(down.back()));
    }
    up.insert(up.end(), down.rbegin() + 1, down.rend());
    return up;
  }

  // Leaves are one unit apart at the bottom; each router is above the middle of its children.
  [[nodiscard]] Position position(std::uint32_t node) const override {
    double width = 1;  // leaves below one node of this level
    for (std::uint32_t i = 0; i < level(node); ++i) width *= arities_[i];
    const double index = node - first_[level(node)];
    const double rise = std::max(1.5, 0.12 * ranks());
    return {index * width + (width - 1) / 2,
            rise * static_cast<double>(capacities_.size() - level(node))};
  }

  [[nodiscard]] Shape shape() const override {
    return {.arity = equal() ? arities_[0] : 0,
            .height = static_cast<std::uint32_t>(capacities_.size()),
            .arities = arities_,
            .capacities = capacities_};
  }

  [[nodiscard]] std::string node_name(std::uint32_t node) const override {
    if (node < ranks()) return "rank " + std::to_string(node);
    return "router " + std::to_string(node) + " (level " + std::to_string(level(node)) + ")";
  }

 private:
  [[nodiscard]] std::uint32_t level(std::uint32_t node) const {
    std::uint32_t number = 0;
    while (node >= first_[number + 1]) ++number;
    return number;
  }
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const {
    const std::uint32_t own = level(node);
    return first_[own + 1] + (node - first_[own]) / arities_[own];
  }
  [[nodiscard]] bool equal() const {
    return std::all_of(arities_.begin(), arities_.end(), [&](auto k) { return k == arities_[0]; });
  }
  [[nodiscard]] bool constant() const {
    return std::all_of(capacities_.begin(), capacities_.end(), [](auto c) { return c == 1; });
  }
  [[nodiscard]] bool exponential() const {
    std::uint64_t power = 1;
    for (std::size_t i = 0; i < capacities_.size(); power *= arities_[i++]) {
      if (capacities_[i] != power) return false;
    }
    return true;
  }

  std::vector<std::uint32_t> arities_;     // children of a router of level l+1
  std::vector<std::uint32_t> capacities_;  // of the branches of level l+1, lanes per direction
  std::vector<std::uint32_t> first_;       // first node of each level, then the number of nodes
};

// Reads k_1, and the others after "x", if any.
std::vector<std::uint32_t> read_arities(SpecReader& reader) {
  std::vector<std::uint32_t> arities;
  std::string name = "k";
  do {
    arities.push_back(reader.number(name));
    if (arities.back() == 1) reader.fail(name + " is 1");
    name = "k" + std::to_string(arities.size() + 1);
  } while (arities.back() > 1 && reader.take("x"));
  return arities;
}

// Reads h. A list of arities has one for each level, and h may be absent; otherwise all levels get
// the only arity. Fails if the tree is too large.
void read_height(SpecReader& reader, std::vector<std::uint32_t>& arities) {
  std::string tree = "k=" + std::to_string(arities[0]);
  if (arities.size() > 1) {
    for (std::size_t i = 1; i < arities.size(); ++i) tree += "x" + std::to_string(arities[i]);
    if (reader.take(",h=") && reader.number("h") != arities.size()) {
      reader.fail("h is not the number of arities, " + std::to_string(arities.size()));
    }
  } else {
    reader.literal(",h=");
    const std::uint32_t height = reader.number("h");
    tree += " and h=" + std::to_string(height);
    arities.resize(std::clamp(height, 1u, kTooHigh), arities[0]);
  }
  std::uint64_t nodes = 1;
  for (const std::uint32_t arity : arities) {
    if (nodes <= kMaxTopologyNodes) nodes = nodes * arity + 1;
  }
  if (nodes <= kMaxTopologyNodes) return;
  reader.fail("a tree of " + tree + " has more than " + std::to_string(kMaxTopologyNodes) +
              " nodes");
}

// Reads c_1, c_2, ..., one for each arity.
std::vector<std::uint32_t> read_capacities(SpecReader& reader,
                                           const std::vector<std::uint32_t>& arities) {
  std::vector<std::uint32_t> capacities;
  if (reader.take("k")) {
    std::uint32_t product = 1;
    for (const std::uint32_t arity : arities) {
      capacities.push_back(product);
      product *= arity;
    }
    return capacities;
  }
  capacities.push_back(reader.number("c1"));
  while (reader.take(",")) {
    capacities.push_back(reader.number("c" + std::to_string(capacities.size() + 1)));
  }
  if (capacities.size() == 1 && capacities[0] == 1) capacities.assign(arities.size(), 1);
  return capacities;
}

}  // namespace

Result<std::unique_ptr<Topology>> parse_fat_tree(std::string_view text) {
  SpecReader reader("fattree:", text, kFatTreeForm);
  reader.literal("k=");
  std::vector<std::uint32_t> arities = read_arities(reader);
  const bool listed = arities.size() > 1;
  read_height(reader, arities);
  std::vector<std::uint32_t> capacities(arities.size(), 1);
  const bool stated = !listed || reader.take(",");
  if (stated) reader.literal(listed ? "c=" : ",c=");
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  if (stated) capacities = read_capacities(reader, arities);
  reader.end();
  if (capacities.size() != arities.size()) {
    reader.fail("c lists " + counted(capacities.size(), "capacity") +
                " for h=" + std::to_string(arities.size()));
  }
  if (auto sound = reader.result(); !sound) return fail(sound.error());
  return std::make_unique<FatTree>(std::move(arities), std::move(capacities));
}

}  // namespace espalier::topology
