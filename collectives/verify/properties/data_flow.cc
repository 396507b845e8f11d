#include "collectives/verify/properties/data_flow.h"

#include <algorithm>
#include <string>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"

namespace espalier::verify {

Finding check_sets(const ExpandedSchedule& schedule, const RankSets& sets) {
  if (sets.intervals_read() <= schedule.max_instances) return std::nullopt;
  return too_large(Property::kDataFlow, schedule, -1,
                   "the sets of ranks that are combined have more than " +
                       std::to_string(schedule.max_instances) +
                       " gaps together; no more can be checked");
}

Value& DataFlow::memory(const ExpandedSchedule& schedule, std::uint32_t node,
                        const OperandAt& operand) {
  Memory& memory = memory_[node];
  if (operand.buffer == Buffer::kScratch) {
    return memory.scratch[static_cast<std::size_t>(operand.slot)];
  }
  return memory.output[static_cast<std::size_t>(operand.segment * schedule.blocks + operand.block)];
}

Finding DataFlow::read(const ExpandedSchedule& schedule, std::uint32_t node, const Instance& reader,
                       const OperandAt& operand, Value& value) {
  if (operand.buffer == Buffer::kInput) {
    value = {RankSets::range(node, node), operand.segment, operand.block};
    return std::nullopt;
  }
  value = memory(schedule, node, operand);
  if (value.ranks < 0) {
    return found(Property::kDataFlow, schedule, node, &reader,
                 operand_name(operand) + " is read, but nothing has been written to it");
  }
  const bool any_segment = schedule.common->collective == Collective::kAllToAll;
  if ((value.segment != operand.segment && !any_segment) || value.block != operand.block) {
    OperandAt holds = operand;
    holds.segment = value.segment;
    holds.block = value.block;
    return found(Property::kDataFlow, schedule, node, &reader,
                 operand_name(operand) + " holds " + block_name(holds) + " there; it must hold " +
                     block_name(operand));
  }
  return std::nullopt;
}

Finding DataFlow::read_operand(const ExpandedSchedule& schedule, std::uint32_t node,
                               const Instance& reader, const OperandAt& operand,
                               std::vector<Value>& values) {
  values.resize(operand.segment_count);
  for (std::uint32_t part = 0; part < operand.segment_count; ++part) {
    if (Finding finding = read(schedule, node, reader, part_of(operand, part), values[part])) {
      return finding;
    }
  }
  return std::nullopt;
}

void DataFlow::write(const ExpandedSchedule& schedule, std::uint32_t node, const OperandAt& operand,
                     Value value) {
  memory(schedule, node, operand) = value;
  // Only for ranks of a barrier: routers need not hear from all.
  if (schedule.common->collective != Collective::kBarrier || node >= schedule.common->ranks) return;
  RankSet& heard = memory_[node].heard;
  heard = sets_.combine(heard, value.ranks, Join::kUnion);
}

Finding DataFlow::operate(const ExpandedSchedule& schedule, std::uint32_t node,
                          const Instance& operation) {
  const Join join = join_of(*schedule.common);
  std::vector<Value> left, right;
  if (Finding finding = read_operand(schedule, node, operation, operation.a, left)) return finding;
  if (operation.kind == ActionKind::kCombine) {
    if (Finding finding = read_operand(schedule, node, operation, operation.b, right))
      return finding;
  }
  for (std::uint32_t part = 0; part < operation.into.segment_count; ++part) {
    Value result = left[part];
    if (operation.kind == ActionKind::kCombine) {
      result.ranks = sets_.combine(left[part].ranks, right[part].ranks, join);
      if (result.ranks < 0) {
        return found(Property::kDataFlow, schedule, node, &operation,
                     sets_.why_not_combined(left[part].ranks, right[part].ranks, join));
      }
    }
    write(schedule, node, part_of(operation.into, part), result);
  }
  return check_sets(schedule, sets_);
}

void DataFlow::clear(const ExpandedSchedule& schedule) {
  const std::size_t nodes = schedule.instances.size();
  memory_.assign(nodes, {});
  for (std::uint32_t node = 0; node < nodes; ++node) {
    memory_[node].scratch.resize(used_slots(schedule.instances[node]));
    if (node >= schedule.common->ranks) continue;
    memory_[node].heard = RankSets::range(node, node);
    memory_[node].output.resize(static_cast<std::size_t>(schedule.common->segments) *
                                static_cast<std::size_t>(schedule.blocks));
  }
}

Finding DataFlow::check(const ExpandedSchedule& schedule) {
  struct Message {
    std::int64_t from;
    std::vector<Value> values;
  };
  const std::size_t nodes = schedule.instances.size();
  std::vector<std::vector<Message>> inbox(nodes);  // in the order in which they are sent
  std::vector<std::size_t> begin(nodes, 0), end(nodes, 0);
  clear(schedule);
  for (std::int64_t step = 0; step < schedule.steps(); ++step) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::vector<Instance>& all = schedule.instances[node];
      begin[node] = end[node];
      while (end[node] < all.size() && all[end[node]].step == step) ++end[node];
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != ActionKind::kSend) continue;
        Message message{node, {}};
        if (Finding finding = read_operand(schedule, node, all[k], all[k].a, message.values))
          return finding;
        inbox[static_cast<std::size_t>(all[k].peer)].push_back(std::move(message));
      }
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::vector<Instance>& all = schedule.instances[node];
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != ActionKind::kReceive) continue;
        // The first message of the link: property matching was checked before.
        const auto message = std::find_if(inbox[node].begin(), inbox[node].end(),
                                          [&](const Message& m) { return m.from == all[k].peer; });
        for (std::uint32_t part = 0; part < all[k].into.segment_count; ++part) {
          write(schedule, node, part_of(all[k].into, part), message->values[part]);
        }
        inbox[node].erase(message);
        if (Finding finding = check_sets(schedule, sets_)) return finding;
      }
      for (std::size_t k = begin[node]; k < end[node]; ++k) {
        if (all[k].kind != ActionKind::kCombine && all[k].kind != ActionKind::kCopy) continue;
        if (Finding finding = operate(schedule, node, all[k])) return finding;
      }
    }
  }
  return check_results(schedule);
}

Finding DataFlow::check_results(const ExpandedSchedule& schedule) {
  if (schedule.common->collective == Collective::kBarrier) return check_barrier(schedule);
  ExpectedResults expected(*schedule.common);
  for (std::uint32_t node = 0; node < schedule.common->ranks; ++node) {
    const auto [first, end] = expected.segments(node);
    for (std::int64_t segment = first; segment < end; ++segment) {
      const RankSet ranks = expected.ranks(node, segment);
      for (std::int64_t block = 0; block < schedule.blocks; ++block) {
        if (Finding finding = check_result(schedule, node, segment, block, ranks)) return finding;
      }
    }
  }
  return std::nullopt;
}

// A rank waits for all its receives before it ends.
Finding DataFlow::check_barrier(const ExpandedSchedule& schedule) {
  const RankSet all = RankSets::range(0, schedule.common->ranks - 1);
  for (std::uint32_t node = 0; node < schedule.common->ranks; ++node) {
    if (memory_[node].heard == all) continue;
    return not_heard(schedule, sets_, node, memory_[node].heard);
  }
  return std::nullopt;
}

Counterexample not_heard(const ExpandedSchedule& schedule, const RankSets& sets, std::uint32_t node,
                         RankSet heard) {
  return found(Property::kDataFlow, schedule, node, nullptr,
               "at its end it has heard of " + sets.name(heard) + "; it must have heard of " +
                   sets.name(RankSets::range(0, schedule.common->ranks - 1)));
}

Finding DataFlow::check_result(const ExpandedSchedule& schedule, std::uint32_t node,
                               std::int64_t segment, std::int64_t block, RankSet expected) {
  const Value& value =
      memory(schedule, node, {.buffer = Buffer::kOutput, .segment = segment, .block = block});
  const bool for_all = schedule.common->collective == Collective::kAllToAll;
  if (value.ranks == expected && value.segment == (for_all ? node : segment) &&
      value.block == block) {
    return std::nullopt;
  }
  return wrong_result(schedule, sets_, node, segment, block, value, expected);
}

Counterexample wrong_result(const ExpandedSchedule& schedule, const RankSets& sets,
                            std::uint32_t node, std::int64_t segment, std::int64_t block,
                            const Value& value, RankSet expected) {
  OperandAt operand{.buffer = Buffer::kOutput, .segment = segment, .block = block};
  // In an all-to-all the data may be for another rank.
  const bool astray = schedule.common->collective == Collective::kAllToAll && value.ranks >= 0;
  Counterexample example =
      found(Property::kDataFlow, schedule, node, nullptr,
            operand_name(operand) + " ends with the data of " + sets.name(value.ranks) +
                (astray ? " for rank " + std::to_string(value.segment) : "") +
                "; it must be that of " + sets.name(expected) + (astray ? " for it" : ""));
  example.segment = segment;
  example.block = block;
  return example;
}

}  // namespace espalier::verify
