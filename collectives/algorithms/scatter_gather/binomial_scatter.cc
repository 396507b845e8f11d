// Scatter and gather by the binomial tree over intervals of ranks: one message per step holds the
// parts of a whole interval.
//
// Steps: ceil(log2 p), N = 1. Cost: ceil(log2 p) * alpha + about (p-1) * beta*m, where m is the
// bytes of one rank's part: the cost of a step is its longest message. Folklore (recursive
// halving); for short parts, where start-up dominates.
//
// The ranks are halved repeatedly. The rank that has an interval's parts sends the parts of the
// half that does not contain it to the first rank of that half. Intervals do not wrap around, so
// their parts are contiguous in memory. A rank other than the root keeps its interval's parts in
// scratch. The gather is the scatter reversed in time. p is at most 2 * 65535, twice the maximum
// number of parts per message; kTooLarge above.

#include "collectives/algorithms/build/builder.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

constexpr std::uint32_t kLongestRun = 65535;

// The ranks first .. first + size - 1, whose parts are at `leader`.
struct Interval {
  std::uint32_t first, size, leader;
};

struct Halves {
  Interval kept, given;  // `kept` contains the leader; `given` is the other half
};

Halves halve(const Interval& whole) {
  const std::uint32_t upper_size = whole.size / 2;
  const std::uint32_t middle = whole.first + whole.size - upper_size;
  const Interval lower{whole.first, whole.size - upper_size, whole.first};
  const Interval upper{middle, upper_size, middle};
  const bool in_upper = whole.leader >= middle;
  Halves halves{in_upper ? upper : lower, in_upper ? lower : upper};
  halves.kept.leader = whole.leader;
  return halves;
}

// The interval that `me` receives, the step of the scatter in which it arrives, and its sender.
struct Given {
  Interval interval;
  std::uint32_t step, from;
  bool root;
};

Given given_to(std::uint32_t p, std::uint32_t root, std::uint32_t me) {
  Interval interval{0, p, root};
  Given result{interval, 0, root, true};
  for (std::uint32_t step = 0; interval.leader != me; ++step) {
    const Halves halves = halve(interval);
    const bool given = me - halves.given.first < halves.given.size;
    if (given) result = {halves.given, step, interval.leader, false};
    interval = given ? halves.given : halves.kept;
  }
  return result;
}

struct Tree {
  std::uint32_t steps;  // of the whole tree
  Given given;
  std::uint32_t me;

  // The step in which the first of the halves below is sent.
  [[nodiscard]] std::uint32_t first_send() const { return given.root ? 0 : given.step + 1; }
};

// The parts of the ranks `of` in this rank's buffer: the root's own buffer, or scratch.
Operand parts(Builder& builder, const Tree& tree, const Operand& root_buffer, const Interval& of) {
  Operand operand = root_buffer;
  if (!tree.given.root) {
    operand = builder.slot(of.first, {of.first - tree.given.interval.first, 1});
  } else {
    operand.segment_ref = builder.constant(of.first);
  }
  operand.segment_count = static_cast<std::uint16_t>(of.size == 1 ? 0 : of.size);
  return operand;
}

void add_scatter(Builder& builder, const Tree& tree) {
  const Given& given = tree.given;
  const Operand own = builder.output(tree.me);
  if (!given.root && given.interval.size == 1) {
    builder.receive(given.step, given.from, own);
    return;
  }
  if (!given.root) (void)builder.scratch(given.interval.size);
  const Operand source = builder.input(0);
  std::uint32_t step = tree.first_send();
  if (!given.root) {
    builder.receive(given.step, given.from, parts(builder, tree, source, given.interval));
  }
  builder.copy(given.step, own, parts(builder, tree, source, {tree.me, 1, tree.me}));
  for (Interval interval = given.interval; interval.size > 1; ++step) {
    const Halves halves = halve(interval);
    builder.send(step, halves.given.first, parts(builder, tree, source, halves.given),
                 given.root ? 0 : step - given.step);
    interval = halves.kept;
  }
}

// The receive of the last step reverses the first send. A send waits for the receives of one step
// only. The copies of the own part ensure that all receives are complete: there is one in each step
// of a receive, and copies run in order.
void add_gather(Builder& builder, const Tree& tree) {
  const Given& given = tree.given;
  const Operand own = builder.input(tree.me);
  const std::uint32_t last = tree.steps - 1;
  if (!given.root && given.interval.size == 1) {
    builder.send(last - given.step, given.from, own, 0);
    return;
  }
  if (!given.root) (void)builder.scratch(given.interval.size);
  const Operand target = builder.output(0);
  std::uint32_t step = tree.first_send();
  std::uint32_t receives = 0;
  for (Interval interval = given.interval; interval.size > 1; ++step, ++receives) {
    const Halves halves = halve(interval);
    builder.receive(last - step, halves.given.first, parts(builder, tree, target, halves.given));
    interval = halves.kept;
  }
  const std::uint32_t copies = given.root ? 1 : receives;
  const std::uint8_t instances_ref = builder.count(static_cast<std::int32_t>(copies), 0);
  const std::uint8_t block_ref = builder.constant(0);
  const Operand own_part = parts(builder, tree, target, {tree.me, 1, tree.me});
  Action& copy = builder.copy(last + 1 - step, own_part, own);
  copy.instances_ref = instances_ref;
  copy.into.block_ref = copy.a.block_ref = block_ref;
  if (!given.root) {
    builder.send(last - given.step, given.from, parts(builder, tree, target, given.interval), 1);
  }
}

Status generate_binomial(const CollectiveParameters& parameters, std::uint32_t me,
                         Collective collective, Program& out) {
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me, {.collective = collective, .algorithm = "binomial", .one_block = true});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  if (p > 2 * kLongestRun) {
    out.clear();
    return Status::kTooLarge;
  }
  const Tree tree{log2_ceil(p), given_to(p, parameters.root, me), me};
  collective == Collective::kScatter ? add_scatter(builder, tree) : add_gather(builder, tree);
  builder.phase(1, static_cast<std::int32_t>(tree.steps), 0);
  return builder.finish(static_cast<std::int32_t>(tree.steps), 0);
}

}  // namespace

Status binomial_scatter(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_binomial(parameters, me, Collective::kScatter, out);
}

Status binomial_gather(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_binomial(parameters, me, Collective::kGather, out);
}

}  // namespace espalier
