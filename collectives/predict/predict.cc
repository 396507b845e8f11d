#include "collectives/predict/predict.h"

#include <algorithm>
#include <numeric>

#include "collectives/schedule/expand.h"

namespace espalier::predict {
namespace {

// Blocks that are replayed before the time per block is taken, and over which it is taken. Nodes of
// a window of W steps settle after some W steps.
constexpr std::int64_t kSettlingBlocks = 24, kMeasuredBlocks = 24;

// The blocks after which everything that depends on N repeats; at most kMaxFieldWindow squared.
std::int64_t block_period(const Program& program) {
  std::int64_t period = std::max<std::int64_t>(1, program.residue_mod);
  for (std::uint32_t i = 0; i < program.counts_count; ++i) {
    const auto e = static_cast<std::int64_t>(std::max<std::uint32_t>(1, program.counts[i].e));
    const std::int64_t both = std::lcm(period, e);
    if (both <= 4096) period = both;
  }
  return period;
}

// The layout of a message of `blocks` whole blocks per segment.
Layout whole_blocks(const Layout& layout, std::int64_t blocks) {
  Layout fewer = layout;
  fewer.blocks = static_cast<std::uint32_t>(blocks);
  fewer.segment_elements = layout.block_elements * fewer.blocks;
  fewer.count = fewer.segment_elements * layout.segments;
  return fewer;
}

std::uint64_t steps_of(const Program& program, std::int64_t blocks) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, count_value(program.counts[program.steps_ref], blocks)));
}

// The time of a message that finds the buckets full. Only half of one counts: between hosts whose
// bursts are 10,000 bytes, a chain is slower with blocks of 6 KiB than with blocks of 4 KiB.
Picoseconds first_send_time(const LinkCost& cost, std::uint64_t bytes) {
  const std::uint64_t free = std::min(bytes, cost.burst_bytes / 2);
  return cost.send_time(bytes) - per_byte(cost.line(bytes).beta_fs, free);
}

}  // namespace

StepLengths::StepLengths(std::uint32_t nodes, const ProgramOf& program) {
  bool has_runs = false;
  for (std::uint32_t node = 0; node < nodes && !has_runs; ++node) {
    const Program& one = program(node);
    for (std::uint32_t i = 0; i < one.actions_count; ++i) {
      has_runs = has_runs || (one.actions[i].has_a && one.actions[i].a.segment_count > 1);
    }
  }
  if (!has_runs) return;
  for (std::uint32_t node = 0; node < nodes; ++node) {  // N = 1: rule 10
    for (const Instance& instance : expand(program(node), 1)) {
      if (instance.kind != ActionKind::kSend) continue;
      const auto step = static_cast<std::size_t>(instance.step);
      if (step >= longest_.size()) longest_.resize(step + 1, 1);
      longest_[step] = std::max(longest_[step], instance.a.segment_count);
    }
  }
}

Picoseconds StepLengths::time(const Program& first, const Layout& layout,
                              const LinkCost& cost) const {
  const std::uint64_t block = slot_bytes(layout);
  const std::uint64_t steps = steps_of(first, layout.blocks);
  const std::uint32_t ticks = std::max<std::uint32_t>(1, first.send_ticks);
  if (longest_.empty()) {
    const std::uint64_t twice = steps_of(first, 2 * std::int64_t{layout.blocks});
    const std::uint64_t filling = 2 * steps - std::clamp(twice, steps, 2 * steps);
    const std::uint64_t carried = times(block, steps - filling);
    const Picoseconds carrying =
        times(cost.send_time(block), steps - filling) -
        per_byte(cost.line(block).beta_fs, std::min(carried, cost.burst_bytes));
    const Picoseconds all = carrying + times(first_send_time(cost, block), filling);
    return std::min(all, kMaxPrediction) / ticks;
  }
  Picoseconds all = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::uint64_t segments = step < longest_.size() ? longest_[step] : 1;
    all = std::min(all + first_send_time(cost, times(block, segments)), kMaxPrediction);
  }
  return all / ticks;
}

Picoseconds by_steps(std::uint32_t nodes, const ProgramOf& program, const Layout& layout,
                     const LinkCost& cost) {
  const StepLengths lengths(nodes, program);
  return lengths.time(program(0), layout, cost);
}

Prediction predict(const topology::Topology& topology, const Programs& programs,
                   const Layout& layout, const Model& model, const Conditions& conditions) {
  const std::int64_t blocks = layout.blocks;
  const std::int64_t period = block_period(programs.front());
  const auto whole_periods = [period](std::int64_t some) {
    return (some + period - 1) / period * period;
  };
  const auto replayed = [&](const Layout& of) {
    return replay(topology, programs, of, model, conditions);
  };
  // The pipeline fills first: the steps of one period of blocks.
  std::int64_t settling = std::max(kSettlingBlocks, phase_steps(programs.front(), period));
  std::int64_t measured = kMeasuredBlocks;
  const auto last = [&] { return whole_periods(settling) + whole_periods(measured); };
  if (blocks <= last()) {
    if (const auto time = replayed(layout)) return {*time, false};
  }
  while (settling > 1 && instances(programs, last()) > conditions.max_instances) {
    settling /= 2;
    measured = std::max<std::int64_t>(1, measured / 2);
  }
  if (blocks > last()) {
    const std::int64_t rest = blocks % period;
    const std::int64_t few = whole_periods(settling) + rest, step = whole_periods(measured);
    const auto short_time = replayed(whole_blocks(layout, few));
    const auto long_time = replayed(whole_blocks(layout, few + step));
    if (short_time && long_time) {
      const Picoseconds more = *long_time > *short_time ? *long_time - *short_time : 0;
      const auto periods = static_cast<std::uint64_t>((blocks - few) / step);
      const auto remainder = static_cast<std::uint64_t>((blocks - few) % step);
      const Picoseconds added =
          times(more, periods) + times(more, remainder) / static_cast<std::uint64_t>(step);
      return {std::min(*short_time + added, kMaxPrediction), false};
    }
  }
  const LinkCost cost =
      step_cost(model, topology, slot_bytes(layout), ranks_on_host(topology, conditions));
  const auto program = [&programs](std::uint32_t node) -> const Program& { return programs[node]; };
  return {by_steps(static_cast<std::uint32_t>(programs.size()), program, layout, cost), true};
}

}  // namespace espalier::predict
