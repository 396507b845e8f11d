// All-to-all (total exchange) on fat trees with one send per node and step: `leaf-single`, for at
// most 256 leaves, any capacities and any arities. [DD96], Theorems 5 and 6 and section 4. The
// paper's routers have queues (Fig. 3); here no message waits. Every program is a few loops, so
// nothing is searched.
//
// Steps: let k and k' be the arities of the highest two levels. If k > 2 or h = 1:
// N n^2 (k-1)/k + 2h-1, because the root sends n^2 (k-1)/k messages per block. If k = 2 and h > 1:
// N (3 - 1/k') n^2/4 + 2h-3, because each router below the root sends (3 - 1/k') n^2/4 messages.
// Both are the minimum for N = 1. Cost: steps * (alpha + beta*m/N), where m is the bytes that one
// rank sends to another.
//
// Stage L exchanges between the k branches of each router of level L. A branch has m leaves, and
// M = m^2 messages for each other branch. A message that its leaf sends in step t is sent by
// routers of level l in step t + l on its way up and in step t + 2L - l on its way down. The
// following shows that no node has two sends in a step. Steps are counted from the begin of the
// stage. In the first 2L-2 steps after the last message of stage L to a branch, blocks still come
// down in it. Then it is free for another stage.
//
// k > 2 (or L = 1). The stage is runs of M steps. Run r = a (k-1) + d - 1, 0 < d < k, has the
// messages from branch a to branch b = (a + d) mod k, one per step. The message from leaf x of
// branch a to leaf y of branch b is number q = r M + x m + y, and is in step t = q.
//  * The next run never begins in branch b, because d = k - 1 is followed by branch a + 1 = b + 2.
//    So no branch goes up while blocks still come down.
//  * Run ((c+1) mod k) (k-1) does not touch branch c. Stage L-1 inside of branch c (with stage L-2
//    if its arity is 2) takes place in it, from step 2L-2 of the run onward. It ends before the
//    next run: let l = L-1, k' its arity, and m = k' m'. If k' > 2 it takes M - M/k' steps and
//    2l-2 steps for the last blocks, and M/k' = m m' >= 3 * 4^(l-1) >= 4l-2 = 4L-6. If k' = 2, it
//    takes at most 3M/4 steps (M/2 if l = 1) and 2l-4 more, and M/4 >= 4^(l-1) >= 4l-4 for l > 1.
//
// k = 2, L > 1. Stages L and L-1 are together, and take 2M + (k'-1) M/k' steps, where k' is the
// arity of level L-1: leaf_single_pairs.cc.
//
// Actions: at most 1 + 2h per rank and 4(h-l) + 2 per router (two more for each k = 2); more if a
// program has not enough terms (split_levels).

#include "collectives/search/fat_tree/leaf_single.h"

#include "collectives/search/fat_tree/leaf_check.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"

namespace espalier::searched {

void LeafExchange::forward(const LeafTimes& times, std::uint32_t hops, std::uint8_t from,
                           std::uint8_t to) {
  const Ring ring = builder_.ring(1, 1);
  // In an all-to-all an operand in scratch has the length of any part.
  Operand operand = Builder::operand(Buffer::kScratch, builder_.constant(0));
  operand.block_ref = times.block(builder_);
  operand.slot_ref = digit(ring.first, 0, 1, ring.slots);
  const std::uint8_t pace = times.pace(builder_);
  time(builder_.receive_by(0, from, operand), times, std::int64_t{hops} - 1, pace);
  time(builder_.send_by(0, to, operand, 1), times, hops, pace);
}

void LeafExchange::send(const LeafTimes& times, std::uint8_t segment) {
  Operand operand = Builder::operand(Buffer::kInput, segment);
  operand.block_ref = times.block(builder_);
  const std::uint8_t pace = times.pace(builder_), link = builder_.constant(0);
  time(builder_.send_by(0, link, operand, 0), times, 0, pace);
}

void LeafExchange::receive(const LeafTimes& times, std::uint32_t hops, std::uint8_t segment) {
  Operand operand = Builder::operand(Buffer::kOutput, segment);
  operand.block_ref = times.block(builder_);
  const std::uint8_t pace = times.pace(builder_), link = builder_.constant(0);
  time(builder_.receive_by(0, link, operand), times, std::int64_t{hops} - 1, pace);
}

void LeafExchange::rise(const LeafTimes& times, std::uint32_t each, const Leaves& others) {
  if (node_.level == 0) return send(times, digit(others.first, others.off, 1, others.count));
  const std::uint32_t k = node_.children();
  forward(times, node_.level, digit(0, 0, node_.leaves / k * each, k),
          builder_.constant(node_.parent_link()));
}

void LeafExchange::fall(const LeafTimes& times, std::uint32_t turn, const Leaves& others) {
  if (node_.level == 0) {
    return receive(times, 2 * turn, digit(others.first, others.off, 1, others.count));
  }
  const std::uint32_t k = node_.children();
  forward(times, 2 * turn - node_.level, builder_.constant(node_.parent_link()),
          digit(0, 0, node_.leaves / k, k));
}

LeafTimes LeafExchange::repeated(const Stage& stage, LeafTimes times, std::int64_t steps,
                                 std::int64_t second) const {
  const std::int64_t before = stage.steps_early(times.first() - stage.first);
  const std::int64_t next = stage.steps_early(second);
  const std::uint32_t round = times.round();
  times.advance(before).add(before - next, round, round - 1);
  if (next != 0) times.add(next, round, round - 2);
  return times.add(period() - steps - before, round);
}

// Messages from the leaves below this node, in runs.
LeafTimes LeafExchange::up(const Stage& stage) const {
  const std::uint32_t k = stage.k, part = node_.leaves * stage.m;
  const std::int64_t number =
      std::int64_t{stage.branch} * (k - 1) * stage.run() + std::int64_t{stage.inside} * stage.m;
  LeafTimes times((k - 1) * part, stage.first + number, 1);
  times.add(stage.run() - part, part);
  return repeated(stage, times, (k - 1) * stage.run(), number + 1);
}

// Messages to the leaves below this node. The j-th of the runs to branch b is run j (k-2) + b - 1,
// and from j = b onward another 2k-2 runs later.
LeafTimes LeafExchange::down(const Stage& stage) const {
  const std::int64_t k = stage.k, run = stage.run();
  const std::uint32_t part = node_.leaves * stage.m, b = stage.branch;
  const std::uint32_t round = (stage.k - 1) * part;
  const std::int64_t number = (b == 0 ? 2 * k - 3 : b - 1) * run + stage.inside;
  LeafTimes times(round, stage.first + number, 1);
  times.add(std::int64_t{stage.m} - node_.leaves, node_.leaves);
  times.add((k - 3) * run, part);
  times.add((2 * k - 2) * run, round, (stage.k - 1 - b) % (stage.k - 1) * part);
  return repeated(stage, times, k * (k - 1) * run, node_.leaves > 1 ? number + 1 : kNotEarly);
}

void LeafExchange::add_rank(const Stage& stage) {
  const std::uint32_t k = stage.k, m = stage.m, b = stage.branch;
  Index segment{};
  segment.base = as_int(origin(stage, 0));
  segment.off = as_int((b + 1) % k * m);
  segment.mod = k * m;
  const Term to = leaf_term(1, 0, 0, (k - 1) * m);
  send(up(stage), builder_.index(segment, {to}));
  segment.coef = 1;
  segment.off = b == 0 ? as_int(m) : 0;
  const Term from = leaf_term(m, (k - 1 - b) % (k - 1) * m, (k - 1) * m);
  receive(down(stage), 2 * stage.level, builder_.index(segment, {from}));
}

// The same with one action per run.
void LeafExchange::add_runs(const Stage& stage) {
  const std::uint32_t k = stage.k, m = stage.m, me = stage.branch;
  const std::uint32_t leaves = node_.leaves, part = leaves * m;
  for (std::uint32_t d = 1; d < k; ++d) {
    const std::uint32_t to = (me + d) % k, from = (me + k - d) % k;
    const std::int64_t up =
        (std::int64_t{me} * (k - 1) + d - 1) * stage.run() + std::int64_t{stage.inside} * m;
    rise(repeated(stage, LeafTimes(part, stage.first + up, 1), part, part > 1 ? up + 1 : kNotEarly),
         m, {origin(stage, to), 0, m});
    const std::int64_t down = (std::int64_t{from} * (k - 1) + d - 1) * stage.run() + stage.inside;
    LeafTimes in(part, stage.first + down, 1);
    in.add(std::int64_t{m} - leaves, leaves);
    fall(repeated(stage, in, stage.run(), leaves > 1 ? down + 1 : kNotEarly), stage.level,
         {origin(stage, from), 0, m});
  }
}

void LeafExchange::add_below(const Stage& stage) {
  rise(up(stage), stage.m, {});
  fall(down(stage), stage.level, {});
}

void LeafExchange::add_turn(const Stage& stage) {
  const std::uint32_t k = stage.k;
  const auto run = static_cast<std::uint32_t>(stage.run());
  const std::uint32_t round = k * (k - 1) * run;
  const LeafTimes times = repeated(stage, LeafTimes(round, stage.first, 1), round, 1);
  Index to{};
  to.coef = 1;
  to.off = as_int(run);
  to.div = run;
  to.mod = k;
  const Term turned = leaf_term(-std::int64_t{k - 2} * run, 0, (k - 1) * run);
  const std::uint8_t from = digit(0, 0, (k - 1) * run, k);
  forward(times, stage.level, from, builder_.index(to, &turned, k > 2 ? 1 : 0));
}

void LeafExchange::add_stage(const Stage& stage) {
  if (node_.level == stage.level) return add_turn(stage);
  if (stage.level <= split_levels_) return add_runs(stage);
  node_.level > 0 ? add_below(stage) : add_rank(stage);
}

void LeafExchange::add() {
  if (node_.level == 0) {
    builder_.copy(0, builder_.output(node_.index), builder_.input(node_.index));
  }
  std::int64_t first = 0;
  for (std::uint32_t level = node_.height; level > 0 && level >= node_.level;) {
    const Stage now = stage(level, first);
    first += 2 * std::int64_t{level} - 2;
    if (now.pairs()) {
      add_pair(now);
      const Pair w = pair(now);
      first += 2 * w.run() * ((w.branch == 0 ? w.k : w.branch) + 1 - w.turn);
      level -= 2;
    } else {
      add_stage(now);
      first += std::int64_t{(now.branch + 1) % now.k} * (now.k - 1) * now.run();
      level -= 1;
    }
  }
}

Status LeafExchange::finish() {
  const bool pairs = stage(node_.height, 0).pairs();
  const std::int32_t rest = 2 * as_int(node_.height) - (pairs ? 3 : 1);
  const auto steps = static_cast<std::int32_t>(period());
  builder_.phase(1, rest, steps);
  return builder_.finish(rest, steps);
}

namespace {

constexpr std::uint32_t kMaxExchangeLeaves = 256;

Status write(const CollectiveParameters& parameters, std::uint32_t me, std::uint32_t split_levels,
             Program& out) {
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
  LeafExchange exchange(builder, node, split_levels);
  exchange.add();
  return exchange.finish();
}

Result<Programs> leaf_single_all_to_all(Collective, const topology::Topology& topology,
                                        const CollectiveParameters& parameters) {
  const auto fits = check_leaves(topology, parameters, "leaf-single", kMaxExchangeLeaves);
  if (!fits) return fail(fits.error());
  const topology::Shape shape = topology.shape();
  CollectiveParameters shaped = parameters;
  shaped.arities = shape.arities.data();
  shaped.height = shape.height;
  Programs programs(topology.nodes());
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    // The fewest actions for which the tables are large enough.
    Status status = Status::kTooLarge;
    for (std::uint32_t split = 0; split <= shape.height && status == Status::kTooLarge; ++split) {
      status = write(shaped, node, split, programs[node]);
    }
    if (status != Status::kOk)
      return fail("leaf-single on " + topology.spec() + ": " + status_name(status));
  }
  return programs;
}

}  // namespace

const SearchedAlgorithm kLeafSingleRows[] = {
    row("leaf-single", Collective::kAllToAll, leaf_single_all_to_all,
        "one send per node and step, without queues: N n^2 (k-1)/k + 2h-1 steps; k = 2 < n: N (3 - "
        "1/k') n^2/4 + 2h-3, k' of the level below; n <= 256",
        {.topologies = "fattree:k=K,h=H", .applies = on_fat_tree, .has_routers = true}),
};

}  // namespace espalier::searched
