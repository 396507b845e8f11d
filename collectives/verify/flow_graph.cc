#include "collectives/verify/flow_graph.h"

#include <algorithm>

namespace espalier::verify {

void FlowGraph::begin(const Program& common) {
  common_ = common;
  join_ = join_of(common);
  combines_ = has_operator(common.collective);
  all_to_all_ = common.collective == espalier_Collective_ALL_TO_ALL;
}

std::uint32_t FlowGraph::add_node(std::uint32_t node, const Program& program,
                                  const RankProgressions& ranks, const RankFlow& flow) {
  const auto base = static_cast<std::uint32_t>(a_.size());
  node_begin_.push_back(base);
  stride_ = ranks.stride;
  const auto cell_of = [&](std::int32_t source) {
    if (source >= 0) return static_cast<std::int32_t>(base) + source;
    return source == kFromInput ? -1 - static_cast<std::int32_t>(node) : kNoSource;
  };
  for (std::size_t k = 0; k < ranks.all.size(); ++k) {
    a_.push_back(cell_of(flow.sources[k].a));
    if (combines_) b_.push_back(cell_of(flow.sources[k].b));
    if (all_to_all_) carried_.push_back(ranks.all[k].from_segment);
    kind_.push_back(ranks.all[k].kind);
  }
  Wanted wanted(common_);
  const auto [first, end] = wanted.segments(node);
  for (std::int64_t at = first * stride_; at < end * stride_; ++at) {
    const std::int32_t last = flow.results[static_cast<std::size_t>(at)];
    results_.push_back(last < 0 ? -1 : cell_of(last));
  }
  (void)program;
  return base;
}

bool FlowGraph::push(std::int32_t source) {
  if (source < 0 || value_[static_cast<std::size_t>(source)] != kUnknown) return false;
  stack_.push_back(static_cast<std::uint32_t>(source));
  return true;
}

// Depth first: a cell's sources before the cell.
std::optional<FlowGraph::BadCombine> FlowGraph::resolve(std::uint32_t cell) {
  stack_.assign(1, cell);
  while (!stack_.empty()) {
    const std::uint32_t at = stack_.back();
    value_[at] = kBegun;
    if (push(a_[at])) continue;
    const bool combine = kind_[at] == espalier_Kind_COMBINE;
    if (combine && push(b_[at])) continue;
    stack_.pop_back();
    RankSet set = set_of(a_[at]);
    if (all_to_all_ && a_[at] >= 0) carried_[at] = carried_[static_cast<std::size_t>(a_[at])];
    if (combine) {
      const RankSet left = set, right = set_of(b_[at]);
      set = left < 0 || right < 0 ? RankSets::kNone : sets_.combine(left, right, join_);
      if (set < 0) return BadCombine{at, left, right};
    }
    value_[at] = set;
  }
  return std::nullopt;
}

std::optional<FlowGraph::BadCombine> FlowGraph::follow(const Case& at) {
  value_.assign(a_.size(), kUnknown);
  for (std::uint32_t cell = 0; cell < a_.size(); ++cell) {
    if (value_[cell] != kUnknown) continue;
    if (auto bad = resolve(cell)) return bad;
    if (sets_.intervals_read() > at.most_instances) break;
  }
  return std::nullopt;
}

std::optional<FlowGraph::BadResult> FlowGraph::check_results() {
  Wanted wanted(common_);
  std::size_t next = 0;
  for (std::uint32_t node = 0; node < node_begin_.size(); ++node) {
    const auto [first, end] = wanted.segments(node);
    for (std::int64_t segment = first; segment < end; ++segment) {
      const RankSet ranks = wanted.ranks(node, segment);
      for (std::int64_t block = 0; block < stride_; ++block) {
        const std::int32_t cell = results_[next++];
        Value value{RankSets::kNone, -1, block};
        if (cell >= 0) {
          value.ranks = value_[static_cast<std::size_t>(cell)];
          if (all_to_all_) value.segment = carried_[static_cast<std::size_t>(cell)];
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
    const std::size_t end = node + 1 < node_begin_.size() ? node_begin_[node + 1] : a_.size();
    for (std::size_t cell = node_begin_[node]; cell < end; ++cell) {
      if (kind_[cell] == espalier_Kind_SEND || value_[cell] < 0) continue;
      heard = sets_.combine(heard, value_[cell], Join::kUnion);
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
