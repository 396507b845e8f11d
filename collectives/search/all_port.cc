// Allgather, reduce-scatter and allreduce on tori, rings and hypercubes with all links of a node in
// use at once: `all-port`, as an explicit schedule for at most 256 ranks.
//
// Let q be the links out of a node, p the ranks, and r + v the rank whose digit in each dimension
// is the sum of those of r and v, modulo the dimension. The allgather has one tree for rank 0, and
// the tree of rank r is that tree moved by r: the tree's edge from u to v becomes one from r + u to
// r + v. If the edges of rank 0's tree over links of one direction have different steps, then no
// link has two messages in a step, because the edges of one direction and step, moved by every r,
// are one edge at every node. In each step the tree of rank 0 gets at most q new ranks, one per
// direction. They are found by a maximum matching of directions with ranks that have no block yet,
// the nearest ones first.
//
// The reduce-scatter is the allgather reversed in time. The allreduce cuts the message into one
// segment per rank: a reduce-scatter of the segments, then an allgather.
//
// Steps: N * T with T = max(ceil((p-1)/q), the diameter) for all hypercubes, rings and tori that
// were tried, except torus:2x2x3 with T = 4 instead of 3; the allreduce 2 * N * T. Each rank must
// receive p-1 blocks over q links, so ceil((p-1)N/q) steps are the least. Cost: steps * (alpha +
// beta*m/N), where m is the bytes of one rank's part; of the message / p for an allreduce. Source:
// [Bertsekas91], which has the multinode broadcast on hypercubes in ceil((2^d-1)/d) steps. Tori
// have the same symmetry.
//
// An allreduce needs an input apart from its output: sums may arrive where a send still reads.
// Error: a program's tables are too small. They have room for a reduce-scatter on torus:6x6 and an
// allreduce on torus:4x8, not for a reduce-scatter on torus:8x8.

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/lower/timed.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kMaxAllPortRanks = 256;

// The ranks of a torus or hypercube, and how its symmetry moves them.
class MovedRanks {
 public:
  explicit MovedRanks(const topology::Shape& shape)
      : sizes_(shape.hypercube > 0 ? std::vector(shape.hypercube, 2u) : shape.grid) {}

  [[nodiscard]] std::uint32_t moved(std::uint32_t rank, std::uint32_t by) const {
    std::uint32_t stride = 1, sum = 0;
    for (std::size_t d = sizes_.size(); d-- > 0; stride *= sizes_[d]) {
      sum += (rank / stride + by / stride) % sizes_[d] * stride;
    }
    return sum;
  }

  // The neighbours of rank 0, each the direction of one link out of every node.
  [[nodiscard]] std::vector<std::uint32_t> directions() const {
    std::vector<std::uint32_t> all;
    std::uint32_t stride = 1;
    for (std::size_t d = sizes_.size(); d-- > 0; stride *= sizes_[d]) {
      if (sizes_[d] > 1) all.push_back(stride);
      if (sizes_[d] > 2) all.push_back((sizes_[d] - 1) * stride);
    }
    return all;
  }

  // The links from rank 0 to `rank`.
  [[nodiscard]] std::uint32_t distance(std::uint32_t rank) const {
    std::uint32_t stride = 1, sum = 0;
    for (std::size_t d = sizes_.size(); d-- > 0; stride *= sizes_[d]) {
      const std::uint32_t digit = rank / stride % sizes_[d];
      sum += std::min(digit, sizes_[d] - digit);
    }
    return sum;
  }

 private:
  std::vector<std::uint32_t> sizes_;
};

// An edge of rank 0's tree.
struct TreeEdge {
  std::uint32_t from, to;
  std::int32_t step;
};

// The tree of rank 0, grown by one edge per direction and step.
class GrownTree {
 public:
  GrownTree(const MovedRanks& ranks, std::uint32_t p) : ranks_(ranks), has_block_(p, false) {
    nearest_.resize(p);
    for (std::uint32_t rank = 0; rank < p; ++rank) nearest_[rank] = rank;
    std::stable_sort(nearest_.begin(), nearest_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return ranks.distance(a) < ranks.distance(b);
    });
    has_block_[0] = true;
    while (edges_.size() + 1 < p) grow();
  }

  [[nodiscard]] const std::vector<TreeEdge>& edges() const { return edges_; }  // by step
  [[nodiscard]] std::int32_t steps() const { return step_; }

 private:
  void grow() {
    const std::vector<std::uint32_t> directions = ranks_.directions();
    const auto p = static_cast<std::uint32_t>(has_block_.size());
    sender_.assign(p, p);
    for (const std::uint32_t direction : directions) {
      seen_.assign(p, false);
      (void)match(direction);
    }
    for (std::uint32_t to = 0; to < p; ++to) {
      if (sender_[to] == p) continue;
      edges_.push_back({sender_[to], to, step_});
      has_block_[to] = true;
    }
    ++step_;
  }

  // Finds a new rank for this direction; the directions of ranks that have one may change.
  bool match(std::uint32_t direction) {
    const auto p = static_cast<std::uint32_t>(has_block_.size());
    for (const std::uint32_t to : nearest_) {
      if (has_block_[to] || seen_[to]) continue;
      const std::uint32_t from = before(to, direction);
      if (!has_block_[from]) continue;
      seen_[to] = true;
      if (sender_[to] != p && !match(direction_between(sender_[to], to))) continue;
      sender_[to] = from;
      return true;
    }
    return false;
  }

  // The rank from which a link in this direction leads to `to`, and the reverse.
  [[nodiscard]] std::uint32_t before(std::uint32_t to, std::uint32_t direction) const {
    for (std::uint32_t from = 0;; ++from) {
      if (ranks_.moved(from, direction) == to) return from;
    }
  }
  [[nodiscard]] std::uint32_t direction_between(std::uint32_t from, std::uint32_t to) const {
    for (std::uint32_t direction = 1;; ++direction) {
      if (ranks_.moved(from, direction) == to) return direction;
    }
  }

  const MovedRanks& ranks_;
  std::vector<bool> has_block_, seen_;
  std::vector<std::uint32_t> nearest_;  // all ranks, those nearest to rank 0 first
  std::vector<std::uint32_t> sender_;   // of each rank that is new in this step; p: not new
  std::vector<TreeEdge> edges_;
  std::int32_t step_ = 0;
};

class AllPort {
 public:
  AllPort(const MovedRanks& ranks, std::uint32_t p, lower::TimedSchedule& schedule)
      : ranks_(ranks), p_(p), tree_(ranks, p), schedule_(schedule) {}

  [[nodiscard]] std::int32_t steps() const { return tree_.steps(); }

  // `own`: where each rank has its own part.
  void allgather(const std::vector<lower::TimedOperand>& own, std::int32_t begin) {
    for (std::uint32_t owner = 0; owner < p_; ++owner) {
      std::vector<lower::TimedOperand> blocks(p_);
      blocks[0] = own[owner];
      for (const TreeEdge& edge : tree_.edges()) {
        const std::uint32_t hop[] = {ranks_.moved(edge.from, owner), ranks_.moved(edge.to, owner)};
        const std::int32_t step = begin + edge.step;
        blocks[edge.to] = schedule_.add_message(0, hop, {&step, 1}, blocks[edge.from],
                                                operand(Buffer::kOutput, owner));
      }
    }
  }

  // Returns where each rank has the sum of its part, in OUTPUT.
  std::vector<lower::TimedOperand> reduce_scatter() {
    std::vector<lower::TimedOperand> totals;
    for (std::uint32_t owner = 0; owner < p_; ++owner) {
      std::vector<lower::TimedOperand> sums(p_, operand(Buffer::kInput, owner));
      const std::vector<TreeEdge>& edges = tree_.edges();
      for (std::size_t i = edges.size(); i-- > 0;) {
        const TreeEdge& edge = edges[i];
        const std::uint32_t to = ranks_.moved(edge.from, owner);
        const std::uint32_t hop[] = {ranks_.moved(edge.to, owner), to};
        const std::int32_t step = steps() - 1 - edge.step;
        const lower::TimedOperand news = schedule_.add_message(0, hop, {&step, 1}, sums[edge.to],
                                                               operand(Buffer::kScratch, owner));
        // The first edge is the last one of rank 0.
        const Buffer into = i == 0 ? Buffer::kOutput : Buffer::kScratch;
        sums[edge.from] = schedule_.add_operation(ActionKind::kCombine, to, step, 0,
                                                  operand(into, owner), sums[edge.from], news);
      }
      totals.push_back(sums[0]);
    }
    return totals;
  }

  // Each rank's part, in INPUT, and copied to OUTPUT.
  std::vector<lower::TimedOperand> copy_own_parts() {
    std::vector<lower::TimedOperand> own;
    for (std::uint32_t rank = 0; rank < p_; ++rank) {
      own.push_back(operand(Buffer::kInput, rank));
      schedule_.add_operation(ActionKind::kCopy, rank, 0, 0, operand(Buffer::kOutput, rank),
                              own.back());
    }
    return own;
  }

 private:
  static lower::TimedOperand operand(Buffer buffer, std::uint32_t segment) {
    return {buffer, as_int(segment), -1};
  }

  const MovedRanks& ranks_;
  std::uint32_t p_;
  GrownTree tree_;
  lower::TimedSchedule& schedule_;
};

bool on_torus(const topology::Topology& topology) {
  const topology::Shape shape = topology.shape();
  return shape.wraps || shape.hypercube > 0;
}

Result<Programs> search_all_port(Collective collective, const topology::Topology& topology,
                                 const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fail(fits.error());
  const std::uint32_t p = topology.ranks();
  const topology::Shape shape = topology.shape();
  if (!on_torus(topology) || p > kMaxAllPortRanks) {
    return fail("all-port on " + topology.title() +
                ": expected a torus, a ring or a hypercube of at most " +
                std::to_string(kMaxAllPortRanks) + " ranks");
  }
  const MovedRanks ranks(shape);
  lower::TimedSchedule schedule(p);
  const bool reduces = collective != Collective::kAllgather;
  schedule.outline = {.collective = collective,
                      .algorithm = "all-port",
                      .segments = p,
                      .needs_commutative = reduces && p > 1,
                      .port_model = PortModel::kMultiport};
  AllPort all_port(ranks, p, schedule);
  const bool halves = collective == Collective::kAllreduce;
  if (p == 1 || !reduces) {
    all_port.allgather(all_port.copy_own_parts(), 0);
  } else {
    const std::vector<lower::TimedOperand> totals = all_port.reduce_scatter();
    if (halves) all_port.allgather(totals, all_port.steps());
  }
  schedule.period = std::max(1, (halves ? 2 : 1) * all_port.steps());
  const auto links = static_cast<std::int32_t>(std::max<std::size_t>(1, ranks.directions().size()));
  schedule.bound = {.a = 0, .b = (as_int(p) - 1) / links, .c = 0, .d = 0, .e = 0};
  return lower::write_programs_for_window(parameters, schedule);
}

}  // namespace

const SearchedAlgorithm kAllPortRows[] = {
    row("all-port", Collective::kAllgather, search_all_port,
        "every link of a node at once, moved trees: N*ceil((p-1)/links) steps, p <= 256",
        {.topologies = "tori, rings and hypercubes", .applies = on_torus}),
    row("all-port", Collective::kReduceScatter, search_all_port,
        "every link of a node at once, moved trees: N*ceil((p-1)/links) steps, p <= 256",
        {.needs_commutative = true,
         .topologies = "tori, rings and hypercubes",
         .applies = on_torus}),
    row("all-port", Collective::kAllreduce, search_all_port,
        "reduce-scatter, then allgather over every link at once: 2N*ceil((p-1)/links) steps, p <= "
        "256",
        {.needs_commutative = true,
         .topologies = "tori, rings and hypercubes",
         .applies = on_torus}),
};

}  // namespace espalier::searched
