#include "tools/choose/choice.h"

#include <algorithm>

#include "collectives/predict/block_rules.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/report/bound.h"

namespace espalier::tools {
namespace {

// Instances of a replay: some milliseconds.
constexpr std::uint64_t kMaxReplayed = 1 << 18;
// Candidates are replayed if their steps take at most this many times the best replayed time.
constexpr predict::Picoseconds kWorthReplaying = 2;

}  // namespace

Choice::Choice(ChoiceRequest request) : request_(std::move(request)), op_(operator_of(request_)) {
  request_.conditions.op = op_;
  request_.conditions.max_instances = kMaxReplayed;
  candidates_ = make_candidates(request_);
  if (candidates_.empty()) (void)select_algorithm(request_.selection);  // names the error
  if (std::any_of(candidates_.begin(), candidates_.end(),
                  [](const Candidate& candidate) { return candidate.dropped.empty(); })) {
    return;
  }
  std::string why;
  for (const Candidate& candidate : candidates_) {
    if (why.empty()) why = "; " + candidate.name + ": " + candidate.dropped;
  }
  bad_input("no algorithm can do " + one_line(request_.selection.collective) + " on " +
            one_line(request_.selection.topology) + " as asked" + why);
}

Layout Choice::layout_for(const Candidate& candidate, std::uint64_t bytes) const {
  reference::ReferenceInput what;
  const Program& first = candidate.programs.front();
  what.collective = first.collective;
  what.ranks = first.ranks;
  what.op = op_;
  what.bytes = bytes;
  or_bad_input(reference::check_whole_elements(what));
  return layout_of(first, what);
}

Estimate Choice::estimate(std::size_t number, std::uint64_t bytes) const {
  const Candidate& candidate = candidates_[number];
  const Program& first = candidate.programs.front();
  const Layout layout = layout_for(candidate, bytes);
  const predict::LinkCost& cost =
      predict::slowest(request_.model, *candidate.selected->topology, slot_bytes(layout));
  return {number, layout.blocks, phase_steps(first, layout.blocks),
          candidate.lengths->time(first, layout, cost), true};
}

void Choice::replay(const Layout& layout, Estimate& estimate) const {
  const Candidate& candidate = candidates_[estimate.candidate];
  if (!candidate.has_all_programs) return;
  const predict::Prediction found =
      espalier::predict::predict(*candidate.selected->topology, candidate.programs, layout,
                                 request_.model, request_.conditions);
  estimate.time = found.time;
  estimate.is_by_steps = found.is_by_steps;
}

Estimate Choice::predict(std::size_t candidate, std::uint64_t bytes) const {
  Estimate one = estimate(candidate, bytes);
  replay(layout_for(candidates_[candidate], bytes), one);
  return one;
}

// The least time that the lower bounds on steps leave, over all lengths of blocks.
predict::Picoseconds Choice::bound_of(const Candidate& candidate, std::uint64_t bytes) const {
  if (candidate.bounds.empty()) return 0;
  const predict::LinkCost& cost =
      predict::slowest(request_.model, *candidate.selected->topology, 0);
  OwnedProgram program = candidate.programs.front();
  predict::Picoseconds least = predict::kMaxPrediction;
  const bool cuts = std::any_of(program.blocks, program.blocks + program.blocks_count,
                                [](const BlockRule& rule) { return rule.block_bytes != 0; });
  for (std::uint64_t length = 64; length <= UINT32_MAX; length *= 2) {
    predict::set_block_rules({{0, cuts ? static_cast<std::uint32_t>(length) : 0}}, program);
    Layout layout;
    const std::uint64_t size = std::max(1u, element_bytes(op_));
    if (make_layout(program, bytes / size, static_cast<std::uint32_t>(size), layout) !=
        Status::kOk) {
      continue;
    }
    const std::int64_t steps = bound_steps(candidate.bounds, program, layout.blocks);
    // The last block of a segment may be shorter.
    const std::uint64_t block = layout.segment_elements / layout.blocks * layout.element_bytes;
    least = std::min(least,
                     predict::times(cost.send_time(block),
                                    static_cast<std::uint64_t>(std::max<std::int64_t>(0, steps))) /
                         std::max(1u, program.send_ticks));
    if (!cuts || layout.blocks == 1) break;
  }
  return least;
}

Ranking Choice::rank(std::uint64_t bytes, bool all) const {
  Ranking ranking;
  ranking.bytes = bytes;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i].dropped.empty()) continue;
    ranking.estimates.push_back(estimate(i, bytes));
    const predict::Picoseconds bound = bound_of(candidates_[i], bytes);
    ranking.bound = ranking.bound == 0 ? bound : std::min(ranking.bound, bound);
  }
  const auto faster = [](const Estimate& a, const Estimate& b) { return a.time < b.time; };
  std::stable_sort(ranking.estimates.begin(), ranking.estimates.end(), faster);
  predict::Picoseconds best = predict::kMaxPrediction;
  for (Estimate& one : ranking.estimates) {
    if (!all && one.time / kWorthReplaying > best) break;
    replay(layout_for(candidates_[one.candidate], bytes), one);
    best = std::min(best, one.time);
  }
  std::stable_sort(ranking.estimates.begin(), ranking.estimates.end(), faster);
  return ranking;
}

}  // namespace espalier::tools
