#include "collectives/verify/every_n/flow_graph.h"

#include <algorithm>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/expected_results.h"
#include "collectives/verify/properties/program_facts.h"
#include "collectives/verify/properties/rank_sets.h"

namespace espalier::verify {

void FlowGraph::begin(const Program& common) {
  common_ = common;
  join_ = join_of(common);
  combines_ = has_operator(common.collective);
  all_to_all_ = common.collective == Collective::kAllToAll;
}

std::uint32_t FlowGraph::add_node(std::uint32_t node, const RankProgressions& ranks,
                                  const RankFlow& flow) {
  const auto base = static_cast<std::uint32_t>(cells_.size());
  node_begin_.push_back(base);
  const std::int64_t blocks = ranks.blocks_that_differ();
  node_blocks_.push_back(blocks);
  const auto cell_of = [&](std::int32_t source) {
    if (source >= 0) return static_cast<std::int32_t>(base) + source;
    return source == kFromInput ? -1 - static_cast<std::int32_t>(node) : kNoSource;
  };
  for (std::size_t k = 0; k < ranks.all.size(); ++k) {
    const std::int32_t b = all_to_all_ ? ranks.all[k].from_segment : cell_of(flow.sources[k].b);
    cells_.push_back({cell_of(flow.sources[k].a), b, kUnknown});
    if (combines_) kinds_.push_back(ranks.all[k].kind);
  }
  ExpectedResults expected(common_);
  const auto [first, end] = expected.segments(node);
  for (std::int64_t i = first * blocks; i < end * blocks; ++i) {
    const std::int32_t last = flow.results[static_cast<std::size_t>(i)];
    results_.push_back(last < 0 ? -1 : cell_of(last));
  }
  return base;
}

bool FlowGraph::push(std::int32_t source) {
  if (is_ready(source)) return false;
  stack_.push_back(static_cast<std::uint32_t>(source));
  return true;
}

std::optional<FlowGraph::BadCombine> FlowGraph::finish(std::uint32_t number) {
  Cell& cell = cells_[number];
  RankSet set = set_of(cell.a);
  if (all_to_all_ && cell.a >= 0) cell.b = cells_[static_cast<std::size_t>(cell.a)].b;
  if (is_combine(number)) {
    const RankSet left = set, right = set_of(cell.b);
    set = left < 0 || right < 0 ? RankSets::kNone : sets_.combine(left, right, join_);
    if (set < 0) return BadCombine{number, left, right};
  }
  cell.value = set;
  return std::nullopt;
}

// Depth first: the sources of a cell before the cell.
std::optional<FlowGraph::BadCombine> FlowGraph::resolve(std::uint32_t first) {
  stack_.assign(1, first);
  while (!stack_.empty()) {
    const std::uint32_t number = stack_.back();
    cells_[number].value = kBegun;
    if (push(cells_[number].a)) continue;
    if (is_combine(number) && push(cells_[number].b)) continue;
    stack_.pop_back();
    if (auto bad = finish(number)) return bad;
  }
  return std::nullopt;
}

// Data usually flow from low node numbers to high ones, and then back. So an ascending pass
// computes the cells whose sources are ready, and a descending pass the rest. Sources are
// prefetched, because hardly any is in a cache.
std::optional<FlowGraph::BadCombine> FlowGraph::follow(const ExpandedSchedule& schedule) {
  constexpr std::uint32_t kAhead = 16;
  const auto cells = static_cast<std::uint32_t>(cells_.size());
  const auto fetch = [this, cells](std::uint32_t cell) {
    if (cell >= cells || cells_[cell].a < 0) return;
    __builtin_prefetch(&cells_[static_cast<std::size_t>(cells_[cell].a)]);
  };
  for (std::uint32_t cell = 0; cell < cells; ++cell) {
    fetch(cell + kAhead);
    if (!is_ready(cells_[cell].a) || (is_combine(cell) && !is_ready(cells_[cell].b))) continue;
    if (auto bad = finish(cell)) return bad;
    if (sets_.intervals_read() > schedule.max_instances) return std::nullopt;
  }
  for (std::uint32_t cell = cells; cell-- > 0;) {
    fetch(cell - kAhead);
    if (cells_[cell].value != kUnknown) continue;
    if (auto bad = resolve(cell)) return bad;
    if (sets_.intervals_read() > schedule.max_instances) break;
  }
  return std::nullopt;
}

std::optional<FlowGraph::BadResult> FlowGraph::check_results() {
  ExpectedResults expected(common_);
  std::size_t next = 0;
  for (std::uint32_t node = 0; node < node_begin_.size(); ++node) {
    const auto [first, end] = expected.segments(node);
    for (std::int64_t segment = first; segment < end; ++segment) {
      const RankSet ranks = expected.ranks(node, segment);
      for (std::int64_t block = 0; block < node_blocks_[node]; ++block) {
        const std::int32_t cell = results_[next++];
        Value value{RankSets::kNone, -1, block};
        if (cell >= 0) {
          value.ranks = cells_[static_cast<std::size_t>(cell)].value;
          if (all_to_all_) value.segment = cells_[static_cast<std::size_t>(cell)].b;
        }
        const bool astray = all_to_all_ && value.segment != static_cast<std::int64_t>(node);
        if (value.ranks == ranks && !astray) continue;
        return BadResult{node, segment, block, value, ranks};
      }
    }
  }
  return std::nullopt;
}

std::optional<std::pair<std::uint32_t, RankSet>> FlowGraph::check_barrier() {
  const RankSet all = RankSets::range(0, common_.ranks - 1);
  for (std::uint32_t node = 0; node < common_.ranks; ++node) {
    RankSet heard = RankSets::range(node, node);
    const std::size_t end = node + 1 < node_begin_.size() ? node_begin_[node + 1] : cells_.size();
    for (std::size_t cell = node_begin_[node]; cell < end; ++cell) {
      if (kinds_[cell] == ActionKind::kSend || cells_[cell].value < 0) continue;
      heard = sets_.combine(heard, cells_[cell].value, Join::kUnion);
    }
    if (heard != all) return std::pair(node, heard);
  }
  return std::nullopt;
}

std::pair<std::uint32_t, std::size_t> FlowGraph::place_of(std::uint32_t cell) const {
  const auto after = std::upper_bound(node_begin_.begin(), node_begin_.end(), cell);
  const auto node = static_cast<std::size_t>(after - node_begin_.begin()) - 1;
  return {static_cast<std::uint32_t>(node), cell - node_begin_[node]};
}

}  // namespace espalier::verify
