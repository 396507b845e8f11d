// Stages L and L-1 of the all-to-all `leaf-single` together, where a router of level L > 1 has two
// branches. leaf_single.cc has the other stages, and defines M, m, runs and steps.
//
// The branches of the router are v0 and v1. Each has k' branches w0, w1, .. of m' = m/k' leaves;
// M' = m'^2. A message of stage L goes from leaf x of branch w of one v to leaf y of branch w' of
// the other. Its number e among the messages from its v is e = k' M' w + M' w' + m' x + y, or, if
// k' = 2, the same with 1-w' instead of w'.
//  * v0 sends up in steps t = 2e, and v1 in steps t = 2e + 1; the blocks come down two steps later.
//    So a router c below sends up if its step is c mod 2, and otherwise down.
//  * All differences between going up and coming down are even, so the other parity never matters.
//  * Counted as if v_c sent only up, it is busy with stage L in steps 0 .. 2M + 1, except for steps
//    1-c and 2M + c.
//  * Stages L-2 and L-3 inside of w_j take place when the blocks that come down are for later
//    branches, and w_j does not go up: from e = (j+1) M' on (j M' if k' = 2), or k' M' later if
//    j = 0. At least M' messages e, and so 2M' steps, follow without w_j. The stages need at most
//    M' steps, and 2L-2 before and at most 2L-6 after, and M' >= 4^(L-2) >= 4L-8.
//
// Stage L-1 if k' > 2:
//  * Message q of it is in step t = 2M + q, except for q = 0 in step 1-c and q = 1 in step 2M + c.
//  * Its first blocks go up from w0, where the last blocks of stage L came down 2 (k'-1) M' steps
//    before, and 2 (k'-1) M' >= 4^(L-1) >= 2L-2. The other branches follow (k'-1) M' steps after
//    one another, and the last blocks of stage L to them only 2M' steps after one another.
//  * The blocks of messages 0 and 1 come down in w1 (in w1 and w2 if m' = 1), before those of stage
//    L, because they turn one level lower.
//  * The last run goes to w_(k'-2), so w0 is ready for the next block.
//
// Stage L-1 if k' = 2: a message goes from leaf x of one branch w to leaf y of the other. Its
// number is q = x m' + y, 0 <= q < M'.
//  * In steps t = c mod 2 of v_c follow the messages from w0 to w1: t = 2M + 2q + c. The first
//    messages of the next block then go up from w0.
//  * In the other steps follow the messages from w1 to w0, when the last blocks have come down to
//    w0: t = 2M + 2q + 1 - c, except that the first is in the step before all others, t = 1 - c.

#include "collectives/search/fat_tree/leaf_single.h"

namespace espalier::searched {

// The router where stage L of a pair turns.
void LeafExchange::add_pair_top(const Stage& stage) {
  const auto round = static_cast<std::uint32_t>(2 * stage.run());
  const LeafTimes times = repeated(stage, LeafTimes(round, stage.first, 1), round, kNotEarly);
  forward(times, stage.level, digit(0, 0, 1, 2), digit(0, 1, 1, 2));
}

// Stage L of a pair at v0 or v1.
void LeafExchange::add_pair_branch(const Stage& stage) {
  const Pair w = pair(stage);
  const auto all = static_cast<std::uint32_t>(stage.run());
  const auto run = static_cast<std::uint32_t>(w.run());
  const std::uint8_t parent = builder_.constant(node_.parent_link());
  const auto stream = [&](std::int64_t first) {
    return repeated(stage, LeafTimes(all, stage.first + first, 2), 2 * stage.run(), kNotEarly);
  };
  forward(stream(stage.branch), node_.level, digit(0, 0, all / w.k, w.k), parent);
  forward(stream(1 - stage.branch), stage.level + 1, parent, digit(0, w.turn, run, w.k));
}

// Stage L of a pair at a node inside of a branch w.
void LeafExchange::add_pair_below(const Stage& stage) {
  const Pair w = pair(stage);
  const std::uint32_t c = stage.branch, part = node_.leaves * w.m;
  const std::int64_t run = w.run(), from_w = w.k * run;
  const std::uint32_t other = origin(stage, 1 - c);
  const std::int64_t up = stage.first + c + 2 * (w.branch * from_w + std::int64_t{w.inside} * w.m);
  const std::int64_t down = stage.first + 1 - c + 2 * (w.place() * run + w.inside);
  const auto add_parts = [&](LeafTimes out, std::int64_t rising, const Leaves& to, LeafTimes in,
                             std::int64_t falling, const Leaves& from) {
    rise(repeated(stage, out, 2 * rising, kNotEarly), w.m, to);
    in.add(2 * (std::int64_t{w.m} - node_.leaves), node_.leaves);
    if (falling > run) in.add(2 * (from_w - run), part);
    fall(repeated(stage, in, 2 * falling, kNotEarly), stage.level, from);
  };
  if (stage.level > split_levels_) {
    LeafTimes out(w.k * part, up, 2);
    add_parts(out.add(2 * (run - part), part), from_w, {other, w.turn * w.m, stage.m},
              LeafTimes(w.k * part, down, 2), w.k * from_w, {other, 0, stage.m});
    return;
  }
  for (std::uint32_t at = 0; at < w.k; ++at) {
    add_parts(LeafTimes(part, up + 2 * at * run, 2), part,
              {other + (at + w.turn) % w.k * w.m, 0, w.m},
              LeafTimes(part, down + 2 * at * from_w, 2), run, {other + at * w.m, 0, w.m});
  }
}

// The messages from w0 or w1, as if they were a stage.
LeafExchange::Stage LeafExchange::half(const Stage& stage, std::uint32_t from) {
  const std::int64_t begin = 2 * stage.run();
  Stage half = stage;
  half.first += begin + (from == 0 ? stage.branch : 1 - stage.branch);
  if (from == 1) half.early[0] = begin;
  return half;
}

// Stage L-1 of a pair, of arity 2, at v0 or v1.
void LeafExchange::add_halves(const Stage& stage) {
  const auto run = static_cast<std::uint32_t>(pair(stage).run());
  for (std::uint32_t from = 0; from < 2; ++from) {
    const Stage now = half(stage, from);
    forward(repeated(now, LeafTimes(run, now.first, 2), 2 * std::int64_t{run}, kNotEarly),
            node_.level, builder_.constant(from), builder_.constant(1 - from));
  }
}

// Stage L-1 of a pair, of arity 2, at a node inside of w0 or w1.
void LeafExchange::add_halves_below(const Stage& stage) {
  const Pair w = pair(stage);
  const std::uint32_t leaves = node_.leaves, round = leaves * w.m;
  const Leaves sibling = {origin(stage, stage.branch) + (1 - w.branch) * w.m, 0, w.m};
  const Stage rising = half(stage, w.branch), falling = half(stage, 1 - w.branch);
  const LeafTimes out(round, rising.first + 2 * std::int64_t{w.inside} * w.m, 2);
  rise(repeated(rising, out, 2 * std::int64_t{round}, kNotEarly), w.m, sibling);
  LeafTimes in(round, falling.first + 2 * std::int64_t{w.inside}, 2);
  in.add(2 * (std::int64_t{w.m} - leaves), leaves);
  fall(repeated(falling, in, 2 * w.run(), kNotEarly), stage.level - 1, sibling);
}

void LeafExchange::add_pair(const Stage& stage) {
  if (node_.level == stage.level) return add_pair_top(stage);
  const bool branch = node_.level + 1 == stage.level;
  branch ? add_pair_branch(stage) : add_pair_below(stage);
  if (pair(stage).k == 2) return branch ? add_halves(stage) : add_halves_below(stage);
  Stage below = this->stage(stage.level - 1, stage.first + 2 * stage.run());
  below.early[0] = 2 * stage.run() - 1 + stage.branch;
  below.early[1] = 1 - stage.branch;
  add_stage(below);
}

}  // namespace espalier::searched
