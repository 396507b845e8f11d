#include "tests/random/recipes.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace espalier::random {
namespace {

using Nodes = std::vector<std::uint32_t>;
using Emit = std::function<void(Sketch&, std::uint32_t segment, std::uint32_t block)>;

// A tree in an order in which a node comes after its parent.
struct Tree {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // parent, node
};

class Cook {
 public:
  Cook(const Plan& plan, bool modelled, bool neighbours, Dice& dice)
      : plan_(plan), dice_(dice), ranks_(plan.topology->ranks()) {
    const std::uint32_t nodes = modelled ? plan.topology->nodes() : ranks_;
    peers_.resize(nodes);
    for (std::uint32_t from = 0; from < nodes; ++from) {
      for (std::uint32_t to = 0; to < nodes; ++to) {
        const bool near = plan.topology->capacity(from, to) > 0;
        if (from != to && (near || (!modelled && !neighbours))) peers_[from].push_back(to);
      }
    }
    free_ = !modelled && !neighbours;
    style_ = dice.one_in(4) ? 0 : dice.number(0, 3);
    in_order_ = !dice.one_in(3);
    through_scratch_ = dice.number(0, kAlways);
    if (dice.one_in(2) || plan.regular) same_ = dice.number(1, 1u << 30);
    if (!plan.regular) return;
    style_ = 0;
    in_order_ = true;
    through_scratch_ = dice.one_in(3) ? 0 : kAlways;
  }

  std::vector<Part> cook();

 private:
  static constexpr std::uint32_t kAlways = 5;  // of what is received
  using Cell = std::int32_t;

  // The dice of one segment and block: the same for all of them, where they are to look alike.
  Dice dice_of() { return Dice(same_ != 0 ? same_ : dice_.number(1, 1u << 30)); }

  [[nodiscard]] Nodes all_ranks() const { return range(0, ranks_); }
  static Nodes range(std::uint32_t first, std::uint32_t end) {
    Nodes nodes(end - first);
    std::iota(nodes.begin(), nodes.end(), first);
    return nodes;
  }

  Tree tree(Dice& dice, std::uint32_t root, const Nodes& wanted) const;
  Cell given(Sketch& sketch, std::uint32_t node, std::uint32_t segment, std::uint32_t block,
             bool output_before) const;
  Cell result(Sketch& sketch, std::uint32_t node, std::uint32_t segment, std::uint32_t block) const;
  [[nodiscard]] bool has(std::uint32_t node, Buffer buffer, std::uint32_t segment) const;

  void down(Sketch& sketch, Dice& dice, std::uint32_t root, Cell source, const Nodes& to,
            std::uint32_t segment, std::uint32_t block, bool keep_results, std::vector<Cell>* got);
  Cell up(Sketch& sketch, Dice& dice, std::uint32_t root, Cell final, std::uint32_t segment,
          std::uint32_t block);
  Cell up_ordered(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                  std::uint32_t head, Cell final, std::uint32_t segment, std::uint32_t block);
  void path(Sketch& sketch, Dice& dice, std::uint32_t from, std::uint32_t to, Cell source,
            Cell final, std::uint32_t segment, std::uint32_t block);
  void prefixes(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                std::uint32_t segment, std::uint32_t block, std::vector<Cell>& prefix);
  void spread_runs(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                   std::uint32_t head, Cell held, std::uint32_t held_first);
  void gather_runs(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                   std::uint32_t head, Cell held, std::uint32_t held_first);

  Emit broadcast(bool from_output);
  Emit reduce(bool into_output_of_segment);
  Emit scatter(bool into_whole_output);
  Emit gather();
  Emit allgather(bool from_output);
  Emit scan(bool exclusive);
  Emit all_to_all();
  Emit barrier();

  const Plan& plan_;
  Dice& dice_;
  std::uint32_t ranks_;
  std::vector<Nodes> peers_;
  bool free_ = true;  // any rank reaches any
  std::uint32_t style_ = 0, through_scratch_ = 0;
  bool in_order_ = false;  // a chain's nodes
  std::uint32_t same_ = 0;
  std::uint32_t middle_ = 0;  // of an allreduce: the rank that has the sum first
};

// Grown from the root over links, and cut back to what `wanted` needs.
Tree Cook::tree(Dice& dice, std::uint32_t root, const Nodes& wanted) const {
  std::vector<bool> allowed(peers_.size(), !free_), in(peers_.size(), false);
  for (const std::uint32_t node : wanted) allowed[node] = true;
  Nodes grown{root};
  in[root] = true;
  Tree tree;
  for (;;) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::size_t at = 0; at < grown.size(); ++at) {
      // A chain goes on from its end, if it can.
      const std::size_t k = style_ == 0 ? grown.size() - 1 - at : at;
      for (const std::uint32_t to : peers_[grown[k]]) {
        if (allowed[to] && !in[to]) edges.emplace_back(grown[k], to);
      }
      if (style_ < 2 && !edges.empty()) break;
    }
    if (edges.empty()) break;
    // Chains in the order of ranks make nodes that look alike.
    const bool first = style_ == 0 && in_order_;
    const auto edge = edges[first ? 0 : dice.number(0, static_cast<std::uint32_t>(edges.size()) - 1)];
    tree.edges.push_back(edge);
    grown.push_back(edge.second);
    in[edge.second] = true;
  }
  std::vector<bool> needed(peers_.size(), false);
  for (const std::uint32_t node : wanted) needed[node] = true;
  for (std::size_t at = tree.edges.size(); at-- > 0;) {
    if (needed[tree.edges[at].second]) needed[tree.edges[at].first] = true;
  }
  std::erase_if(tree.edges, [&](const auto& edge) { return !needed[edge.second]; });
  return tree;
}

bool Cook::has(std::uint32_t node, Buffer buffer, std::uint32_t segment) const {
  Program program{};
  program.collective = plan_.collective;
  program.ranks = ranks_;
  program.node = node;
  program.root = plan_.root;
  const Extent extent = buffer_extent(program, buffer);
  return extent == Extent::kWhole || (extent == Extent::kOwn && segment == node);
}

// What the rank's caller gives, or what an earlier stage left.
Cook::Cell Cook::given(Sketch& sketch, std::uint32_t node, std::uint32_t segment,
                       std::uint32_t block, bool output_before) const {
  const bool output = output_before && has(node, espalier_Buffer_OUTPUT, segment);
  return sketch.caller(node, output ? espalier_Buffer_OUTPUT : espalier_Buffer_INPUT, segment,
                       block, output);
}

Cook::Cell Cook::result(Sketch& sketch, std::uint32_t node, std::uint32_t segment,
                        std::uint32_t block) const {
  return sketch.caller(node, espalier_Buffer_OUTPUT, segment, block);
}

// From the root to the nodes `to`. Where a node's caller wants it, it ends in its output. `got`:
// where each node has it.
void Cook::down(Sketch& sketch, Dice& dice, std::uint32_t root, Cell source, const Nodes& to,
                std::uint32_t segment, std::uint32_t block, bool keep_results,
                std::vector<Cell>* got) {
  std::vector<Cell> at(peers_.size(), -1);
  at[root] = source;
  for (const auto& [parent, node] : tree(dice, root, to).edges) {
    const bool wanted = keep_results && has(node, espalier_Buffer_OUTPUT, segment);
    const bool detour = !wanted || (through_scratch_ > 0 && dice.one_in(through_scratch_ + 1)) ||
                        through_scratch_ == kAlways;
    const Cell into = detour ? sketch.scratch(node, segment, block)
                             : result(sketch, node, segment, block);
    sketch.send(at[parent], into);
    at[node] = into;
    if (!wanted || !detour) continue;
    sketch.copy(into, result(sketch, node, segment, block));
    if (dice.one_in(4)) at[node] = result(sketch, node, segment, block);
  }
  if (got != nullptr) *got = at;
}

// The combination of ranks first .. end-1, in their order, in a cell of `head`; -1 as `final`: in
// any.
Cook::Cell Cook::up_ordered(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                            std::uint32_t head, Cell final, std::uint32_t segment,
                            std::uint32_t block) {
  std::uint32_t left = head, right = head + 1;
  Cell sum = given(sketch, head, segment, block, false);
  bool own = true;  // the sum is the rank's input still
  while (left > first || right < end) {
    const bool to_left = left > first && (right == end || dice.one_in(2));
    const std::uint32_t begin = to_left ? first : right, stop = to_left ? left : end;
    const std::uint32_t many = style_ == 0 ? stop - begin : dice.number(1, stop - begin);
    const std::uint32_t from = to_left ? stop - many : begin;
    const std::uint32_t other = style_ == 0 ? (to_left ? from + many - 1 : from)
                                            : dice.number(from, from + many - 1);
    const Cell part = up_ordered(sketch, dice, from, from + many, other, -1, segment, block);
    const Cell got = sketch.scratch(head, segment, block);
    sketch.send(part, got);
    Cell into = final >= 0 && own ? final : own || dice.one_in(4) ? got : sum;
    if (final >= 0) into = final;
    if (to_left) {
      sketch.combine(got, sum, into);
      left = from;
    } else {
      sketch.combine(sum, got, into);
      right = from + many;
    }
    sum = into;
    own = false;
  }
  if (own && final >= 0) {
    sketch.copy(sum, final);
    sum = final;
  }
  return sum;
}

// The combination of all, in `final` of the root (-1: in any cell of it).
Cook::Cell Cook::up(Sketch& sketch, Dice& dice, std::uint32_t root, Cell final,
                    std::uint32_t segment, std::uint32_t block) {
  if (free_ && !plan_.needs_commutative) {
    return up_ordered(sketch, dice, 0, ranks_, root, final, segment, block);
  }
  const Tree all = tree(dice, root, all_ranks());
  std::vector<Cell> sum(peers_.size(), -1);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    sum[rank] = given(sketch, rank, segment, block, false);
  }
  std::vector<bool> made(peers_.size(), false);  // the sum is more than the input
  for (std::size_t at = all.edges.size(); at-- > 0;) {
    const auto [node, child] = all.edges[at];
    const Cell got = sketch.scratch(node, segment, block);
    sketch.send(sum[child], got);
    if (sum[node] < 0) {
      sum[node] = got;  // a router's first
      continue;
    }
    // An operation waits for the receives of one step.
    if (sketch.is_received(sum[node])) sketch.copy(sum[node], sum[node]);
    const bool last = node == root && final >= 0;
    const Cell into = last ? final : made[node] ? sum[node] : got;
    if (dice.one_in(2)) {
      sketch.combine(sum[node], got, into);
    } else {
      sketch.combine(got, sum[node], into);
    }
    sum[node] = into;
    made[node] = true;
  }
  return sum[root];
}

// One block along a way from rank to rank.
void Cook::path(Sketch& sketch, Dice& dice, std::uint32_t from, std::uint32_t to, Cell source,
                Cell final, std::uint32_t segment, std::uint32_t block) {
  Tree way;
  if (free_ && !dice.one_in(3)) {
    way.edges.emplace_back(from, to);
  } else {
    way = tree(dice, from, free_ ? all_ranks() : Nodes{to});
  }
  Nodes hops{to};
  for (std::size_t at = way.edges.size(); at-- > 0;) {
    if (way.edges[at].second == hops.back()) hops.push_back(way.edges[at].first);
  }
  for (std::size_t at = hops.size() - 1; at-- > 0;) {
    const Cell into = at == 0 ? final : sketch.scratch(hops[at], segment, block);
    sketch.send(source, into);
    source = into;
  }
}

// Ranks first .. end-1 get the combination of those from `first` to themselves: halves first, then
// the left one's sum goes to all of the right.
void Cook::prefixes(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                    std::uint32_t segment, std::uint32_t block, std::vector<Cell>& prefix) {
  if (end - first < 2) return;
  const std::uint32_t middle = style_ == 0 ? end - 1 : dice.number(first + 1, end - 1);
  prefixes(sketch, dice, first, middle, segment, block, prefix);
  prefixes(sketch, dice, middle, end, segment, block, prefix);
  std::vector<Cell> got;
  Nodes to = range(middle, end);
  down(sketch, dice, middle - 1, prefix[middle - 1], to, segment, block, false, &got);
  for (const std::uint32_t rank : to) {
    const bool output = plan_.collective == espalier_Collective_SCAN;
    const Cell into = output ? result(sketch, rank, segment, block)
                             : sketch.is_received(prefix[rank]) || prefix[rank] < 0 ||
                                       sketch.cells()[static_cast<std::size_t>(prefix[rank])]
                                               .buffer == espalier_Buffer_INPUT
                                   ? sketch.scratch(rank, segment, block)
                                   : prefix[rank];
    sketch.combine(got[rank], prefix[rank], into);
    prefix[rank] = into;
  }
}

Emit Cook::broadcast(bool from_output) {
  const std::uint32_t root = plan_.collective == espalier_Collective_BROADCAST ? plan_.root : middle_;
  return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    down(sketch, dice, root, given(sketch, root, segment, block, from_output), all_ranks(), segment,
         block, true, nullptr);
  };
}

Emit Cook::reduce(bool to_segments_rank) {
  return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    const bool rooted = plan_.collective == espalier_Collective_REDUCE;
    const std::uint32_t root = to_segments_rank ? segment : rooted ? plan_.root : middle_;
    (void)up(sketch, dice, root, result(sketch, root, segment, block), segment, block);
  };
}

Emit Cook::scatter(bool into_whole_output) {
  return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    const Cell source = given(sketch, plan_.root, segment, block, false);
    if (segment != plan_.root) {
      path(sketch, dice, plan_.root, segment, source, result(sketch, segment, segment, block),
           segment, block);
    } else if (!into_whole_output) {
      sketch.copy(source, result(sketch, segment, segment, block));
    }
  };
}

Emit Cook::gather() {
  return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    const Cell source = given(sketch, segment, segment, block, false);
    const Cell final = result(sketch, plan_.root, segment, block);
    if (segment == plan_.root) {
      sketch.copy(source, final);
    } else {
      path(sketch, dice, segment, plan_.root, source, final, segment, block);
    }
  };
}

Emit Cook::allgather(bool from_output) {
  return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    const Cell source = given(sketch, segment, segment, block, from_output);
    if (!from_output) sketch.copy(source, result(sketch, segment, segment, block));
    down(sketch, dice, segment, source, all_ranks(), segment, block, true, nullptr);
  };
}

Emit Cook::scan(bool exclusive) {
  return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    const std::uint32_t ranks = exclusive ? ranks_ - 1 : ranks_;
    std::vector<Cell> prefix(ranks_, -1);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      prefix[rank] = given(sketch, rank, segment, block, false);
    }
    prefixes(sketch, dice, 0, ranks, segment, block, prefix);
    if (!exclusive) {
      sketch.copy(prefix[0], result(sketch, 0, segment, block));
      return;
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      path(sketch, dice, rank, rank + 1, prefix[rank], result(sketch, rank + 1, segment, block),
           segment, block);
    }
  };
}

Emit Cook::all_to_all() {
  return [this](Sketch& sketch, std::uint32_t from, std::uint32_t block) {
    for (std::uint32_t to = 0; to < ranks_; ++to) {
      Dice dice = dice_of();
      const Cell source = sketch.caller(from, espalier_Buffer_INPUT, to, block);
      const Cell final = sketch.caller(to, espalier_Buffer_OUTPUT, from, block);
      if (from == to) {
        sketch.copy(source, final);
      } else {
        path(sketch, dice, from, to, source, final, dice.one_in(2) ? from : to, block);
      }
    }
  };
}

Emit Cook::barrier() {
  return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
    Dice dice = dice_of();
    const Cell sum = up(sketch, dice, middle_, -1, segment, block);
    down(sketch, dice, middle_, sum, all_ranks(), segment, block, false, nullptr);
  };
}

// One block a segment: a rank hands on runs of its ranks' segments, first .. end-1 of them.
void Cook::spread_runs(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                       std::uint32_t head, Cell held, std::uint32_t held_first) {
  sketch.copy(held, result(sketch, head, head, 0), {head - held_first, 0, 1});
  std::uint32_t left = head, right = head + 1;
  while (left > first || right < end) {
    const bool to_left = left > first && (right == end || dice.one_in(2));
    const std::uint32_t most = to_left ? left - first : end - right;
    const std::uint32_t many = dice.number(1, most), from = to_left ? left - many : right;
    const std::uint32_t other = dice.number(from, from + many - 1);
    const Cell got = sketch.scratch(other, from, 0, many);
    sketch.send(held, got, {from - held_first, 0, many});
    spread_runs(sketch, dice, from, from + many, other, got, from);
    (to_left ? left : right) = to_left ? from : from + many;
  }
}

// The other way.
void Cook::gather_runs(Sketch& sketch, Dice& dice, std::uint32_t first, std::uint32_t end,
                       std::uint32_t head, Cell held, std::uint32_t held_first) {
  const Cell own = given(sketch, head, head, 0, false);
  sketch.copy(own, held, {0, head - held_first, 1});
  std::uint32_t left = head, right = head + 1;
  while (left > first || right < end) {
    const bool to_left = left > first && (right == end || dice.one_in(2));
    const std::uint32_t most = to_left ? left - first : end - right;
    const std::uint32_t many = dice.number(1, most), from = to_left ? left - many : right;
    const std::uint32_t other = dice.number(from, from + many - 1);
    const Cell sent = sketch.scratch(other, from, 0, many);
    gather_runs(sketch, dice, from, from + many, other, sent, from);
    sketch.send(sent, held, {0, from - held_first, many});
    (to_left ? left : right) = to_left ? from : from + many;
  }
}

std::vector<Part> Cook::cook() {
  middle_ = dice_.number(0, ranks_ - 1);
  Nodes segments(plan_.segments);
  std::iota(segments.begin(), segments.end(), 0u);
  const bool halves = plan_.segments == ranks_ && plan_.pipelined;
  const auto once = [&](const Emit& emit) { return std::vector<Part>{{segments, emit}}; };
  // Runs of segments: one call for all of them.
  const bool runs = !plan_.pipelined && free_ && !dice_.one_in(3);
  switch (plan_.collective) {
    case espalier_Collective_BROADCAST:
      if (halves && dice_.one_in(2)) return {{segments, scatter(true)}, {segments, allgather(true)}};
      return once(broadcast(false));
    case espalier_Collective_ALLREDUCE:
      if (halves && dice_.one_in(2)) return {{segments, reduce(true)}, {segments, allgather(true)}};
      if (dice_.one_in(2)) return {{segments, reduce(false)}, {segments, broadcast(true)}};
      return once([this, first = reduce(false), then = broadcast(true)](
                      Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
        first(sketch, segment, block);
        then(sketch, segment, block);
      });
    case espalier_Collective_REDUCE: return once(reduce(false));
    case espalier_Collective_REDUCE_SCATTER: return once(reduce(true));
    case espalier_Collective_SCATTER:
      if (!runs) return once(scatter(false));
      return {{{0}, [this](Sketch& sketch, std::uint32_t, std::uint32_t) {
                 Dice dice = dice_of();
                 const Cell held = sketch.caller(plan_.root, espalier_Buffer_INPUT, 0, 0);
                 spread_runs(sketch, dice, 0, ranks_, plan_.root, held, 0);
               }}};
    case espalier_Collective_GATHER:
      if (!runs) return once(gather());
      return {{{0}, [this](Sketch& sketch, std::uint32_t, std::uint32_t) {
                 Dice dice = dice_of();
                 const Cell held =
                     sketch.caller(plan_.root, espalier_Buffer_OUTPUT, 0, 0, false, ranks_);
                 gather_runs(sketch, dice, 0, ranks_, plan_.root, held, 0);
               }}};
    case espalier_Collective_ALLGATHER: return once(allgather(false));
    case espalier_Collective_SCAN: return once(scan(false));
    case espalier_Collective_EXSCAN: return once(scan(true));
    case espalier_Collective_ALL_TO_ALL: return once(all_to_all());
    default: return once(barrier());
  }
}

}  // namespace

std::vector<Part> make_recipe(const Plan& plan, bool modelled, bool neighbours, Dice& dice) {
  const auto cook = std::make_shared<Cook>(plan, modelled, neighbours, dice);
  std::vector<Part> parts = cook->cook();
  for (Part& part : parts) {
    part.emit = [cook, emit = part.emit](Sketch& sketch, std::uint32_t segment,
                                         std::uint32_t block) { emit(sketch, segment, block); };
  }
  // Segments may take their stages apart.
  if (parts.size() == 1 && parts[0].segments.size() > 1 && plan.pipelined && dice.one_in(4)) {
    const std::uint32_t many =
        dice.number(1, static_cast<std::uint32_t>(parts[0].segments.size()) - 1);
    parts.push_back(parts[0]);
    parts[0].segments.resize(many);
    parts[1].segments.erase(parts[1].segments.begin(), parts[1].segments.begin() + many);
  }
  return parts;
}

}  // namespace espalier::random
