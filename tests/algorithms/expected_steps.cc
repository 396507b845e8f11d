#include "tests/algorithms/expected_steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
std::int64_t log_of(std::int64_t ranks) {
  std::int64_t log = 0;
  while ((std::int64_t{1} << log) < ranks) ++log;
  return log;
}

namespace {

Steps exactly(std::int64_t steps) { return {steps, steps}; }

bool is_scatter_or_gather(const Algorithm& algorithm) {
  return algorithm.collective == Collective::kScatter ||
         algorithm.collective == Collective::kGather;
}

// One rank copies its data, in one step per block.
Steps alone(const Algorithm& algorithm, std::int64_t blocks) {
  switch (algorithm.collective.value()) {
    case Collective::kBroadcast:
    case Collective::kExscan:
    case Collective::kBarrier: return exactly(0);
    default:
      return exactly(std::string(algorithm.name).starts_with("two-tree") ? 2 * blocks : blocks);
  }
}

Steps binary(std::int64_t p, std::int64_t blocks) {
  if (p == 2) return exactly(blocks);
  std::int64_t depth = 0, reach = 1, before = 0;
  for (; reach < p; ++depth) {
    const std::int64_t next = 1 + reach + (depth == 0 ? 0 : before);
    before = reach;
    reach = next;
  }
  return exactly(depth - 1 + 2 * blocks - 1);
}

Steps fractional(const std::string& name, std::uint32_t p, std::int64_t blocks) {
  const bool couples = name == "fractional-simplex";
  if (couples && p == 2) return exactly(blocks);
  const FractionalTree tree(couples ? (p + 1) / 2 : p, fractional_run_length({.ranks = p}));
  const std::int64_t steps = count_value(tree.steps(), blocks);
  return couples ? Steps{2 * steps - 1, 2 * steps} : exactly(steps);
}

Steps chain_ends(std::int64_t p, std::int64_t root, std::int64_t blocks) {
  const std::int64_t before = root, after = p - 1 - root;
  if (before == 0 || after == 0) return exactly(p - 2 + blocks);
  return exactly(std::max(before, after) + 2 * blocks - 2 + (before == after ? 1 : 0));
}

Steps two_tree(const Algorithm& algorithm, std::int64_t p, std::int64_t blocks) {
  const std::int64_t h = log_of(p + 1), scan_h = log_of(p + 2);
  switch (algorithm.collective.value()) {
    case Collective::kAllreduce: return {4 * h + 4 * blocks - 10, 4 * h + 4 * blocks - 4};
    case Collective::kScan: return {4 * (scan_h + blocks) - 12, 4 * (scan_h + blocks) - 10};
    case Collective::kExscan: return {4 * (scan_h + blocks) - 12, 4 * (scan_h + blocks) - 9};
    default: return {2 * h + 2 * blocks - 5, 2 * h + 2 * blocks - 2};
  }
}

Steps two_tree_simplex(const Algorithm& algorithm, std::int64_t p, std::int64_t blocks) {
  if (algorithm.collective == Collective::kScan || algorithm.collective == Collective::kExscan) {
    if (p < 4) return exactly(2 * (p - 1) * blocks);
    const std::int64_t more = algorithm.collective == Collective::kExscan ? 1 : 0;
    const std::int64_t h = log_of(p / 2 + 2);
    return {8 * (h + blocks) - (p % 2 == 0 ? 23 : 19) + more,
            8 * (h + blocks) - (p % 2 == 0 ? 14 : 13) + more};
  }
  const std::int64_t times = algorithm.collective == Collective::kAllreduce ? 2 : 1;
  if (p == 2) return exactly(times * 2 * blocks);
  const std::int64_t h = log_of((p - 1) / 2 + 2);
  return {times * 2 * (2 * h + 2 * blocks - 5), times * 2 * (2 * h + 2 * blocks - 2)};
}

// Two mirrored trees over an even number of ranks. If p is odd, all sums go up to the last rank, as
// in a reduce: 2h + 2N - 3 or one more steps, instead of 2h + 2N - 5.
Steps mirrored_scan(const Algorithm& algorithm, std::int64_t p, std::int64_t blocks) {
  const std::int64_t h = log_of(p % 2 == 0 ? p + 2 : p + 1);
  const std::int64_t delay = algorithm.collective == Collective::kExscan ? 1 : 0;
  const std::int64_t least = 4 * h + 4 * blocks - (p % 2 == 0 ? 10 : 8);
  return {least, least + (p % 2 == 0 ? 0 : 1) + delay};
}

// T_lambda(p) in ticks, computed from its definition.
std::int64_t postal(std::int64_t p, std::int64_t send, std::int64_t latency) {
  std::vector<std::int64_t> reach;
  for (std::int64_t t = 0;; ++t) {
    const auto at = [&](std::int64_t back) { return reach[static_cast<std::size_t>(t - back)]; };
    reach.push_back(t < latency ? 1 : at(send) + at(latency));
    if (reach.back() >= p) return t;
  }
}

// The tree whose senders keep round(over / under * n) of n ranks, subtree by subtree.
class RatioTree {
 public:
  RatioTree(std::int64_t over, std::int64_t under, const CollectiveParameters& parameters)
      : over_(over),
        under_(under),
        send_(parameters.send_ticks),
        latency_(parameters.latency_ticks) {}

  std::int64_t ticks(std::int64_t n) {
    if (n == 1) return 0;
    const auto known = ticks_.find(n);
    if (known != ticks_.end()) return known->second;
    const std::int64_t rounded = (2 * over_ * n + under_) / (2 * under_);
    const std::int64_t kept = std::max<std::int64_t>(1, std::min(rounded, n - 1));
    return ticks_[n] = std::max(ticks(kept) + send_, ticks(n - kept) + latency_);
  }

 private:
  std::int64_t over_, under_, send_, latency_;
  std::map<std::int64_t, std::int64_t> ticks_;
};

// The ratio N(t - S) / N(t) for the first t with N(t) >= n.
std::pair<std::int64_t, std::int64_t> ratio_at(std::int64_t n, std::int64_t send,
                                               std::int64_t latency) {
  std::vector<std::int64_t> reach;
  do {
    const auto t = static_cast<std::int64_t>(reach.size());
    const auto at = [&](std::int64_t back) { return reach[static_cast<std::size_t>(t - back)]; };
    reach.push_back(t < latency ? 1 : at(send) + at(latency));
  } while (reach.back() < n);
  return {reach[reach.size() - 1 - static_cast<std::size_t>(send)], reach.back()};
}

std::int64_t alpha_tree(std::int64_t p, const CollectiveParameters& parameters) {
  if (parameters.ratio_denominator != 0) {
    return RatioTree(parameters.ratio_numerator, parameters.ratio_denominator, parameters).ticks(p);
  }
  std::int64_t least = INT64_MAX;
  for (const std::int64_t n : {p, std::int64_t{1} << 29}) {
    const auto [over, under] = ratio_at(n, parameters.send_ticks, parameters.latency_ticks);
    least = std::min(least, RatioTree(over, under, parameters).ticks(p));
  }
  return least;
}

Steps combine(std::int64_t p, std::int64_t send, std::int64_t latency) {
  const std::int64_t low = latency / send, high = (latency + send - 1) / send;
  const std::int64_t receive = send * (postal(p, 1, high) - high) + latency;
  return exactly(std::min(receive, latency * postal(p, 1, low) / low));
}

// The k-nomial tree, division by division: the sizes of all intervals, and the last arrival.
std::int64_t knomial(std::int64_t p, const CollectiveParameters& parameters) {
  const std::int64_t k = parameters.radix == 0 ? 2 : parameters.radix;
  const std::int64_t send = parameters.send_ticks, latency = parameters.latency_ticks;
  std::set<std::int64_t> sizes{p};
  std::int64_t begin = 0, last = 0;
  // If k > p, divisions are those of k = p.
  for (; *sizes.rbegin() > 1; begin += (std::min(k, p) - 2) * send + latency) {
    std::set<std::int64_t> next;
    for (const std::int64_t size : sizes) {
      const std::int64_t parts = std::min(size, k);
      if (parts > 1) last = std::max(last, begin + (parts - 2) * send + latency);
      for (std::int64_t i = 0; i < parts; ++i) next.insert((size + i) / parts);
    }
    sizes = next;
  }
  return last;
}

// The largest k with 2^k <= ranks.
std::int64_t floor_log_of(std::int64_t ranks) { return log_of(ranks + 1) - 1; }

// The shortest time in which the ranks 1, 2, 3, 6, 12, ... before a rank give it all inputs before
// its own: by what it then has, 1, 3, 6, 12, ...
std::int64_t doubling_123(std::int64_t p) {
  std::int64_t steps = 1, has = 1;
  for (; has < p - 1; ++steps) has = steps == 1 ? 3 : 2 * has;
  return steps;
}

// The steps of both trees, measured edge by edge over all ranks lower .. upper-1.
struct DualRoot {
  std::int64_t up = 0, down = 0;

  void visit(std::int64_t lower, std::int64_t upper, std::int64_t above, std::int64_t below) {
    up = std::max(up, above);
    down = std::max(down, below);
    const std::int64_t root = (lower + upper - 1) / 2;
    if (lower < root) visit(lower, root, above + 2, below + 1);
    if (root + 1 < upper) visit(root + 1, upper, above + 1, below + 2);
  }
};

// One tree over all ranks. Sums go up except from the right spine, and results down except to the
// left spine. A rank of the left spine sends to the right one step after a sum arrived from the
// left. Steps are counted from that one at the root.
struct OneRoot {
  std::int64_t first = 0, last = 0;  // steps of transfers

  void visit(std::int64_t lower, std::int64_t upper, bool right_spine) {
    spine(lower, upper, right_spine, -1);
  }

 private:
  void use(std::int64_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }

  // `left`: the step in which the sum arrives from the left child, if there is one.
  void spine(std::int64_t lower, std::int64_t upper, bool right_spine, std::int64_t left) {
    const std::int64_t root = (lower + upper - 1) / 2;
    if (lower < root) {
      use(left);
      spine(lower, root, false, left - 2);
    }
    if (root + 1 < upper) inner(root + 1, upper, right_spine, left + 1, left + 1);
  }

  // Off the left spine: the steps of the transfers up from the subtree's root, and down to it.
  void inner(std::int64_t lower, std::int64_t upper, bool right_spine, std::int64_t up,
             std::int64_t down) {
    if (!right_spine) use(up);
    use(down);
    const std::int64_t root = (lower + upper - 1) / 2;
    if (lower < root) inner(lower, root, false, up - 2, down + 1);
    if (root + 1 < upper) inner(root + 1, upper, right_spine, up - 1, down + 2);
  }
};

bool is_butterfly(const std::string& name) {
  return name == "recursive-doubling" || name == "rabenseifner" || name == "recursive-halving";
}

bool is_broadcast_or_reduce(const Algorithm& algorithm) {
  return algorithm.collective == Collective::kBroadcast ||
         algorithm.collective == Collective::kReduce;
}

// Some ranks copy their inputs before they can send segments p/2 .. p-1 after their own as one
// piece; a single segment is one.
Steps circulant(const Algorithm& algorithm, std::int64_t p, std::int64_t blocks) {
  if (is_broadcast_or_reduce(algorithm)) return exactly(log_of(p) + blocks - 1);
  const std::int64_t copies = p / 2 > 1 ? 1 : 0;
  switch (algorithm.collective.value()) {
    case Collective::kAllgather: return exactly(log_of(p));
    case Collective::kReduceScatter: return exactly(log_of(p) + copies);
    default: return exactly(2 * log_of(p) + copies);
  }
}

// Butterflies of 2^k groups of one or two ranks: two ranks of a group meet before and after.
Steps butterfly(const Algorithm& algorithm, std::int64_t p) {
  const std::int64_t levels = floor_log_of(p), folds = p == std::int64_t{1} << levels ? 0 : 2;
  switch (algorithm.collective.value()) {
    case Collective::kScan:
    case Collective::kExscan: return exactly(log_of(p));
    case Collective::kReduceScatter: return exactly(levels + (levels > 1 ? 1 : 0) + folds);
    default: break;
  }
  const bool there_and_back = std::string(algorithm.name) == "rabenseifner";
  // The root of a reduce sums for its group, so nothing is sent inside a group at the end.
  const bool unfolds = algorithm.collective != Collective::kReduce;
  return exactly((there_and_back ? 2 : 1) * levels + (unfolds ? folds : folds / 2));
}

}  // namespace

Steps expected_steps(const Algorithm& algorithm, const CollectiveParameters& parameters,
                     std::int64_t blocks) {
  const std::string name = algorithm.name;
  const std::int64_t p = parameters.ranks;
  if (p == 1) return alone(algorithm, blocks);
  if (name == "binomial" || name == "dissemination") return exactly(log_of(p));
  if (name == "knomial") return exactly(knomial(p, parameters));
  if (name == "scatter-allgather") return exactly(log_of(p) + p - 1);
  if (in_rounds(algorithm)) {
    const bool twice = algorithm.collective == Collective::kAllreduce;
    return exactly((twice ? 2 : 1) * (p - 1) * blocks);
  }
  if (name == "chain") {
    const bool twice = algorithm.collective == Collective::kAllreduce;
    return exactly((twice ? 2 : 1) * (p - 2 + blocks));
  }
  if (name == "circulant") return circulant(algorithm, p, blocks);
  if (name == "chain-ends") return chain_ends(p, parameters.root, blocks);
  if (name == "binary") return binary(p, blocks);
  if (name.starts_with("fractional")) return fractional(name, parameters.ranks, blocks);
  if (name == "alpha-tree") return exactly(alpha_tree(p, parameters));
  if (name == "lambda-tree" || name == "alpha-table")
    return exactly(postal(p, parameters.send_ticks, parameters.latency_ticks));
  if (name == "combine") return combine(p, parameters.send_ticks, parameters.latency_ticks);
  if (is_butterfly(name)) return butterfly(algorithm, p);
  if (name == "bruck") {
    return exactly(log_of(p) + (algorithm.collective == Collective::kAllToAll ? 1 : 0));
  }
  if (name == "doubling-123") return exactly(doubling_123(p));
  if (name == "dual-root") {
    DualRoot trees;
    trees.visit(0, p / 2, 0, 0);
    trees.visit(p / 2, p, 0, 0);
    return exactly(trees.up + 1 + trees.down + 3 * (blocks - 1));
  }
  if (name == "doubly-pipelined") {
    OneRoot tree;
    tree.visit(0, p, true);
    return exactly(tree.last - tree.first + 1 + 3 * (blocks - 1));
  }
  if (name == "two-tree-simplex") return two_tree_simplex(algorithm, p, blocks);
  if (name == "two-tree-mirror" && !is_broadcast_or_reduce(algorithm)) {
    return mirrored_scan(algorithm, p, blocks);
  }
  return two_tree(algorithm, p, blocks);
}

bool supports(const Algorithm& algorithm, std::uint32_t ranks) {
  const std::string name = algorithm.name;
  if (name == "two-tree-mirror") return ranks % 2 == 1 || !is_broadcast_or_reduce(algorithm);
  if (name == "bruck") {
    return ranks <= (algorithm.collective == Collective::kAllToAll ? 26 : 1u << 15);
  }
  if (name == "rabenseifner" || name == "recursive-halving") return ranks < 4096;
  if (name == "recursive-doubling" && algorithm.collective == Collective::kAllgather) {
    return ranks <= 65536;
  }
  if (name == "circulant") {
    switch (algorithm.collective.value()) {
      case Collective::kBroadcast: return ranks <= 1u << 20;
      case Collective::kReduce: return ranks <= 1u << 12;
      case Collective::kReduceScatter: return ranks <= 1u << 12;
      case Collective::kAllreduce: return ranks <= 1u << 11;
      default: return ranks <= 1u << 15;
    }
  }
  if (name == "linear") return ranks <= 129;
  const bool intervals = name == "binomial" || name == "knomial";
  if (name == "scatter-allgather" || (intervals && is_scatter_or_gather(algorithm))) {
    return ranks <= 2 * 65535;
  }
  const bool twice = algorithm.collective == Collective::kAllreduce;
  return !in_rounds(algorithm) || ranks <= (1u << (twice ? 19 : 20)) + 1;
}

std::int64_t allowed_blocks(const Program& program, std::int64_t blocks) {
  while (program.residue_mod != 0 && blocks % program.residue_mod != program.residue) ++blocks;
  return blocks;
}

bool one_block(const Algorithm& algorithm) {
  const std::string name = algorithm.name;
  return name == "binomial" || name == "knomial" || name == "scatter-allgather" ||
         name == "dissemination" || name == "lambda-tree" || name == "alpha-tree" ||
         name == "alpha-table" || name == "combine" || name == "doubling-123" || name == "bruck" ||
         is_butterfly(name) || (name == "circulant" && !is_broadcast_or_reduce(algorithm));
}

bool in_rounds(const Algorithm& algorithm) {
  const std::string name = algorithm.name;
  return name == "ring" || name == "pairwise" || name == "linear" ||
         (name == "chain" && is_scatter_or_gather(algorithm));
}

bool needs_commutative(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  const std::string name = algorithm.name;
  const std::uint32_t p = parameters.ranks, root = parameters.root;
  if (algorithm.collective == Collective::kAllgather) return false;
  if (name == "combine" || name == "ring") return p > 1;
  if (name == "circulant") return algorithm.collective != Collective::kBroadcast && p > 1;
  if (algorithm.collective != Collective::kReduce) return false;
  if (name == "chain-ends" || name == "rabenseifner" || name.ends_with("nomial")) return false;
  return root != 0 && root + 1 != p;
}

}  // namespace espalier
