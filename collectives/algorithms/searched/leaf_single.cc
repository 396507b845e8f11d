// All-to-all (total exchange) on fat trees with one send per node and step: `leaf-single`, for at
// most 256 leaves, any capacities and one arity (others: leaf_exchange.cc). [DD96], Theorems 5 and
// 6. The paper's routers have queues (Fig. 3); here no message waits. Every program is a few loops,
// so nothing is searched.
//
// Steps: N n^2 (k-1)/k + 2h-1, because the root sends n^2 (k-1)/k messages per block. If k = 2 and
// h > 1: N 5n^2/8 + 2h-3, because each router below the root sends 5n^2/8 messages. Both are the
// minimum for N = 1. Cost: steps * (alpha + beta*m/N), where m is the bytes that one rank sends to
// another.
//
// Stage L exchanges between the branches of each router of level L. A branch has m = k^(L-1)
// leaves, and M = m^2 messages for each other branch. A message that its leaf sends in step t is
// sent by routers of level l in step t + l on its way up and in step t + 2L - l on its way down.
// The following shows that no node has two sends in a step. Steps are counted from the begin of the
// stage.
//
// k > 2 (or h = 1). The stage is runs of M steps. Run r = a (k-1) + d - 1, 0 < d < k, has the
// messages from branch a to branch b = (a + d) mod k, one per step. The message from leaf x of
// branch a to leaf y of branch b is in step t = r M + x m + y.
//  * The next run never begins in branch b, because d = k - 1 is followed by branch a + 1 = b + 2.
//    So no branch goes up while blocks still come down.
//  * Run ((c+1) mod k) (k-1) does not touch branch c. Stage L-1 inside of branch c takes place in
//    it, from step 2L-2 of the run onward, when all earlier blocks have come down. It takes
//    M (k-1)/k steps, and M/k >= 4L-6, so it ends before the next run.
//
// k = 2. Stages L and L-1 are together. The branches of the router are v0 and v1, and their
// branches are w0 and w1, of m/2 leaves each. A message of stage L goes from leaf x of branch w of
// one v to leaf y of branch w' of the other. Its number e among the messages from its v is
// e = w M/2 + (1-w') M/4 + x m/2 + y, 0 <= e < M. A message of stage L-1 goes from leaf x of one
// branch w to leaf y of the other. Its number is q = x m/2 + y, 0 <= q < M/4.
//  * v0 sends up in steps t = 2e, and v1 in steps t = 2e + 1; the blocks come down two steps later.
//    So a router c below sends up if its step is c mod 2, and otherwise down.
//  * In steps t = c mod 2 of v_c follow the messages from w0 to w1: t = 2M + 2q + c. The first
//    messages of the next block then go up from w0.
//  * In the other steps follow the messages from w1 to w0, when the last blocks have come down to
//    w0: t = 2M + 2q + 1 - c, except that the first is in the step before all others, t = 1 - c.
//  * All differences between going up and coming down are even, so the other parity never matters.
//    v_c is busy in all steps 0 .. 5M/2 - 1.
//  * Branch w0 is idle in steps M .. 3M/2 - 1, and w1 in steps M/2 .. M - 1, except that blocks
//    still come down in the first 2L-2 steps. Then stages L-2 and L-3 inside of them take place.
//
// Actions: at most 1 + 2(k-1) h per rank and 4(h-l) + 2 per router; for k = 2, 1 + 3h and
// 6(h-l) + 2.

#include <string>
#include <utility>

#include "collectives/algorithms/searched/leaf_check.h"
#include "collectives/algorithms/searched/searches.h"
#include "collectives/algorithms/searched/streams.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "espalier/base/arithmetic.h"
#include "espalier/base/limits.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kMaxExchangeLeaves = 256;

Term term(std::int64_t coef, std::int64_t add, std::uint32_t div, std::uint32_t mod = 0) {
  return {.coef = static_cast<std::int32_t>(coef),
          .mul = 1,
          .add = static_cast<std::int32_t>(add),
          .div = div,
          .mod = mod,
          .base = 0,
          .digits = 0,
          .table = 0};
}

// The steps of the messages of one kind, over all blocks: message i leaves its leaf in step
// first + coef * i + the sum of the terms.
class Times {
 public:
  Times(std::uint32_t round, std::int64_t first, std::int64_t coef)
      : round_(round), first_(first), coef_(coef) {}

  // Adds coef * floor((i + ahead) / div).
  Times& add(std::int64_t coef, std::uint32_t div, std::uint32_t ahead = 0) {
    if (div == 1) {
      coef_ += coef;
      first_ += coef * ahead;
    } else if (coef != 0) {
      terms_[count_++] = term(coef, ahead, div);
    }
    return *this;
  }

  [[nodiscard]] std::uint32_t round() const { return round_; }  // messages per block
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] std::uint8_t pace(Builder& builder) const {
    if (coef_ == 1 && count_ == 0) return 0;
    Index row{};
    row.coef = static_cast<std::int32_t>(coef_);
    return builder.index(row, terms_, count_);
  }
  [[nodiscard]] std::uint8_t block(Builder& builder) const {
    Index row{};
    row.coef = 1;
    row.div = round_;
    return builder.index(row);
  }

 private:
  std::uint32_t round_;
  std::int64_t first_, coef_;
  Term terms_[4] = {};
  std::uint32_t count_ = 0;
};

// One node's program.
class Exchange {
 public:
  Exchange(Builder& builder, const LeafNode& node, std::uint32_t arity)
      : builder_(builder), node_(node), k_(arity) {}

  void add();
  [[nodiscard]] Status finish();

 private:
  // A stage as the node takes part in it, below the router of level `level`.
  struct Stage {
    std::uint32_t level;
    std::uint32_t m;       // leaves of a branch
    std::uint32_t branch;  // of the router, with this node; 0 for the router itself
    std::uint32_t inside;  // the first leaf below this node, counted from the branch's first
    std::int64_t first;    // the first step

    [[nodiscard]] std::int64_t run() const { return std::int64_t{m} * m; }
  };

  [[nodiscard]] bool pairs() const { return k_ == 2 && node_.height > 1; }
  // Steps per block.
  [[nodiscard]] std::int64_t period() const {
    const std::int64_t run = stage(node_.height, 0).run();
    return pairs() ? 5 * run / 2 : k_ * (k_ - 1) * run;
  }
  [[nodiscard]] Stage stage(std::uint32_t level, std::int64_t first) const {
    const std::uint32_t m = leaves_below(node_, level - 1);
    const std::uint32_t leaf = node_.index * node_.leaves;
    return {level, m, leaf / m % k_, leaf % m, first};
  }
  // The first leaf below the stage's router, or below its branch.
  [[nodiscard]] std::uint32_t origin(const Stage& stage, std::uint32_t branch) const {
    const std::uint32_t all = stage.m * k_;
    return node_.index * node_.leaves / all * all + branch * stage.m;
  }

  void add_stage(const Stage& stage);
  void add_rank(const Stage& stage);
  void add_rank_runs(const Stage& stage);
  void add_below(const Stage& stage);
  void add_turn(const Stage& stage);
  void add_pair(const Stage& stage);
  void add_pair_top(const Stage& stage);
  void add_pair_branch(const Stage& stage);
  void add_pair_below(const Stage& stage);

  [[nodiscard]] Times up(const Stage& stage) const;
  [[nodiscard]] Times down(const Stage& stage) const;

  // base + (off + i / div) mod mod
  [[nodiscard]] std::uint8_t digit(std::uint32_t base, std::uint32_t off, std::uint32_t div,
                                   std::uint32_t mod) {
    Index row{};
    row.base = as_int(base);
    row.coef = 1;
    row.off = as_int(off * div);
    row.div = div;
    row.mod = mod;
    return builder_.index(row);
  }
  // Adds a message that has made `hops` hops when it leaves this router.
  void forward(const Times& times, std::uint32_t hops, std::uint8_t from, std::uint8_t to);
  void send(const Times& times, std::uint8_t segment);
  void receive(const Times& times, std::uint32_t hops, std::uint8_t segment);
  void time(Action& action, const Times& times, std::int64_t later, std::uint8_t pace) {
    action.t0_ref = builder_.count(static_cast<std::int32_t>(times.first() + later), 0);
    action.instances_ref = builder_.count(0, as_int(times.round()));
    action.pace_ref = pace;
  }

  Builder& builder_;
  const LeafNode& node_;
  std::uint32_t k_;
};

void Exchange::forward(const Times& times, std::uint32_t hops, std::uint8_t from, std::uint8_t to) {
  const Ring ring = builder_.ring(1, 1);
  // In an all-to-all an operand in scratch has the length of any part.
  Operand operand = Builder::operand(Buffer::kScratch, builder_.constant(0));
  operand.block_ref = times.block(builder_);
  operand.slot_ref = digit(ring.first, 0, 1, ring.slots);
  const std::uint8_t pace = times.pace(builder_);
  time(builder_.receive_by(0, from, operand), times, std::int64_t{hops} - 1, pace);
  time(builder_.send_by(0, to, operand, 1), times, hops, pace);
}

void Exchange::send(const Times& times, std::uint8_t segment) {
  Operand operand = Builder::operand(Buffer::kInput, segment);
  operand.block_ref = times.block(builder_);
  const std::uint8_t pace = times.pace(builder_), link = builder_.constant(0);
  time(builder_.send_by(0, link, operand, 0), times, 0, pace);
}

void Exchange::receive(const Times& times, std::uint32_t hops, std::uint8_t segment) {
  Operand operand = Builder::operand(Buffer::kOutput, segment);
  operand.block_ref = times.block(builder_);
  const std::uint8_t pace = times.pace(builder_), link = builder_.constant(0);
  time(builder_.receive_by(0, link, operand), times, std::int64_t{hops} - 1, pace);
}

// Messages from the leaves below this node, for k > 2.
Times Exchange::up(const Stage& stage) const {
  const std::uint32_t part = node_.leaves * stage.m, round = (k_ - 1) * part;
  Times times(round,
              stage.first + std::int64_t{stage.branch} * (k_ - 1) * stage.run() +
                  std::int64_t{stage.inside} * stage.m,
              1);
  times.add(stage.run() - part, part);
  return times.add(period() - (k_ - 1) * stage.run(), round);
}

// Messages to the leaves below this node. The j-th of the runs to branch b is run j (k-2) + b - 1,
// and from j = b onward another 2k-2 runs later.
Times Exchange::down(const Stage& stage) const {
  const std::int64_t k = k_, run = stage.run();
  const std::uint32_t part = node_.leaves * stage.m, round = (k_ - 1) * part, b = stage.branch;
  Times times(round, stage.first + (b == 0 ? 2 * k - 3 : b - 1) * run + stage.inside, 1);
  times.add(std::int64_t{stage.m} - node_.leaves, node_.leaves);
  times.add((k - 3) * run, part);
  times.add((2 * k - 2) * run, round, (k_ - 1 - b) % (k_ - 1) * part);
  return times.add(period() - k * (k - 1) * run, round);
}

void Exchange::add_rank(const Stage& stage) {
  const std::uint32_t m = stage.m, b = stage.branch;
  Index segment{};
  segment.base = as_int(origin(stage, 0));
  segment.off = as_int((b + 1) % k_ * m);
  segment.mod = k_ * m;
  const Term to = term(1, 0, 0, (k_ - 1) * m);
  send(up(stage), builder_.index(segment, {to}));
  segment.coef = 1;
  segment.off = b == 0 ? as_int(m) : 0;
  const Term from = term(m, (k_ - 1 - b) % (k_ - 1) * m, (k_ - 1) * m);
  receive(down(stage), 2 * stage.level, builder_.index(segment, {from}));
}

// The same with one action per run, which takes fewer terms.
void Exchange::add_rank_runs(const Stage& stage) {
  const std::uint32_t m = stage.m, me = stage.branch;
  for (std::uint32_t d = 1; d < k_; ++d) {
    const std::uint32_t to = (me + d) % k_, from = (me + k_ - d) % k_;
    const std::int64_t rising = (std::int64_t{me} * (k_ - 1) + d - 1) * stage.run();
    const std::int64_t falling = (std::int64_t{from} * (k_ - 1) + d - 1) * stage.run();
    Times out(m, stage.first + rising + std::int64_t{stage.inside} * m, 1);
    send(out.add(period() - m, m), digit(origin(stage, to), 0, 1, m));
    Times in(m, stage.first + falling + stage.inside, m);
    receive(in.add(period() - stage.run(), m), 2 * stage.level,
            digit(origin(stage, from), 0, 1, m));
  }
}

void Exchange::add_below(const Stage& stage) {
  const std::uint32_t below = node_.leaves / k_;
  const std::uint8_t parent = builder_.constant(k_);
  forward(up(stage), node_.level, digit(0, 0, stage.m * below, k_), parent);
  forward(down(stage), 2 * stage.level - node_.level, parent, digit(0, 0, below, k_));
}

void Exchange::add_turn(const Stage& stage) {
  const auto run = static_cast<std::uint32_t>(stage.run());
  const std::uint32_t round = k_ * (k_ - 1) * run;
  Times times(round, stage.first, 1);
  times.add(period() - round, round);
  Index to{};
  to.coef = 1;
  to.off = as_int(run);
  to.div = run;
  to.mod = k_;
  const Term turned = term(-std::int64_t{k_ - 2} * run, 0, (k_ - 1) * run);
  const std::uint8_t from = digit(0, 0, (k_ - 1) * run, k_);
  forward(times, stage.level, from, builder_.index(to, &turned, k_ > 2 ? 1 : 0));
}

void Exchange::add_stage(const Stage& stage) {
  if (node_.level == stage.level) return add_turn(stage);
  if (node_.level > 0) return add_below(stage);
  node_.height > 3 ? add_rank_runs(stage) : add_rank(stage);
}

// The router where stage L of a pair turns, k = 2.
void Exchange::add_pair_top(const Stage& stage) {
  const auto round = static_cast<std::uint32_t>(2 * stage.run());
  Times times(round, stage.first, 1);
  times.add(period() - round, round);
  forward(times, stage.level, digit(0, 0, 1, 2), digit(0, 1, 1, 2));
}

// v0 or v1.
void Exchange::add_pair_branch(const Stage& stage) {
  const auto run = static_cast<std::uint32_t>(stage.run());
  const std::uint32_t c = stage.branch, quarter = run / 4;
  const std::uint8_t parent = builder_.constant(2), w0 = builder_.constant(0),
                     w1 = builder_.constant(1);
  const auto stream = [&](std::uint32_t round, std::int64_t first) {
    return Times(round, stage.first + first, 2).add(period() - 2 * std::int64_t{round}, round);
  };
  forward(stream(run, c), node_.level, digit(0, 0, run / 2, 2), parent);
  forward(stream(run, 1 - c), stage.level + 1, parent, digit(0, 1, quarter, 2));
  forward(stream(quarter, 2 * std::int64_t{run} + c), node_.level, w0, w1);
  Times back(quarter, stage.first + 1 - c, 2);
  if (quarter > 1) back.add(2 * std::int64_t{run}, quarter, quarter - 1);
  back.add(period() - 2 * std::int64_t{quarter} - (quarter > 1 ? 2 * std::int64_t{run} : 0),
           quarter);
  forward(back, node_.level, w1, w0);
}

// A node inside of w0 or w1.
void Exchange::add_pair_below(const Stage& stage) {
  const std::int64_t run = stage.run(), quarter = run / 4;
  const std::uint32_t c = stage.branch, half = stage.m / 2, w = stage.inside / half;
  const std::uint32_t inside = stage.inside % half, leaves = node_.leaves, level = node_.level;
  const std::uint32_t round = leaves * half;
  // The messages that leave their leaves from step `first` onward, every other step; all but the
  // first one of the stage another `late` steps later.
  const std::uint32_t ahead = inside == 0 ? round - 1 : 0;
  const auto times = [&](std::int64_t first, std::int64_t late) {
    return Times(round, stage.first + first + (inside == 0 ? 0 : late), 2);
  };
  const auto rising = [&](std::int64_t first, std::int64_t late) {
    const std::int64_t jump = ahead > 0 ? late : 0;
    Times out = times(first + 2 * std::int64_t{inside} * half, late);
    out.add(jump, round, ahead);
    return out.add(period() - 2 * std::int64_t{round} - jump, round);
  };
  const auto falling = [&](std::int64_t first, std::int64_t late) {
    const std::int64_t jump = ahead > 0 ? late : 0;
    Times in = times(first + 2 * std::int64_t{inside}, late);
    in.add(2 * (std::int64_t{half} - leaves), leaves);
    in.add(jump, round, ahead);
    return in.add(period() - 2 * quarter - jump, round);
  };
  const auto rise = [&](const Times& times, std::uint32_t to) {
    if (level == 0) return send(times, digit(to, 0, 1, half));
    forward(times, level, digit(0, 0, round / 2, 2), builder_.constant(2));
  };
  const auto fall = [&](const Times& times, std::uint32_t turn, std::uint32_t from) {
    if (level == 0) return receive(times, 2 * turn, digit(from, 0, 1, half));
    forward(times, 2 * turn - level, builder_.constant(2), digit(0, 0, leaves / 2, 2));
  };
  const std::uint32_t other = origin(stage, 1 - c);
  for (std::uint32_t part = 0; part < 2; ++part) {
    rise(rising(w * run + part * (run / 2) + c, 0), other + (1 - part) * half);
    fall(falling(part * run + (1 - w) * (run / 2) + 1 - c, 0), stage.level, other + part * half);
  }
  // Stage L-1: from w0, and from w1.
  const std::uint32_t sibling = origin(stage, c) + (1 - w) * half;
  const std::int64_t from0 = 2 * run + c, from1 = 1 - c, late = 2 * run;
  rise(w == 0 ? rising(from0, 0) : rising(from1, late), sibling);
  fall(w == 1 ? falling(from0, 0) : falling(from1, late), stage.level - 1, sibling);
}

void Exchange::add_pair(const Stage& stage) {
  if (node_.level == stage.level) return add_pair_top(stage);
  node_.level + 1 == stage.level ? add_pair_branch(stage) : add_pair_below(stage);
}

void Exchange::add() {
  if (node_.level == 0) {
    builder_.copy(0, builder_.output(node_.index), builder_.input(node_.index));
  }
  const bool two = pairs();
  std::int64_t first = 0;
  for (std::uint32_t level = node_.height; level > 0 && level >= node_.level;) {
    const Stage now = stage(level, first);
    two&& level > 1 ? add_pair(now) : add_stage(now);
    first += 2 * std::int64_t{level} - 2;
    if (two) {
      first += 2 * now.inside < now.m ? now.run() : now.run() / 2;
    } else {
      first += std::int64_t{(now.branch + 1) % k_} * (k_ - 1) * now.run();
    }
    if (two && level <= 2) break;
    level -= two ? 2 : 1;
  }
}

Status Exchange::finish() {
  const std::int32_t rest = 2 * as_int(node_.height) - (pairs() ? 3 : 1);
  const auto steps = static_cast<std::int32_t>(period());
  builder_.phase(1, rest, steps);
  return builder_.finish(rest, steps);
}

Status write(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  LeafNode node;
  Status status = find_leaf_node(parameters, me, node);
  if (status != Status::kOk) return status;
  Builder builder(out);
  status = builder.begin(parameters, me,
                         {.collective = Collective::kAllToAll,
                          .algorithm = "leaf-single",
                          .nodes = leaf_tree_nodes(node),
                          .port_model = PortModel::kSingleSend});
  if (status != Status::kOk) return status;
  add_leaf_links(builder, node);
  Exchange exchange(builder, node, parameters.arity);
  exchange.add();
  return exchange.finish();
}

}  // namespace

Result<Programs> leaf_single_all_to_all(const topology::Topology& topology,
                                        const CollectiveParameters& parameters) {
  const topology::Shape shape = topology.shape();
  if (shape.arity == 0 && shape.height > 0) {
    return leaf_single_queued_all_to_all(topology, parameters);
  }
  const auto fits = check_leaves(topology, parameters, "leaf-single", kMaxExchangeLeaves);
  if (!fits) return fail(fits.error());
  CollectiveParameters shaped = parameters;
  shaped.arity = shape.arity;
  shaped.height = shape.height;
  Programs programs(topology.nodes());
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    const Status status = write(shaped, node, programs[node]);
    if (status != Status::kOk)
      return fail("leaf-single on " + topology.spec() + ": " + status_name(status));
  }
  return programs;
}

}  // namespace espalier::searched
