#include "collectives/verify/flow.h"

#include <algorithm>

namespace espalier::verify {

std::int32_t RankSets::intern(std::vector<Interval> set) {
  if (set.size() == 1) return range(set[0].first, set[0].second);
  std::string key(reinterpret_cast<const char*>(set.data()), set.size() * sizeof(Interval));
  const auto [entry, fresh] =
      numbers_.try_emplace(std::move(key), static_cast<std::int32_t>(sets_.size()));
  if (fresh) sets_.push_back(std::move(set));
  return entry->second;
}

std::int32_t RankSets::range(std::uint32_t first, std::uint32_t last) {
  const std::uint64_t key = (static_cast<std::uint64_t>(first) << 32) | last;
  const auto [entry, fresh] = ranges_.try_emplace(key, static_cast<std::int32_t>(sets_.size()));
  if (fresh) sets_.push_back({{first, last}});
  return entry->second;
}

std::string RankSets::why_not_combined(std::int32_t left, std::int32_t right, bool ordered) const {
  return "it combines " + name(left) + " (left) with " + name(right) + " (right); " +
         (ordered ? "the left must end just before the right begins" : "no rank may count twice");
}

std::int32_t RankSets::combine(std::int32_t left, std::int32_t right, bool ordered) {
  const std::uint64_t key = (static_cast<std::uint64_t>(left) << 32) |
                            (static_cast<std::uint64_t>(right) << 1) | (ordered ? 1 : 0);
  const auto [entry, fresh] = combined_.try_emplace(key, -1);
  if (!fresh) return entry->second;
  const std::vector<Interval>& a = sets_[static_cast<std::size_t>(left)];
  const std::vector<Interval>& b = sets_[static_cast<std::size_t>(right)];
  if (ordered && a.back().second + 1 != b.front().first) return -1;
  intervals_read_ += static_cast<std::int64_t>(a.size() + b.size()) - 2;
  std::vector<Interval> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  std::vector<Interval> merged;
  for (const Interval& next : all) {
    if (!merged.empty() && next.first <= merged.back().second) return -1;
    if (!merged.empty() && next.first == merged.back().second + 1) {
      merged.back().second = next.second;
    } else {
      merged.push_back(next);
    }
  }
  return entry->second = intern(std::move(merged));
}

Finding check_sets(const Case& at, const RankSets& sets) {
  if (sets.intervals_read() <= at.most_instances) return std::nullopt;
  return too_large(Point::kDataFlow, at, -1,
                   "the sets of ranks that are combined have more than " +
                       std::to_string(at.most_instances) +
                       " gaps together; no more can be checked");
}

std::string RankSets::name(std::int32_t set) const {
  if (set < 0) return "nothing";
  const std::vector<Interval>& intervals = sets_[static_cast<std::size_t>(set)];
  const bool one = intervals.size() == 1 && intervals[0].first == intervals[0].second;
  std::string text = one ? "rank" : "ranks";
  for (const auto& [first, last] : intervals) {
    text += (&first == &intervals[0].first ? " " : ", ") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

Finding DataFlow::read(const Case& at, std::uint32_t node, const Instance& reader,
                       const PlaceAt& place, Value& value) {
  if (place.buffer == espalier_Buffer_INPUT) {
    value = {sets_.range(node, node), place.segment, place.block};
    return std::nullopt;
  }
  value =
      place.buffer == espalier_Buffer_SCRATCH
          ? memory_[node].scratch[static_cast<std::size_t>(place.slot)]
          : memory_[node].output[static_cast<std::size_t>(place.segment * at.blocks + place.block)];
  if (value.ranks < 0) {
    return found(Point::kDataFlow, at, node, &reader,
                 place_name(place) + " is read, but nothing has been written to it");
  }
  if (value.segment != place.segment || value.block != place.block) {
    PlaceAt holds = place;
    holds.segment = value.segment;
    holds.block = value.block;
    return found(Point::kDataFlow, at, node, &reader,
                 place_name(place) + " holds " + block_name(holds) + " there; it must hold " +
                     block_name(place));
  }
  return std::nullopt;
}

void DataFlow::write(const Case& at, std::uint32_t node, const PlaceAt& place, std::int32_t ranks) {
  Value& value =
      place.buffer == espalier_Buffer_SCRATCH
          ? memory_[node].scratch[static_cast<std::size_t>(place.slot)]
          : memory_[node].output[static_cast<std::size_t>(place.segment * at.blocks + place.block)];
  value = {ranks, place.segment, place.block};
}

Finding DataFlow::operate(const Case& at, std::uint32_t node, const Instance& operation) {
  Value left, right;
  if (Finding finding = read(at, node, operation, operation.a, left)) return finding;
  std::int32_t ranks = left.ranks;
  if (operation.kind == espalier_Kind_COMBINE) {
    if (Finding finding = read(at, node, operation, operation.b, right)) return finding;
    const bool ordered = !at.common->needs_commutative;
    ranks = sets_.combine(left.ranks, right.ranks, ordered);
    if (ranks < 0) {
      return found(Point::kDataFlow, at, node, &operation,
                   sets_.why_not_combined(left.ranks, right.ranks, ordered));
    }
    if (Finding finding = check_sets(at, sets_)) return finding;
  }
  write(at, node, operation.into, ranks);
  return std::nullopt;
}

Finding DataFlow::check(const Case& at) {
  struct Message {
    std::int64_t from;
    std::int32_t ranks;
  };
  const std::size_t nodes = at.instances.size();
  std::vector<std::vector<Message>> inbox(nodes);
  std::vector<std::size_t> begin(nodes, 0), end(nodes, 0);
  memory_.assign(nodes, {});
  for (std::size_t node = 0; node < nodes; ++node) {
    std::int64_t slots = 0;
    for (const Instance& instance : at.instances[node]) {
      for (const PlaceAt* place : {&instance.into, &instance.a, &instance.b}) {
        if (place->buffer == espalier_Buffer_SCRATCH) slots = std::max(slots, place->slot + 1);
      }
    }
    memory_[node].scratch.resize(static_cast<std::size_t>(slots));
    memory_[node].output.resize(static_cast<std::size_t>(at.common->segments) *
                                static_cast<std::size_t>(at.blocks));
  }
  for (std::int64_t step = 0; step < at.steps(); ++step) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::vector<Instance>& all = at.instances[node];
      begin[node] = end[node];
      while (end[node] < all.size() && all[end[node]].step == step) ++end[node];
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != espalier_Kind_SEND) continue;
        Value value;
        if (Finding finding = read(at, node, all[k], all[k].a, value)) return finding;
        inbox[static_cast<std::size_t>(all[k].peer)].push_back({node, value.ranks});
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::vector<Instance>& all = at.instances[node];
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != espalier_Kind_RECEIVE) continue;
        const auto message = std::find_if(inbox[node].begin(), inbox[node].end(),
                                          [&](const Message& m) { return m.from == all[k].peer; });
        write(at, node, all[k].into, message->ranks);  // the matching was proved before
      }
      inbox[node].clear();
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != espalier_Kind_COMBINE && all[k].kind != espalier_Kind_COPY) continue;
        if (Finding finding = operate(at, node, all[k])) return finding;
      }
    }
  }
  return check_results(at);
}

Finding DataFlow::check_results(const Case& at) {
  const Program& common = *at.common;
  const bool broadcast = common.collective == espalier_Collective_BROADCAST;
  const std::int32_t wanted = wanted_result(common, sets_);
  for (std::uint32_t node = 0; node < at.instances.size(); ++node) {
    if (broadcast && node == common.root) continue;
    if (common.collective == espalier_Collective_REDUCE && node != common.root) continue;
    for (std::int64_t segment = 0; segment < common.segments; ++segment) {
      for (std::int64_t block = 0; block < at.blocks; ++block) {
        if (Finding finding = check_result(at, node, segment, block, wanted)) return finding;
      }
    }
  }
  return std::nullopt;
}

Finding DataFlow::check_result(const Case& at, std::uint32_t node, std::int64_t segment,
                               std::int64_t block, std::int32_t wanted) {
  const Value& value = memory_[node].output[static_cast<std::size_t>(segment * at.blocks + block)];
  if (value.ranks == wanted && value.segment == segment && value.block == block) {
    return std::nullopt;
  }
  return wrong_result(at, sets_, node, segment, block, value.ranks, wanted);
}

std::int32_t wanted_result(const Program& common, RankSets& sets) {
  return common.collective == espalier_Collective_BROADCAST ? sets.range(common.root, common.root)
                                                            : sets.range(0, common.ranks - 1);
}

Counterexample wrong_result(const Case& at, const RankSets& sets, std::uint32_t node,
                            std::int64_t segment, std::int64_t block, std::int32_t ranks,
                            std::int32_t wanted) {
  PlaceAt place;
  place.buffer = espalier_Buffer_OUTPUT;
  place.segment = segment;
  place.block = block;
  Counterexample example = found(Point::kDataFlow, at, node, nullptr,
                                 place_name(place) + " ends with the data of " + sets.name(ranks) +
                                     "; it must be that of " + sets.name(wanted));
  example.segment = segment;
  example.block = block;
  return example;
}

}  // namespace espalier::verify
