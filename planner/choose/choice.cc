#include "planner/choose/choice.h"

#include <algorithm>
#include <cmath>

#include "base/try.h"
#include "collectives/predict/block_rules.h"
#include "planner/make/blocks.h"
#include "planner/make/bound.h"
#include "planner/workload/workload.h"

namespace espalier::planner {
namespace {

// Instances of a replay: some milliseconds.
constexpr std::uint64_t kMaxReplayed = 1 << 18;
// Candidates are replayed if their steps take at most this many times the best replayed time.
constexpr predict::Picoseconds kWorthReplaying = 2;

// The most blocks that must pass one port or link one after the other.
std::uint64_t blocks_through_one_port(const std::vector<verify::LowerBound>& bounds,
                                      std::int64_t blocks) {
  std::int64_t most = 0;
  for (const verify::LowerBound& bound : bounds) most = std::max(most, bound.b * blocks / bound.d);
  return static_cast<std::uint64_t>(most);
}

}  // namespace

Choice::Choice(ChoiceRequest request) : request_(std::move(request)) {
  request_.conditions.op = request_.op;
  request_.conditions.max_instances = kMaxReplayed;
  candidates_ = make_candidates(request_);
}

Result<Choice> Choice::make(ChoiceRequest request) {
  Choice choice(std::move(request));
  if (std::any_of(choice.candidates_.begin(), choice.candidates_.end(),
                  [](const Candidate& candidate) { return candidate.dropped.empty(); })) {
    return choice;
  }
  return fail(choice.error());
}

// Why every candidate is dropped.
Error Choice::error() const {
  // The named algorithm itself is refused, whatever its run length.
  if (request_.plan.algorithm != nullptr && is_chosen(request_.plan)) {
    if (const auto named = fit_named(request_); !named) return named.error();
  }
  std::string why;
  for (const Candidate& candidate : candidates_) {
    if (why.empty()) why = "; " + candidate.name + ": " + candidate.dropped;
  }
  return {std::string("no algorithm can do ") + collective_name(request_.plan.collective) + " on " +
          request_.plan.topology->title() + " as asked" + why};
}

Result<Layout> Choice::layout_for(std::size_t candidate, std::uint64_t bytes) const {
  reference::ReferenceInput what;
  const Program& first = candidates_[candidate].programs.front();
  what.collective = first.collective;
  what.ranks = first.ranks;
  what.op = request_.op;
  what.bytes = bytes;
  ESPALIER_TRY(reference::check_whole_elements(what));
  return layout_of(first, what);
}

Estimate Choice::estimate(std::size_t number, const Layout& layout) const {
  const Candidate& candidate = candidates_[number];
  const Program& first = candidate.programs.front();
  const predict::LinkCost cost = predict::step_cost(
      request_.model, *candidate.schedule->topology, slot_bytes(layout),
      predict::ranks_on_host(*candidate.schedule->topology, request_.conditions));
  return {number, layout.blocks, phase_steps(first, layout.blocks),
          candidate.lengths->time(first, layout, cost), true};
}

// The replayed time, and what messages of several peers do to each other.
predict::Picoseconds Choice::crowded(const Candidate& candidate, const Layout& layout,
                                     predict::Picoseconds time) const {
  const predict::Crowding& crowding = request_.model.crowding;
  const std::uint64_t segment = layout.segment_elements * layout.element_bytes;
  // The shorter a message is than a block, the less it delays others.
  const std::uint64_t block = std::max<std::uint32_t>(1, crowding.max_block_bytes);
  const std::uint64_t delaying = std::min(segment * layout.segments, block);
  auto of_block =
      static_cast<std::uint64_t>(crowding.fan_in_permille * std::sqrt(candidate.crowd.fan_in));
  // Between eight and sixteen hosts, an all-to-all with the short window took 5 to 15 % less time.
  const bool in_turn =
      candidate.crowd.is_exchange && candidate.programs.front().window <= kShortWindow;
  if (in_turn) of_block -= of_block / 8;
  const std::uint64_t permille = of_block * delaying / block;
  const predict::LinkCost& cost =
      predict::slowest(request_.model, *candidate.schedule->topology, segment);
  const predict::Picoseconds carried =
      predict::per_byte(cost.line(segment).beta_fs, segment * candidate.crowd.segments);
  const predict::Picoseconds more = predict::times(time / 1000, permille) +
                                    predict::times(carried / 1000, crowding.carried_permille);
  return std::min(time + more, predict::kMaxPrediction);
}

void Choice::replay(const Layout& layout, Estimate& estimate) const {
  const Candidate& candidate = candidates_[estimate.candidate];
  if (!candidate.has_all_programs) return;
  const predict::Prediction found =
      espalier::predict::predict(*candidate.schedule->topology, candidate.programs, layout,
                                 request_.model, request_.conditions);
  estimate.time = crowded(candidate, layout, found.time);
  estimate.is_by_steps = found.is_by_steps;
}

void Choice::tune(std::uint64_t bytes, std::span<Estimate> estimates) const {
  const predict::Tuning* runs = tuning();
  if (runs == nullptr) return;
  for (Estimate& one : estimates) {
    one.time = runs->tuned(candidates_[one.candidate].name, bytes, one.time);
  }
}

Result<Estimate> Choice::predict(std::size_t candidate, std::uint64_t bytes) const {
  ESPALIER_TRY_TO(const auto layout, layout_for(candidate, bytes));
  Estimate one = estimate(candidate, layout);
  replay(layout, one);
  tune(bytes, {&one, 1});
  return one;
}

std::uint32_t Choice::sharing(const topology::Topology& topology) const {
  return request_.model.ranks_per_core(predict::ranks_on_host(topology, request_.conditions));
}

// The least time that the lower bounds leave to schedules with these segments and links, for every
// N. A node sends the next message when its port is free, and after o. For N from `blocks` to a
// little more, no schedule has fewer steps than for `blocks`, and no block is shorter than the
// shortest of them.
predict::Picoseconds Choice::bound_of(const Candidate& candidate, std::uint64_t bytes) const {
  if (candidate.bounds.empty()) return 0;
  const predict::LinkCost& cost =
      predict::fastest(request_.model, *candidate.schedule->topology, 0);
  OwnedProgram program = candidate.programs.front();
  const bool cuts = cuts_messages(program);
  predict::set_block_rules({{0, 0}}, program);
  const std::uint64_t size = std::max(1u, element_bytes(request_.op));
  Layout layout;
  if (make_layout(program, bytes / size, static_cast<std::uint32_t>(size), layout) != Status::kOk) {
    return 0;
  }
  const auto send_time = [&](std::uint64_t block) {
    return std::max(cost.send_time(block), request_.model.overhead_time(block));
  };
  const std::uint64_t segment = layout.segment_elements * layout.element_bytes;
  predict::Picoseconds least = predict::kMaxPrediction;
  for (std::uint64_t blocks = 1;;) {
    const std::uint64_t next = cuts ? blocks + std::max<std::uint64_t>(1, blocks / 64) : blocks + 1;
    const std::uint64_t block = segment / (next - 1);
    const auto count = static_cast<std::int64_t>(blocks);
    const auto steps = static_cast<std::uint64_t>(bound_steps(candidate.bounds, program, count));
    const predict::Picoseconds by_steps = predict::times(send_time(block), steps);
    const std::uint64_t volume = block * blocks_through_one_port(candidate.volume_bounds, count);
    const predict::Picoseconds by_volume = cost.least_time(volume, block, steps);
    least = std::min(least, std::max(by_steps, by_volume) / std::max(1u, program.send_ticks));
    const bool shorter = cuts && block > 0;
    const predict::Picoseconds start_ups = predict::times(send_time(0), steps);
    if (!shorter || start_ups / std::max(1u, program.send_ticks) > least) return least;
    blocks = next;
  }
}

Result<Ranking> Choice::rank(std::uint64_t bytes, bool all) const {
  Ranking ranking{.bytes = bytes};
  std::vector<Layout> layouts(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i].dropped.empty()) continue;
    ESPALIER_TRY_TO(layouts[i], layout_for(i, bytes));
    ranking.estimates.push_back(estimate(i, layouts[i]));
    const predict::Picoseconds bound = bound_of(candidates_[i], bytes);
    ranking.bound = ranking.bound == 0 ? bound : std::min(ranking.bound, bound);
  }
  const auto faster = [](const Estimate& a, const Estimate& b) { return a.time < b.time; };
  std::stable_sort(ranking.estimates.begin(), ranking.estimates.end(), faster);
  // Steps alone say little where some links are faster than others, or where ranks share
  // processors: few of them may work in a step. Factors of a tuned model are of replays.
  const Candidate& first = candidates_[ranking.estimates.front().candidate];
  const topology::Topology& topology = *first.schedule->topology;
  const bool vague =
      topology.link_classes().size() > 1 || sharing(topology) > 1 || tuning() != nullptr;
  predict::Picoseconds best = predict::kMaxPrediction;
  for (Estimate& one : ranking.estimates) {
    if (!all && !vague && one.time / kWorthReplaying > best) break;
    replay(layouts[one.candidate], one);
    best = std::min(best, one.time);
  }
  tune(bytes, ranking.estimates);
  std::stable_sort(ranking.estimates.begin(), ranking.estimates.end(), faster);
  return ranking;
}

}  // namespace espalier::planner
