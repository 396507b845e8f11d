// Definitions. A mesh of L lines (columns or rows) has `width` ranks on each line. For a placement,
// S_k is the set of the virtual ranks on lines k .. L-1.
// Claim: if no link occurs twice in a slot, then in each slot at most `width` transfers enter S_k
// from outside, and at most `width` leave it, for every k.
// Proof: a transfer that enters S_k crosses one of the `width` links from line k-1 to line k, and
// in a slot each of them carries one transfer. Likewise for those that leave.
// S_k is S_(k+1) and `width` more ranks. The search below therefore begins with the empty set, and
// keeps all sets that such a step reaches and that satisfy the claim. If none is left at some k, no
// placement exists.

#include <algorithm>
#include <set>
#include <vector>

#include "collectives/embed/placement.h"

namespace espalier::embed {
namespace {

constexpr std::uint32_t kMaxWidth = 2, kMaxRanks = 32;

using RankSet = std::uint32_t;  // a bit for each virtual rank

class Lines {
 public:
  Lines(const Traffic& traffic, std::uint32_t width)
      : traffic_(traffic), bins_(slots_of(traffic)), width_(width) {}

  // Whether sets S_k exist for all k. `root_line`: the line of virtual rank 0.
  [[nodiscard]] bool exist(std::uint32_t lines, std::optional<std::uint32_t> root_line) const {
    std::set<RankSet> sets = {0};
    for (std::uint32_t line = lines; line-- > 1 && !sets.empty();) {
      std::set<RankSet> more;
      for (const RankSet set : sets) {
        for (const RankSet next : with_a_line(set)) {
          if (root_line && (next & 1) != (line <= *root_line ? 1u : 0u)) continue;
          if (is_possible(next)) more.insert(next);
        }
      }
      sets = std::move(more);
    }
    return !sets.empty();
  }

 private:
  [[nodiscard]] std::vector<RankSet> with_a_line(RankSet set) const {
    std::vector<RankSet> all;
    for (std::uint32_t a = 0; a < traffic_.ranks; ++a) {
      const RankSet one = set | RankSet{1} << a;
      if (one == set) continue;
      if (width_ == 1) all.push_back(one);
      for (std::uint32_t b = a + 1; width_ == 2 && b < traffic_.ranks; ++b) {
        const RankSet two = one | RankSet{1} << b;
        if (two != one) all.push_back(two);
      }
    }
    return all;
  }
  [[nodiscard]] bool is_possible(RankSet set) const {
    std::vector<std::uint32_t> enter(count_slots(traffic_), 0), leave(enter);
    for (std::size_t index = 0; index < bins_.size(); ++index) {
      const bool from = (set >> traffic_.transfers[index].from & 1) != 0,
                 to = (set >> traffic_.transfers[index].to & 1) != 0;
      if (to && !from && ++enter[bins_[index]] > width_) return false;
      if (from && !to && ++leave[bins_[index]] > width_) return false;
    }
    return true;
  }

  const Traffic& traffic_;
  std::vector<std::uint32_t> bins_;  // by transfer
  std::uint32_t width_;
};

}  // namespace

bool cuts_leave_room(const topology::Shape& mesh, const Traffic& traffic,
                     std::optional<std::uint32_t> root) {
  const std::uint32_t width = std::min(mesh.rows, mesh.columns);
  if (width == 0 || width > kMaxWidth || traffic.ranks > kMaxRanks) return true;
  const bool by_columns = mesh.rows == width;
  std::optional<std::uint32_t> line;
  if (root) line = by_columns ? *root % mesh.columns : *root / mesh.columns;
  return Lines(traffic, width).exist(std::max(mesh.rows, mesh.columns), line);
}

}  // namespace espalier::embed
