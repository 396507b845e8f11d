// Total exchange on fat trees as in [DD96], as an explicit schedule for at most 64 leaves:
// `leaf-overlapped`, with one lane per branch and all ports at once.
//
// Let level i have arity k_i, k = k_h, and K_i = k_1 ... k_i. The messages that cross a branch of
// the root are K_(h-1) (n - K_(h-1)) = n^2 (k-1)/k^2.
//
// Steps: n^2 (k-1)/k^2 per block, plus 2h-1. This is the minimum, because so many messages cross a
// branch of the root. Cost: steps * (alpha + beta*m/N), where m is the bytes that one rank sends to
// another.
//
// [DD96], section 3.3, exchanges level by level, one after the other. Here the highest level
// proceeds as in leaf_all_to_all.cc. Each message of a lower level begins as soon as all links of
// its path are free in consecutive steps, modulo the period of the blocks. The period is the least
// for which all messages fit; the search begins at the number of messages that cross a branch of
// the root.

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/lower/timed.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kMaxLeaves = 64;

// One rank's part for another rank: it leaves nodes[j] for nodes[j + 1] in step steps[j].
struct TimedRoute {
  std::vector<std::uint32_t> nodes;
  std::vector<std::int32_t> steps;
};

Result<void> check_tree(const topology::Topology& topology,
                        const CollectiveParameters& parameters) {
  if (auto fits = check_parameters(topology, parameters); !fits) return fits;
  const topology::Shape shape = topology.shape();
  bool right = shape.height > 0;
  for (const std::uint32_t lanes : shape.capacities) right = right && lanes == 1;
  if (right && parameters.ranks <= kMaxLeaves) return {};
  return fail("leaf-overlapped on " + topology.spec() +
              ": expected fattree:k=K,h=H,c=1 of at most " + std::to_string(kMaxLeaves) +
              " leaves");
}

// The steps in use on every link of a fat tree, modulo a period. A message moves in every step.
class Links {
 public:
  Links(std::uint32_t nodes, std::int32_t period)
      : period_(period),
        taken_(std::size_t{2} * nodes, std::vector<bool>(static_cast<std::size_t>(period))) {}

  [[nodiscard]] bool is_free(const std::vector<std::uint32_t>& nodes, std::int32_t first) const {
    for (std::size_t hop = 0; hop + 1 < nodes.size(); ++hop) {
      if (taken_[link(nodes, hop)][place(first, hop)]) return false;
    }
    return true;
  }
  void take(const std::vector<std::uint32_t>& nodes, std::int32_t first) {
    for (std::size_t hop = 0; hop + 1 < nodes.size(); ++hop) {
      taken_[link(nodes, hop)][place(first, hop)] = true;
    }
  }

 private:
  // Parents have larger numbers than their children. Each child has one link up and one down.
  static std::size_t link(const std::vector<std::uint32_t>& nodes, std::size_t hop) {
    const bool up = nodes[hop + 1] > nodes[hop];
    return up ? std::size_t{2} * nodes[hop] : std::size_t{2} * nodes[hop + 1] + 1;
  }
  [[nodiscard]] std::size_t place(std::int32_t first, std::size_t hop) const {
    return (static_cast<std::size_t>(first) + hop) % static_cast<std::size_t>(period_);
  }

  std::int32_t period_;
  std::vector<std::vector<bool>> taken_;  // by link
};

class Overlapped {
 public:
  Overlapped(const topology::Topology& topology, std::int32_t period, std::int32_t steps)
      : topology_(topology),
        shape_(topology.shape()),
        links_(topology.nodes(), period),
        steps_(steps) {}

  // False if a message does not fit into the steps.
  bool find(std::vector<TimedRoute>& routes) {
    for (std::uint32_t stage = shape_.height; stage > 0; --stage) {
      std::uint32_t branch = 1;
      for (std::uint32_t level = 1; level < stage; ++level) branch *= shape_.arities[level - 1];
      for (std::uint32_t q = 0; q < (shape_.arities[stage - 1] - 1) * branch * branch; ++q) {
        for (std::uint32_t first = 0; first < topology_.ranks(); first += branch) {
          if (!add(stage, branch, q, first, routes)) return false;
        }
      }
    }
    return true;
  }

 private:
  // Message q of the branch of leaves `first` .. first + branch - 1, as in leaf_all_to_all.cc.
  bool add(std::uint32_t stage, std::uint32_t branch, std::uint32_t q, std::uint32_t first,
           std::vector<TimedRoute>& routes) {
    const std::uint32_t k = shape_.arities[stage - 1], all = branch * k, turn = q / branch;
    const std::uint32_t base = first / all * all, mine = first % all / branch;
    const std::uint32_t origin = first + reversed(q % branch, stage);
    const std::uint32_t destination =
        base + (mine + 1 + turn / branch) % k * branch + reversed((q + turn) % branch, stage);
    TimedRoute route{.nodes = topology_.route(origin, destination), .steps = {}};
    const std::int32_t latest = steps_ - 2 * as_int(stage);
    std::int32_t step = stage == shape_.height ? as_int(q) : 0;
    while (step <= latest && !links_.is_free(route.nodes, step)) ++step;
    if (step > latest) return false;
    links_.take(route.nodes, step);
    for (std::uint32_t hop = 0; hop < 2 * stage; ++hop) route.steps.push_back(step + as_int(hop));
    routes.push_back(std::move(route));
    return true;
  }

  // The number whose digits, by the arities below `stage`, are those of `value` in reverse order.
  [[nodiscard]] std::uint32_t reversed(std::uint32_t value, std::uint32_t stage) const {
    std::uint32_t result = 0;
    for (std::uint32_t level = stage - 1; level > 0; --level) {
      const std::uint32_t k = shape_.arities[level - 1];
      result = result * k + value % k;
      value /= k;
    }
    return result;
  }

  const topology::Topology& topology_;
  topology::Shape shape_;
  Links links_;
  std::int32_t steps_;
};

Count line(std::uint32_t a, std::uint32_t b) {
  return {.a = as_int(a), .b = as_int(b), .c = 0, .d = 0, .e = 0};
}

// All parts; each rank's own part is copied.
lower::TimedSchedule schedule_of(const topology::Topology& topology,
                                 const std::vector<TimedRoute>& routes) {
  lower::TimedSchedule schedule(topology.nodes());
  schedule.outline = {.collective = Collective::kAllToAll,
                      .algorithm = "leaf-overlapped",
                      .nodes = topology.nodes(),
                      .port_model = PortModel::kMultiport};
  const auto place = [](Buffer buffer, std::uint32_t segment) {
    return lower::TimedOperand{buffer, as_int(segment), -1};
  };
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    schedule.add_operation(ActionKind::kCopy, rank, 0, 0, place(Buffer::kOutput, rank),
                           place(Buffer::kInput, rank));
  }
  for (const TimedRoute& route : routes) {
    schedule.add_message(0, route.nodes, route.steps, place(Buffer::kInput, route.nodes.back()),
                         place(Buffer::kOutput, route.nodes.front()));
  }
  return schedule;
}

Result<Programs> leaf_overlapped_all_to_all(Collective, const topology::Topology& topology,
                                            const CollectiveParameters& parameters) {
  if (auto fits = check_tree(topology, parameters); !fits) return fail(fits.error());
  const topology::Shape shape = topology.shape();
  const std::uint32_t n = topology.ranks(), k = shape.arities.back(), h = shape.height;
  const std::uint32_t crossing = n / k * (n - n / k);
  std::vector<TimedRoute> routes;
  std::int32_t period = as_int(crossing);
  for (;; ++period) {
    const std::int32_t least = as_int(crossing + 2 * h - 1);
    routes.clear();
    Overlapped overlapped(topology, period, std::max(least, period));
    if (overlapped.find(routes)) break;
  }
  lower::TimedSchedule schedule = schedule_of(topology, routes);
  schedule.period = period;
  schedule.bound = line(2 * h - 1, crossing);
  return lower::write_programs(parameters, schedule);
}

bool on_thin_tree(const topology::Topology& topology) {
  const topology::Shape shape = topology.shape();
  for (const std::uint32_t lanes : shape.capacities) {
    if (lanes != 1) return false;
  }
  return shape.height > 0;
}

}  // namespace

const SearchedAlgorithm kLeafOverlappedRows[] = {
    row("leaf-overlapped", Collective::kAllToAll, leaf_overlapped_all_to_all,
        "every port at once, levels overlapped: N about n^2 (k-1)/k^2, + 2h-1 steps, n <= 64 "
        "leaves",
        {.topologies = "fattree:k=K,h=H,c=1", .applies = on_thin_tree, .has_routers = true}),
};

}  // namespace espalier::searched
