// Lower bounds against exhaustive search: on tiny topologies all schedules are enumerated, and none
// takes fewer steps than a bound. Every kind of bound is reached by some schedule here, so a bound
// that is too high by one fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/verify/bounds/all_bounds.h"

namespace espalier::verify {
namespace {

// Data that a message can carry. One bit each: a block, or the combination of some ranks' blocks.
using Held = std::uint64_t;
using State = std::vector<Held>;  // by node

struct Puzzle {
  std::string spec;
  Collective collective = Collective::kBroadcast;
  PortModel model = PortModel::kMultiport;
  bool neighbours = true;  // otherwise ranks send along routes
  bool direct = false;     // no rank passes data on
  std::int64_t blocks = 1;
  std::uint32_t root = 0;
  bool links = true;  // whether links keep their capacity
};

class ScheduleSearch {
 public:
  explicit ScheduleSearch(const Puzzle& puzzle)
      : puzzle_(puzzle), topology_(or_throw(topology::parse(puzzle.spec))) {
    const std::uint32_t ranks = topology_->ranks();
    nodes_ = puzzle.neighbours ? topology_->nodes() : ranks;
    for (std::uint32_t from = 0; from < nodes_; ++from) {
      for (std::uint32_t to = 0; to < nodes_; ++to) {
        const std::uint32_t lanes = topology_->capacity(from, to);
        if (from == to || (puzzle.neighbours && lanes == 0)) continue;
        auto route = topology_->route(from, to);
        if (!puzzle.links) route.clear();
        ways_.insert(ways_.end(), std::max(1u, lanes), {from, to, route});
      }
    }
    begin_.assign(nodes_, 0);
    goal_.assign(nodes_, 0);
    set_data(ranks);
    own_ = begin_;
  }

  // Returns the fewest steps in which every node reaches its goal.
  [[nodiscard]] std::int64_t fewest_steps() {
    std::set<State> layer = {begin_};
    for (std::int64_t steps = 0;; ++steps) {
      for (const State& state : layer) {
        if (reaches_goal(state)) return steps;
      }
      std::set<State> next;
      for (const State& state : layer) {
        next_ = &next;
        from_ = &state;
        sends_.assign(nodes_, 0);
        receives_.assign(nodes_, 0);
        loads_.clear();
        State after = state;
        extend(0, after);
      }
      layer = without_less(next);
    }
  }

  [[nodiscard]] const topology::Topology& topology() const { return *topology_; }

 private:
  struct Way {
    std::uint32_t from = 0, to = 0;
    std::vector<std::uint32_t> route;
  };

  // Combining: bit (block, set of ranks - 1). Otherwise bit (block, origin, target).
  void set_data(std::uint32_t ranks) {
    const std::uint32_t root = puzzle_.root;
    const std::uint32_t sets = (1u << ranks) - 1;
    for (std::int64_t block = 0; block < puzzle_.blocks; ++block) {
      const auto combined = [&](std::uint32_t set) {
        return Held{1} << (static_cast<std::uint32_t>(block) * sets + set - 1);
      };
      const auto part = [&](std::uint32_t number) {
        return Held{1} << (static_cast<std::uint32_t>(block) * ranks * ranks + number);
      };
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::uint32_t other = 0; other < ranks; ++other) {
          const bool by_root = rank == root;
          switch (puzzle_.collective.value()) {
            case Collective::kBroadcast: give(root, part(0), rank); break;
            case Collective::kScatter: give(root, part(rank), rank); break;
            case Collective::kGather: give(rank, part(rank), root); break;
            case Collective::kAllgather: give(rank, part(rank), other); break;
            case Collective::kAllToAll: give(rank, part(rank * ranks + other), other); break;
            default:
              combines_ = true;
              begin_[rank] |= combined(1u << rank);
              if (puzzle_.collective == Collective::kScan) {
                goal_[rank] |= combined((2u << rank) - 1);
              } else if (by_root || puzzle_.collective == Collective::kAllreduce) {
                goal_[rank] |= combined(sets);
              }
          }
        }
      }
    }
  }
  void give(std::uint32_t origin, Held data, std::uint32_t target) {
    begin_[origin] |= data;
    goal_[target] |= data;
  }

  [[nodiscard]] bool reaches_goal(const State& state) const {
    for (std::uint32_t node = 0; node < nodes_; ++node) {
      if ((goal_[node] & ~state[node]) != 0) return false;
    }
    return true;
  }

  // Adds every combination of disjoint sets that the node holds.
  [[nodiscard]] Held closed(Held held) const {
    if (!combines_) return held;
    const std::uint32_t sets = (1u << topology_->ranks()) - 1;
    for (std::uint32_t base = 0; base < puzzle_.blocks * sets; base += sets) {
      for (bool more = true; more;) {
        more = false;
        for (std::uint32_t one = 1; one <= sets; ++one) {
          for (std::uint32_t other = 1; other <= sets; ++other) {
            const Held sum = Held{1} << (base + (one | other) - 1);
            const bool both = (held >> (base + one - 1) & held >> (base + other - 1) & 1) != 0;
            if ((one & other) != 0 || !both || (held & sum) != 0) continue;
            held |= sum;
            more = true;
          }
        }
      }
    }
    return held;
  }

  [[nodiscard]] bool has_room(const Way& way) {
    const bool one_send = puzzle_.model != PortModel::kMultiport;
    const bool one_receive = one_send && puzzle_.model != PortModel::kSingleSend;
    if (one_send && sends_[way.from] > 0) return false;
    if (one_receive && receives_[way.to] > 0) return false;
    if (puzzle_.model == PortModel::kSimplex && (receives_[way.from] > 0 || sends_[way.to] > 0)) {
      return false;
    }
    for (std::size_t hop = 1; hop < way.route.size(); ++hop) {
      const std::uint32_t from = way.route[hop - 1], to = way.route[hop];
      if (loads_[{from, to}] >= topology_->capacity(from, to)) return false;
    }
    return true;
  }
  void use(const Way& way, int by) {
    sends_[way.from] += by;
    receives_[way.to] += by;
    for (std::size_t hop = 1; hop < way.route.size(); ++hop) {
      loads_[{way.route[hop - 1], way.route[hop]}] += static_cast<std::uint32_t>(by);
    }
  }

  // Decides what the ways from number `k` onward carry in this step. Holding more is never worse,
  // so a link that shares nothing with others carries something new if it can.
  void extend(std::size_t k, State& after) {
    if (k == ways_.size()) {
      State done = after;
      for (Held& held : done) held = closed(held);
      next_->insert(std::move(done));
      return;
    }
    const Way& way = ways_[k];
    const State& before = puzzle_.direct ? own_ : *from_;
    bool carries = false;
    if (has_room(way)) {
      const Held useful = before[way.from] & ~after[way.to];
      use(way, 1);
      for (Held left = useful; left != 0; left &= left - 1) {
        const Held data = left & (~left + 1);
        if (puzzle_.direct && (goal_[way.to] & data) == 0) continue;
        carries = true;
        after[way.to] |= data;
        extend(k + 1, after);
        after[way.to] &= ~data;
      }
      use(way, -1);
    }
    const bool alone = puzzle_.neighbours && puzzle_.model == PortModel::kMultiport;
    if (!carries || !alone) extend(k + 1, after);
  }

  // Returns the states that are not contained in another.
  static std::set<State> without_less(const std::set<State>& states) {
    std::vector<const State*> kept;
    for (auto state = states.rbegin(); state != states.rend(); ++state) {
      const bool less = std::any_of(kept.begin(), kept.end(), [&](const State* more) {
        for (std::size_t node = 0; node < more->size(); ++node) {
          if (((*state)[node] & ~(*more)[node]) != 0) return false;
        }
        return true;
      });
      if (!less) kept.push_back(&*state);
    }
    std::set<State> best;
    for (const State* state : kept) best.insert(*state);
    return best;
  }

  Puzzle puzzle_;
  std::unique_ptr<topology::Topology> topology_;
  std::uint32_t nodes_ = 0;
  bool combines_ = false;
  std::vector<Way> ways_;
  State begin_, goal_, own_;
  const State* from_ = nullptr;
  std::set<State>* next_ = nullptr;
  std::vector<int> sends_, receives_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> loads_;
};

std::string text_of(const Puzzle& puzzle) {
  return puzzle.spec + ", collective " + std::to_string(static_cast<int>(puzzle.collective)) +
         ", ports " + std::to_string(static_cast<int>(puzzle.model)) +
         (puzzle.neighbours ? ", neighbours" : ", routed") + (puzzle.direct ? ", direct" : "") +
         ", N = " + std::to_string(puzzle.blocks) + ", root " + std::to_string(puzzle.root);
}

// Counts the bounds that some schedule reaches, by the kind of their witness.
using Reached = std::map<Witness::Kind, int>;

void solve(const Puzzle& puzzle, Reached& reached) {
  SCOPED_TRACE(text_of(puzzle));
  ScheduleSearch search(puzzle);
  const topology::Topology& topology = search.topology();
  Program common{};
  common.collective = puzzle.collective;
  common.ranks = topology.ranks();
  common.nodes = puzzle.neighbours ? topology.nodes() : 0;
  common.segments = counts_per_rank(puzzle.collective) ? common.ranks : 1;
  common.port_model = puzzle.model;
  common.root = puzzle.root;
  const std::int64_t fewest = search.fewest_steps();
  for (const LowerBound& bound :
       all_bounds(topology, common, {puzzle.links, puzzle.neighbours, puzzle.direct, 1}).all) {
    EXPECT_LE(bound.steps(puzzle.blocks), fewest) << bound.reason;
    if (bound.steps(puzzle.blocks) == fewest) ++reached[bound.witness.kind];
  }
}

constexpr PortModel kModels[] = {PortModel::kOnePortDuplex, PortModel::kSimplex,
                                 PortModel::kSingleSend, PortModel::kMultiport};

// SHORTEST passes the lowest neighbour, so two links carry more than others.
constexpr char kSquare[] =
    "custom: name: \"square\" ranks: 4 link { from: 0 to: 1 } link { from: 1 to: 2 } "
    "link { from: 2 to: 3 } link { from: 3 to: 0 }";

TEST(Search, NoScheduleBeatsABound) {
  Reached reached;
  for (const char* spec : {"complete:3", "mesh:1x3", "complete:4", "mesh:2x2", "mesh:1x4",
                           "fattree:k=3,h=1,c=1", "fattree:k=2,h=2,c=1", kSquare}) {
    const auto topology = or_throw(topology::parse(spec));
    const std::uint32_t ranks = topology->ranks();
    const bool small = ranks == 3;
    for (const PortModel model : kModels) {
      for (const bool neighbours : {true, false}) {
        for (const std::int64_t blocks : {1, 2, 3}) {
          if (blocks < 3 || small) {
            solve({spec, Collective::kBroadcast, model, neighbours, false, blocks, 1}, reached);
          }
        }
        solve({spec, Collective::kScatter, model, neighbours}, reached);
        solve({spec, Collective::kGather, model, neighbours}, reached);
        // Partial results multiply the states, so they are for the smaller puzzles.
        if (small || (neighbours && topology->nodes() == 4)) {
          solve({spec, Collective::kReduce, model, neighbours, false, 1, 1}, reached);
        }
        for (const auto collective : {Collective::kAllreduce, Collective::kScan}) {
          if (small) solve({spec, collective, model, neighbours}, reached);
        }
        if (topology->nodes() <= 4) {
          solve({spec, Collective::kAllgather, model, neighbours}, reached);
        }
      }
      if (model == PortModel::kMultiport) {
        solve({spec, Collective::kAllToAll, model, false, true}, reached);
      }
    }
  }
  for (const auto& [kind, count] : reached) {
    std::printf("kind %d: reached in %d puzzles\n", static_cast<int>(kind), count);
  }
  for (int kind = 0; kind <= static_cast<int>(Witness::Kind::kRoutes); ++kind) {
    EXPECT_GT(reached[static_cast<Witness::Kind>(kind)], 0) << "kind " << kind;
  }
}

// Where links are not counted, a pair of neighbours still has the lanes of its link.
TEST(Search, NoScheduleBeatsABoundWithoutLinks) {
  Reached reached;
  for (const char* spec : {"mesh:1x3",
                           "custom: name: \"wide\" ranks: 3 link { from: 0 to: 1 capacity: 3 } "
                           "link { from: 1 to: 2 capacity: 2 }"}) {
    for (const PortModel model : kModels) {
      for (const std::int64_t blocks : {1, 2, 3, 4}) {
        solve({spec, Collective::kBroadcast, model, false, false, blocks, 0, false}, reached);
      }
      solve({spec, Collective::kGather, model, false, false, 2, 1, false}, reached);
    }
  }
  EXPECT_GT(reached[Witness::Kind::kCut], 0);
}

// Random directed graphs of 3 or 4 ranks, connected both ways.
TEST(Search, NoScheduleBeatsABoundOfRandomGraphs) {
  std::mt19937 dice(13);
  Reached reached;
  for (int graph = 0; graph < 40; ++graph) {
    const std::uint32_t ranks = 3 + dice() % 2;
    std::string spec = "custom: name: \"random\" ranks: " + std::to_string(ranks);
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint32_t to = 0; to < from; ++to) {
        if (to + 1 != from && dice() % 2 == 0) continue;
        spec += " link { from: " + std::to_string(from) + " to: " + std::to_string(to) +
                " capacity: " + std::to_string(1 + dice() % 2) + " }";
      }
    }
    for (const PortModel model : kModels) {
      const bool neighbours = dice() % 2 == 0;
      const std::uint32_t root = dice() % ranks;
      solve({spec, Collective::kBroadcast, model, neighbours, false, 2, root}, reached);
      solve({spec, Collective::kGather, model, neighbours, false, 1, root}, reached);
      if (ranks == 3) solve({spec, Collective::kAllgather, model, neighbours}, reached);
      if (ranks == 3) solve({spec, Collective::kAllreduce, model, neighbours}, reached);
    }
  }
  EXPECT_GT(reached[Witness::Kind::kCut], 10);
}

}  // namespace
}  // namespace espalier::verify
