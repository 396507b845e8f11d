#include "tests/random/moves.h"

#include <numeric>

namespace espalier::random {

Moves::Moves(const Plan& plan, bool hop_by_hop, bool neighbours, Dice& dice)
    : plan_(plan), dice_(dice), ranks_(plan.topology->ranks()) {
  const std::uint32_t nodes = hop_by_hop ? plan.topology->nodes() : ranks_;
  free_ = !hop_by_hop && !neighbours;
  peers_.resize(nodes);
  for (std::uint32_t from = 0; from < nodes; ++from) {
    for (std::uint32_t to = 0; to < nodes; ++to) {
      const bool near = plan.topology->capacity(from, to) > 0;
      if (from != to && (near || free_)) peers_[from].push_back(to);
    }
  }
  style_ = dice.one_in(4) ? 0 : dice.number(0, 3);
  in_order_ = !dice.one_in(3);
  through_scratch_ = dice.number(0, kAlways);
  if (dice.one_in(2) || plan.regular) same_ = dice.number(1, 1u << 30);
  if (!plan.regular) return;
  style_ = 0;
  in_order_ = true;
  through_scratch_ = dice.one_in(3) ? 0 : kAlways;
}

Spool Moves::spool(Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
  return {sketch, Dice(same_ != 0 ? same_ : dice_.number(1, 1u << 30)), segment, block};
}

Nodes Moves::range(std::uint32_t first, std::uint32_t end) {
  Nodes nodes(end - first);
  std::iota(nodes.begin(), nodes.end(), first);
  return nodes;
}

// Grows from the root over links, and is cut back to the nodes on the way to `wanted`.
Tree Moves::tree(Dice& dice, std::uint32_t root, const Nodes& wanted) const {
  std::vector<bool> allowed(peers_.size(), !free_), in(peers_.size(), false);
  for (const std::uint32_t node : wanted) allowed[node] = true;
  Nodes grown{root};
  in[root] = true;
  Tree tree;
  for (;;) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (std::size_t i = 0; i < grown.size(); ++i) {
      // A chain grows at its end, if it can.
      const std::size_t k = style_ == 0 ? grown.size() - 1 - i : i;
      for (const std::uint32_t to : peers_[grown[k]]) {
        if (allowed[to] && !in[to]) edges.emplace_back(grown[k], to);
      }
      if (style_ < 2 && !edges.empty()) break;
    }
    if (edges.empty()) break;
    const auto last = static_cast<std::uint32_t>(edges.size()) - 1;
    // Chains in the order of ranks make nodes that look alike.
    const auto edge = edges[style_ == 0 && in_order_ ? 0 : dice.number(0, last)];
    tree.edges.push_back(edge);
    grown.push_back(edge.second);
    in[edge.second] = true;
  }
  std::vector<bool> needed(peers_.size(), false);
  for (const std::uint32_t node : wanted) needed[node] = true;
  for (std::size_t i = tree.edges.size(); i-- > 0;) {
    if (needed[tree.edges[i].second]) needed[tree.edges[i].first] = true;
  }
  std::erase_if(tree.edges, [&](const auto& edge) { return !needed[edge.second]; });
  return tree;
}

bool Moves::has(std::uint32_t node, Buffer buffer, std::uint32_t segment) const {
  Program program{};
  program.collective = plan_.collective;
  program.ranks = ranks_;
  program.node = node;
  program.root = plan_.root;
  const Extent extent = buffer_extent(program, buffer);
  return extent == Extent::kWhole || (extent == Extent::kOwn && segment == node);
}

Moves::Cell Moves::given(Spool& spool, std::uint32_t node, bool output_before) const {
  const bool output = output_before && has(node, Buffer::kOutput, spool.segment);
  return spool.sketch.caller(node, output ? Buffer::kOutput : Buffer::kInput, spool.segment,
                             spool.block, output);
}

Moves::Cell Moves::result(Spool& spool, std::uint32_t node) const {
  return spool.sketch.caller(node, Buffer::kOutput, spool.segment, spool.block);
}

std::vector<Moves::Cell> Moves::down(Spool& spool, std::uint32_t root, Cell source, const Nodes& to,
                                     bool keep) const {
  std::vector<Cell> at(peers_.size(), -1);
  at[root] = source;
  for (const auto& [parent, node] : tree(spool.dice, root, to).edges) {
    const bool wanted = keep && has(node, Buffer::kOutput, spool.segment);
    const bool detour = through_scratch_ == kAlways ||
                        (through_scratch_ > 0 && spool.dice.one_in(through_scratch_ + 1));
    at[node] = wanted && !detour ? result(spool, node)
                                 : spool.sketch.scratch(node, spool.segment, spool.block);
    spool.sketch.send(at[parent], at[node]);
    if (!wanted || !detour) continue;
    spool.sketch.copy(at[node], result(spool, node));
    if (spool.dice.one_in(4)) at[node] = result(spool, node);
  }
  return at;
}

// Combines ranks first .. end-1, in their order.
Moves::Cell Moves::up_ordered(Spool& spool, std::uint32_t first, std::uint32_t end,
                              std::uint32_t head, Cell final) const {
  Dice& dice = spool.dice;
  std::uint32_t left = head, right = head + 1;
  Cell sum = given(spool, head, false);
  bool own = true;  // the sum is still the rank's input
  while (left > first || right < end) {
    const bool to_left = left > first && (right == end || dice.one_in(2));
    const std::uint32_t begin = to_left ? first : right, stop = to_left ? left : end;
    const std::uint32_t many = style_ == 0 ? stop - begin : dice.number(1, stop - begin);
    const std::uint32_t from = to_left ? stop - many : begin;
    const std::uint32_t nearest = to_left ? from + many - 1 : from;
    const std::uint32_t other = style_ == 0 ? nearest : dice.number(from, from + many - 1);
    const Cell part = up_ordered(spool, from, from + many, other, -1);
    const Cell got = spool.sketch.scratch(head, spool.segment, spool.block);
    spool.sketch.send(part, got);
    Cell into = own || dice.one_in(4) ? got : sum;
    if (final >= 0) into = final;
    spool.sketch.combine(to_left ? got : sum, to_left ? sum : got, into);
    (to_left ? left : right) = to_left ? from : from + many;
    sum = into;
    own = false;
  }
  return sum;
}

Moves::Cell Moves::up(Spool& spool, std::uint32_t root, Cell final) const {
  const bool ordered = free_ && !plan_.needs_commutative;
  return ordered ? up_ordered(spool, 0, ranks_, root, final) : up_tree(spool, root, final);
}

Moves::Cell Moves::up_tree(Spool& spool, std::uint32_t root, Cell final) const {
  Sketch& sketch = spool.sketch;
  const Tree all = tree(spool.dice, root, all_ranks());
  std::vector<Cell> sum(peers_.size(), -1);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) sum[rank] = given(spool, rank, false);
  std::vector<bool> made(peers_.size(), false);  // the sum is more than the input
  for (std::size_t i = all.edges.size(); i-- > 0;) {
    const auto [node, child] = all.edges[i];
    const Cell got = sketch.scratch(node, spool.segment, spool.block);
    sketch.send(sum[child], got);
    if (sum[node] < 0) {
      sum[node] = got;  // a router's first
      continue;
    }
    // An operation waits for the receives of one step.
    if (sketch.is_received(sum[node])) sketch.copy(sum[node], sum[node]);
    const bool last = node == root && final >= 0;
    const Cell into = last ? final : made[node] ? sum[node] : got;
    const bool swapped = spool.dice.one_in(2);
    sketch.combine(swapped ? got : sum[node], swapped ? sum[node] : got, into);
    sum[node] = into;
    made[node] = true;
  }
  return sum[root];
}

void Moves::path(Spool& spool, std::uint32_t from, std::uint32_t to, Cell source,
                 Cell final) const {
  Tree way;
  if (free_ && !spool.dice.one_in(3)) {
    way.edges.emplace_back(from, to);
  } else {
    way = tree(spool.dice, from, free_ ? all_ranks() : Nodes{to});
  }
  Nodes hops{to};
  for (std::size_t i = way.edges.size(); i-- > 0;) {
    if (way.edges[i].second == hops.back()) hops.push_back(way.edges[i].first);
  }
  for (std::size_t i = hops.size() - 1; i-- > 0;) {
    const Cell into = i == 0 ? final : spool.sketch.scratch(hops[i], spool.segment, spool.block);
    spool.sketch.send(source, into);
    source = into;
  }
}

void Moves::prefixes(Spool& spool, std::uint32_t first, std::uint32_t end,
                     std::vector<Cell>& prefix) const {
  if (end - first < 2) return;
  Sketch& sketch = spool.sketch;
  const std::uint32_t middle = style_ == 0 ? end - 1 : spool.dice.number(first + 1, end - 1);
  prefixes(spool, first, middle, prefix);
  prefixes(spool, middle, end, prefix);
  const Nodes to = range(middle, end);
  const std::vector<Cell> got = down(spool, middle - 1, prefix[middle - 1], to, false);
  for (const std::uint32_t rank : to) {
    Cell into = prefix[rank];
    if (plan_.collective == Collective::kScan) {
      into = result(spool, rank);
    } else if (sketch.cells()[static_cast<std::size_t>(into)].buffer == Buffer::kInput) {
      into = sketch.scratch(rank, spool.segment, spool.block);
    }
    sketch.combine(got[rank], prefix[rank], into);
    prefix[rank] = into;
  }
}

template <typename Part>
void Moves::each_part(Dice& dice, std::uint32_t first, std::uint32_t end, std::uint32_t head,
                      const Part& part) {
  std::uint32_t left = head, right = head + 1;
  while (left > first || right < end) {
    const bool to_left = left > first && (right == end || dice.one_in(2));
    const std::uint32_t many = dice.number(1, to_left ? left - first : end - right);
    const std::uint32_t from = to_left ? left - many : right;
    part(from, many, dice.number(from, from + many - 1));
    (to_left ? left : right) = to_left ? from : from + many;
  }
}

void Moves::spread_runs(Spool& spool, std::uint32_t first, std::uint32_t end, std::uint32_t head,
                        Cell held, std::uint32_t held_first) const {
  Sketch& sketch = spool.sketch;
  const Cell own = sketch.caller(head, Buffer::kOutput, head, 0);
  sketch.copy(held, own, {head - held_first, 0, 1});
  each_part(spool.dice, first, end, head, [&](std::uint32_t from, std::uint32_t many, auto rank) {
    const Cell got = sketch.scratch(rank, from, 0, many);
    sketch.send(held, got, {from - held_first, 0, many});
    spread_runs(spool, from, from + many, rank, got, from);
  });
}

void Moves::gather_runs(Spool& spool, std::uint32_t first, std::uint32_t end, std::uint32_t head,
                        Cell held, std::uint32_t held_first) const {
  Sketch& sketch = spool.sketch;
  const Cell own = sketch.caller(head, Buffer::kInput, head, 0);
  sketch.copy(own, held, {0, head - held_first, 1});
  each_part(spool.dice, first, end, head, [&](std::uint32_t from, std::uint32_t many, auto rank) {
    const Cell sent = sketch.scratch(rank, from, 0, many);
    gather_runs(spool, from, from + many, rank, sent, from);
    sketch.send(sent, held, {0, from - held_first, many});
  });
}

}  // namespace espalier::random
