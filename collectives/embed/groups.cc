#include "collectives/embed/groups.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>

#include "collectives/embed/anneal.h"
#include "espalier/internal/base/assert.h"

namespace espalier::embed {
namespace {

constexpr std::uint32_t kWindings = 8;

// The rectangles of a mesh, with the nodes of each in the eight orders of a snake: along rows or
// columns, from each of the four corners.
class Rectangles {
 public:
  Rectangles(const topology::Shape& mesh, const GroupShape& shape)
      : down_(mesh.rows / shape.rows), across_(mesh.columns / shape.columns) {
    for (std::uint32_t rectangle = 0; rectangle < count(); ++rectangle) {
      const std::uint32_t row = rectangle / across_ * shape.rows,
                          column = rectangle % across_ * shape.columns;
      for (std::uint32_t winding = 0; winding < kWindings; ++winding) {
        nodes_.push_back(wind(shape, winding, row, column, mesh.columns));
      }
    }
  }
  [[nodiscard]] std::uint32_t down() const { return down_; }
  [[nodiscard]] std::uint32_t across() const { return across_; }
  [[nodiscard]] std::uint32_t count() const { return down_ * across_; }
  [[nodiscard]] const std::vector<std::uint32_t>& nodes(std::uint32_t rectangle,
                                                        std::uint32_t winding) const {
    return nodes_[rectangle * kWindings + winding];
  }

 private:
  static std::vector<std::uint32_t> wind(const GroupShape& shape, std::uint32_t winding,
                                         std::uint32_t row, std::uint32_t column,
                                         std::uint32_t stride) {
    const bool by_columns = (winding & 1) != 0, from_right = (winding & 2) != 0,
               from_bottom = (winding & 4) != 0;
    const std::uint32_t lines = by_columns ? shape.columns : shape.rows;
    const std::uint32_t length = by_columns ? shape.rows : shape.columns;
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t line = 0; line < lines; ++line) {
      for (std::uint32_t position = 0; position < length; ++position) {
        const std::uint32_t along = line % 2 == 0 ? position : length - 1 - position;
        const std::uint32_t y = by_columns ? along : line, x = by_columns ? line : along;
        nodes.push_back((row + (from_bottom ? shape.rows - 1 - y : y)) * stride + column +
                        (from_right ? shape.columns - 1 - x : x));
      }
    }
    return nodes;
  }

  std::uint32_t down_, across_;
  std::vector<std::vector<std::uint32_t>> nodes_;
};

// An H-tree. Each half of a region has its own root and one free rectangle. The region's root takes
// one of the two free rectangles; the other stays free.
struct HTree {
  struct Region {
    std::uint32_t row, column, rows, columns;
  };
  std::uint32_t across;
  std::vector<std::uint32_t>& rectangle_of;  // by group, numbered as in complete_tree()

  // Places the complete tree below heap position `root` (children 2*root, 2*root+1); returns the
  // free rectangle.
  std::uint32_t place(const Region& region, std::uint32_t root) {
    if (region.rows * region.columns == 1) return region.row * across + region.column;
    Region first = region, second = region;
    if (region.rows >= region.columns) {
      first.rows = second.rows = region.rows / 2;
      second.row += first.rows;
    } else {
      first.columns = second.columns = region.columns / 2;
      second.column += first.columns;
    }
    rectangle_of[root] = place(first, 2 * root);
    return place(second, 2 * root + 1);
  }
};

struct Seat {
  std::uint32_t rectangle = 0, winding = 0;
};

class GroupArrangement {
 public:
  GroupArrangement(const Rectangles& rectangles, const Routes& routes, const GroupTree& tree,
                   const Search& search)
      : rectangles_(rectangles),
        tree_(tree),
        period_(tree.run_length + 1),
        stored_(search.switching == Switching::kStoreAndForward),
        root_moves_(search.root_moves),
        loads_(routes, stored_ ? std::vector<std::uint32_t>{period_}
                               : std::vector<std::uint32_t>(period_, 1)),
        children_(tree.groups.size()),
        seats_(tree.groups.size()),
        group_at_(tree.groups.size()),
        next_(tree.groups.size()) {
    for (std::uint32_t group = 1; group < count(); ++group) {
      children_[tree.groups[group].parent].push_back(group);
    }
    std::vector<std::uint32_t> rectangle_of(count());
    for (std::uint32_t group = 0; group < count(); ++group) rectangle_of[group] = group;
    if (tree.keeps_h_tree) {
      HTree layout{rectangles.across(), rectangle_of};
      rectangle_of[0] = layout.place({0, 0, rectangles.down(), rectangles.across()}, 1);
    }
    for (std::uint32_t group = 0; group < count(); ++group) sit(group, {rectangle_of[group], 0});
    if (!root_moves_) start_at(search.root);
    for (std::uint32_t group = 0; group < count(); ++group) next_[group] = next_step(group);
    for (std::uint32_t group = 0; group < count(); ++group) change(group, true);
  }

  [[nodiscard]] std::int64_t energy() const {
    return kExcessTransferEnergy * loads_.over() + loads_.hops() / tree_.run_length;
  }
  [[nodiscard]] bool done() const { return loads_.over() == 0; }

  // Tries another winding, another place, or exchanged successors.
  bool move(Dice& dice) {
    const std::uint32_t kind = dice.roll(8), group = dice.roll(count());
    if (kind == 0) {
      if (children_[group].size() < 2) return false;
      last_ = {Kind::kSuccessors, group, 0, {}};
      exchange_successors(group);
      return true;
    }
    if (kind < 4) {
      const std::uint32_t winding = dice.roll(kWindings);
      if (winding == seats_[group].winding || !may_wind(group, winding)) return false;
      last_ = {Kind::kWinding, group, 0, seats_[group]};
      rewind(group, winding);
      return true;
    }
    const std::uint32_t other = dice.roll(count());
    if (group == other || (!root_moves_ && (group == 0 || other == 0))) return false;
    last_ = {Kind::kPlaces, group, other, {}};
    exchange_places(group, other);
    return true;
  }
  void undo() {
    switch (last_.kind) {
      case Kind::kSuccessors: exchange_successors(last_.group); break;
      case Kind::kWinding: rewind(last_.group, last_.before.winding); break;
      case Kind::kPlaces: exchange_places(last_.group, last_.other); break;
    }
  }

  [[nodiscard]] GroupPlacement result() const {
    GroupPlacement found{tree_, {{}, loads_.over(), 0, false}};
    for (std::uint32_t group = 0; group < count(); ++group) {
      const std::vector<std::uint32_t>& nodes = nodes_of(group);
      found.placement.node_of.insert(found.placement.node_of.end(), nodes.begin(), nodes.end());
      const std::int64_t last = std::int64_t{next_[group]} + tree_.run_length - 2;
      found.placement.latency = std::max(found.placement.latency, last);
    }
    return found;
  }

 private:
  enum class Kind { kSuccessors, kWinding, kPlaces };

  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(tree_.groups.size());
  }
  [[nodiscard]] const std::vector<std::uint32_t>& nodes_of(std::uint32_t group) const {
    return rectangles_.nodes(seats_[group].rectangle, seats_[group].winding);
  }
  void sit(std::uint32_t group, const Seat& seat) {
    seats_[group] = seat;
    group_at_[seat.rectangle] = group;
  }
  // The source's group takes the rectangle of `root`; its chain begins there.
  void start_at(std::uint32_t root) {
    for (std::uint32_t rectangle = 0; rectangle < rectangles_.count(); ++rectangle) {
      for (std::uint32_t winding = 0; winding < kWindings; ++winding) {
        if (rectangles_.nodes(rectangle, winding).front() != root) continue;
        root_ = root;
        const std::uint32_t other = group_at_[rectangle];
        const Seat mine = seats_[0];
        sit(other, mine);
        sit(0, {rectangle, winding});
        return;
      }
    }
  }
  [[nodiscard]] bool may_wind(std::uint32_t group, std::uint32_t winding) const {
    return group != 0 || root_moves_ ||
           rectangles_.nodes(seats_[0].rectangle, winding).front() == root_;
  }
  // The step in which the head first forwards a block.
  [[nodiscard]] std::uint32_t next_step(std::uint32_t group) const {
    if (group == 0) return 0;
    const GroupTree::TreeGroup& own = tree_.groups[group];
    return next_[own.parent] + tree_.run_length + (own.is_right ? 1 : 0);
  }

  // Adds or removes the blocks that arrive at the group and those that its chain carries.
  void change(std::uint32_t group, bool adds) {
    const std::vector<std::uint32_t>& nodes = nodes_of(group);
    const auto stream = [&](std::uint32_t from, std::uint32_t to, std::uint32_t step) {
      const std::uint32_t bin = stored_ ? 0 : step % period_;
      adds ? loads_.add(from, to, bin) : loads_.remove(from, to, bin);
    };
    for (std::uint32_t i = 0; i + 1 < tree_.run_length; ++i) {
      for (std::uint32_t j = 0; j < tree_.run_length; ++j) {
        stream(nodes[i], nodes[i + 1], next_[group] + i + j);
      }
    }
    if (group == 0) return;
    const GroupTree::TreeGroup& own = tree_.groups[group];
    const std::vector<std::uint32_t>& above = nodes_of(own.parent);
    for (std::uint32_t j = 0; j < tree_.run_length; ++j) {
      stream(own.is_right ? above[j] : above.back(), nodes.front(), next_[group] - 1 + j);
    }
  }
  // Calls f for the group and for the groups that it feeds.
  template <class F>
  void around(std::uint32_t group, F f) {
    change_around(group, kNobody, false);
    f();
    change_around(group, kNobody, true);
  }
  void change_around(std::uint32_t group, std::uint32_t but, bool adds) {
    if (group != but) change(group, adds);
    for (const std::uint32_t child : children_[group]) {
      if (child != but) change(child, adds);
    }
  }
  void rewind(std::uint32_t group, std::uint32_t winding) {
    around(group, [&] { seats_[group].winding = winding; });
  }
  // Changes both groups and their successors, each once.
  void change_both(std::uint32_t a, std::uint32_t b, bool adds) {
    change_around(a, b, adds);
    change_around(b, a, adds);
  }
  void exchange_places(std::uint32_t a, std::uint32_t b) {
    change_both(a, b, false);
    const std::uint32_t rectangle = seats_[a].rectangle;
    sit(a, {seats_[b].rectangle, seats_[a].winding});
    sit(b, {rectangle, seats_[b].winding});
    change_both(a, b, true);
  }
  void exchange_successors(std::uint32_t group) {
    below_.clear();
    for (const std::uint32_t child : children_[group]) below_.push_back(child);
    for (std::size_t i = 0; i < below_.size(); ++i) {
      const std::uint32_t child = below_[i];
      for (const std::uint32_t next : children_[child]) below_.push_back(next);
    }
    for (const std::uint32_t below : below_) change(below, false);
    for (const std::uint32_t child : children_[group]) {
      tree_.groups[child].is_right = !tree_.groups[child].is_right;
    }
    for (const std::uint32_t below : below_) {  // parents first
      next_[below] = next_step(below);
      change(below, true);
    }
  }

  static constexpr std::uint32_t kNobody = ~0u;

  const Rectangles& rectangles_;
  GroupTree tree_;
  std::uint32_t period_;
  bool stored_, root_moves_;
  std::uint32_t root_ = 0;
  Loads loads_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<Seat> seats_;
  std::vector<std::uint32_t> group_at_;  // by rectangle
  std::vector<std::uint32_t> next_;      // by group, next_step()
  std::vector<std::uint32_t> below_;
  struct {
    Kind kind = Kind::kWinding;
    std::uint32_t group = 0, other = 0;
    Seat before;
  } last_;
};

}  // namespace

GroupTree least_tree(std::uint32_t run_length, std::uint32_t groups) {
  struct Offer {
    std::uint32_t step, group;
    bool is_right;
    bool operator>(const Offer& other) const {
      return std::tie(step, group, is_right) > std::tie(other.step, other.group, other.is_right);
    }
  };
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  GroupTree tree{run_length, {}};
  for (std::uint32_t group = 0; group < groups; ++group) {
    std::uint32_t step = 0;
    if (group > 0) {
      const Offer offer = offers.top();
      offers.pop();
      step = offer.step;
      tree.groups.push_back({offer.group, offer.is_right});
    } else {
      tree.groups.push_back({});
    }
    offers.push({step + run_length, group, false});
    offers.push({step + run_length + 1, group, true});
  }
  return tree;
}

GroupTree complete_tree(std::uint32_t run_length, std::uint32_t groups) {
  ESPALIER_ASSERT(std::has_single_bit(groups));
  GroupTree tree{run_length, {}};
  for (std::uint32_t group = 0; group < groups; ++group) {
    tree.groups.push_back({group / 2, group > 1 && group % 2 == 1});
  }
  return tree;
}

GroupPlacement find_groups(const topology::Topology& mesh, const Routes& routes,
                           const GroupShape& shape, const GroupTree& tree, const Search& search) {
  ESPALIER_ASSERT(mesh.shape().rows % shape.rows == 0 && mesh.shape().columns % shape.columns == 0);
  const Rectangles rectangles(mesh.shape(), shape);
  ESPALIER_ASSERT(rectangles.count() == tree.groups.size());
  GroupArrangement model(rectangles, routes, tree, search);
  Dice dice(search.seed);
  // Low enough to keep the H-tree.
  const double hot = tree.keeps_h_tree ? kExcessTransferEnergy / 4.0 : kExcessTransferEnergy * 3.0;
  const Cooling cooling{hot, std::min(hot, double{kExcessTransferEnergy}) / 6.0, search.moves};
  const bool ends = tree.groups.size() < 2 || anneal(model, dice, cooling, search);
  GroupPlacement found = model.result();
  found.placement.is_cut_short = !ends;
  return found;
}

}  // namespace espalier::embed
