#include "collectives/verify/properties/data_flow.h"

#include <algorithm>
#include <string>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"

namespace espalier::verify {

Finding check_sets(const Case& at, const RankSets& sets) {
  if (sets.intervals_read() <= at.max_instances) return std::nullopt;
  return too_large(Point::kDataFlow, at, -1,
                   "the sets of ranks that are combined have more than " +
                       std::to_string(at.max_instances) + " gaps together; no more can be checked");
}

Value& DataFlow::memory(const Case& at, std::uint32_t node, const PlaceAt& place) {
  Memory& memory = memory_[node];
  if (place.buffer == espalier_Buffer_SCRATCH) {
    return memory.scratch[static_cast<std::size_t>(place.slot)];
  }
  return memory.output[static_cast<std::size_t>(place.segment * at.blocks + place.block)];
}

Finding DataFlow::read(const Case& at, std::uint32_t node, const Instance& reader,
                       const PlaceAt& place, Value& value) {
  if (place.buffer == espalier_Buffer_INPUT) {
    value = {RankSets::range(node, node), place.segment, place.block};
    return std::nullopt;
  }
  value = memory(at, node, place);
  if (value.ranks < 0) {
    return found(Point::kDataFlow, at, node, &reader,
                 place_name(place) + " is read, but nothing has been written to it");
  }
  const bool any_segment = at.common->collective == espalier_Collective_ALL_TO_ALL;
  if ((value.segment != place.segment && !any_segment) || value.block != place.block) {
    PlaceAt holds = place;
    holds.segment = value.segment;
    holds.block = value.block;
    return found(Point::kDataFlow, at, node, &reader,
                 place_name(place) + " holds " + block_name(holds) + " there; it must hold " +
                     block_name(place));
  }
  return std::nullopt;
}

Finding DataFlow::read_run(const Case& at, std::uint32_t node, const Instance& reader,
                           const PlaceAt& place, std::vector<Value>& values) {
  values.resize(place.run);
  for (std::uint32_t part = 0; part < place.run; ++part) {
    if (Finding finding = read(at, node, reader, part_of(place, part), values[part])) {
      return finding;
    }
  }
  return std::nullopt;
}

void DataFlow::write(const Case& at, std::uint32_t node, const PlaceAt& place, Value value) {
  memory(at, node, place) = value;
  // Of routers nobody asks whom they have heard of.
  if (at.common->collective != espalier_Collective_BARRIER || node >= at.common->ranks) return;
  RankSet& heard = memory_[node].heard;
  heard = sets_.combine(heard, value.ranks, Join::kUnion);
}

Finding DataFlow::operate(const Case& at, std::uint32_t node, const Instance& operation) {
  const Join join = join_of(*at.common);
  std::vector<Value> left, right;
  if (Finding finding = read_run(at, node, operation, operation.a, left)) return finding;
  if (operation.kind == espalier_Kind_COMBINE) {
    if (Finding finding = read_run(at, node, operation, operation.b, right)) return finding;
  }
  for (std::uint32_t part = 0; part < operation.into.run; ++part) {
    Value result = left[part];
    if (operation.kind == espalier_Kind_COMBINE) {
      result.ranks = sets_.combine(left[part].ranks, right[part].ranks, join);
      if (result.ranks < 0) {
        return found(Point::kDataFlow, at, node, &operation,
                     sets_.why_not_combined(left[part].ranks, right[part].ranks, join));
      }
    }
    write(at, node, part_of(operation.into, part), result);
  }
  return check_sets(at, sets_);
}

void DataFlow::clear(const Case& at) {
  const std::size_t nodes = at.instances.size();
  memory_.assign(nodes, {});
  for (std::uint32_t node = 0; node < nodes; ++node) {
    memory_[node].scratch.resize(used_slots(at.instances[node]));
    if (node >= at.common->ranks) continue;
    memory_[node].heard = RankSets::range(node, node);
    memory_[node].output.resize(static_cast<std::size_t>(at.common->segments) *
                                static_cast<std::size_t>(at.blocks));
  }
}

Finding DataFlow::check(const Case& at) {
  struct Message {
    std::int64_t from;
    std::vector<Value> values;
  };
  const std::size_t nodes = at.instances.size();
  std::vector<std::vector<Message>> inbox(nodes);  // in the order of their sending
  std::vector<std::size_t> begin(nodes, 0), end(nodes, 0);
  clear(at);
  for (std::int64_t step = 0; step < at.steps(); ++step) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::vector<Instance>& all = at.instances[node];
      begin[node] = end[node];
      while (end[node] < all.size() && all[end[node]].step == step) ++end[node];
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != espalier_Kind_SEND) continue;
        Message message{node, {}};
        if (Finding finding = read_run(at, node, all[k], all[k].a, message.values)) return finding;
        inbox[static_cast<std::size_t>(all[k].peer)].push_back(std::move(message));
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::vector<Instance>& all = at.instances[node];
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != espalier_Kind_RECEIVE) continue;
        // The link's first: the matching was proved before.
        const auto message = std::find_if(inbox[node].begin(), inbox[node].end(),
                                          [&](const Message& m) { return m.from == all[k].peer; });
        for (std::uint32_t part = 0; part < all[k].into.run; ++part) {
          write(at, node, part_of(all[k].into, part), message->values[part]);
        }
        inbox[node].erase(message);
        if (Finding finding = check_sets(at, sets_)) return finding;
      }
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != espalier_Kind_COMBINE && all[k].kind != espalier_Kind_COPY) continue;
        if (Finding finding = operate(at, node, all[k])) return finding;
      }
    }
  }
  return check_results(at);
}

Finding DataFlow::check_results(const Case& at) {
  if (at.common->collective == espalier_Collective_BARRIER) return check_barrier(at);
  Wanted wanted(*at.common);
  for (std::uint32_t node = 0; node < at.common->ranks; ++node) {
    const auto [first, end] = wanted.segments(node);
    for (std::int64_t segment = first; segment < end; ++segment) {
      const RankSet ranks = wanted.ranks(node, segment);
      for (std::int64_t block = 0; block < at.blocks; ++block) {
        if (Finding finding = check_result(at, node, segment, block, ranks)) return finding;
      }
    }
  }
  return std::nullopt;
}

// What a rank has ever received has come before it ends.
Finding DataFlow::check_barrier(const Case& at) {
  const RankSet all = RankSets::range(0, at.common->ranks - 1);
  for (std::uint32_t node = 0; node < at.common->ranks; ++node) {
    if (memory_[node].heard == all) continue;
    return not_heard(at, sets_, node, memory_[node].heard);
  }
  return std::nullopt;
}

Counterexample not_heard(const Case& at, const RankSets& sets, std::uint32_t node, RankSet heard) {
  return found(Point::kDataFlow, at, node, nullptr,
               "at its end it has heard of " + sets.name(heard) + "; it must have heard of " +
                   sets.name(RankSets::range(0, at.common->ranks - 1)));
}

Finding DataFlow::check_result(const Case& at, std::uint32_t node, std::int64_t segment,
                               std::int64_t block, RankSet wanted) {
  PlaceAt place;
  place.buffer = espalier_Buffer_OUTPUT;
  place.segment = segment;
  place.block = block;
  const Value& value = memory(at, node, place);
  const bool for_all = at.common->collective == espalier_Collective_ALL_TO_ALL;
  if (value.ranks == wanted && value.segment == (for_all ? node : segment) &&
      value.block == block) {
    return std::nullopt;
  }
  return wrong_result(at, sets_, node, segment, block, value, wanted);
}

Counterexample wrong_result(const Case& at, const RankSets& sets, std::uint32_t node,
                            std::int64_t segment, std::int64_t block, const Value& value,
                            RankSet wanted) {
  PlaceAt place;
  place.buffer = espalier_Buffer_OUTPUT;
  place.segment = segment;
  place.block = block;
  // In an all-to-all a rank's data for another may have come to the wrong one.
  const bool astray = at.common->collective == espalier_Collective_ALL_TO_ALL && value.ranks >= 0;
  Counterexample example =
      found(Point::kDataFlow, at, node, nullptr,
            place_name(place) + " ends with the data of " + sets.name(value.ranks) +
                (astray ? " for rank " + std::to_string(value.segment) : "") +
                "; it must be that of " + sets.name(wanted) + (astray ? " for it" : ""));
  example.segment = segment;
  example.block = block;
  return example;
}

}  // namespace espalier::verify
