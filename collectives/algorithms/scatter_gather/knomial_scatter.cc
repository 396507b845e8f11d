// Scatter and gather by a tree over intervals of ranks (interval_tree.h), with any radix k:
// binomial for k = 2. One message holds the parts of a whole interval.
//
// Steps: with S = L = 1, (k-1) * floor(log_k(p-1)) plus 1 to k-1, N = 1; ceil(log2 p) for k = 2.
// Cost: steps * alpha + about (p-1) * beta*m, where m is the bytes of one rank's part: the cost of
// a step is its longest message. Folklore (recursive halving); for short parts, where start-up
// dominates. A larger radix is faster in the postal model with L > S, where a division takes
// (k-2)S + L ticks, and with several ports, where the k-1 sends of a division go out at once.
//
// A rank other than the root keeps its interval's parts in scratch. The gather is the scatter
// reversed in time, and on a mesh no two messages of one of its steps share a link
// (interval_tree.h). p is at most 2 * 65535, twice the maximum number of parts per message;
// kTooLarge above, and if a program has no room for a rank's transfers: each takes up to three of
// its 64 indices, two at the root.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/interval_tree.h"
#include "collectives/algorithms/trees/postal.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

constexpr std::uint32_t kLongestRun = 65535;

// A rank's place in the tree, and the ticks of the postal model.
struct ScatterPosition {
  const IntervalTree& tree;
  Given given;
  std::uint32_t me, send_ticks, latency_ticks;

  // The step in which a send that begins in `tick` arrives.
  [[nodiscard]] std::uint32_t arrival(std::uint32_t tick) const { return tick + latency_ticks - 1; }
};

// The parts of the ranks `of` in this rank's buffer: the root's own buffer, or scratch.
Operand parts(Builder& builder, const ScatterPosition& position, const Operand& root_buffer,
              const Interval& of) {
  Operand operand = root_buffer;
  if (!position.given.root) {
    operand = builder.slot(of.first, {of.first - position.given.interval.first, 1});
  } else {
    operand.segment_ref = builder.constant(of.first);
  }
  operand.segment_count = static_cast<std::uint16_t>(of.size == 1 ? 0 : of.size);
  return operand;
}

void add_scatter(Builder& builder, const ScatterPosition& position) {
  const Given& given = position.given;
  const Operand own = builder.output(position.me);
  const std::uint32_t arrival = given.root ? 0 : position.arrival(given.tick);
  if (!given.root && given.interval.size == 1) {
    builder.receive(arrival, given.from, own);
    return;
  }
  if (!given.root) (void)builder.scratch(given.interval.size);
  const Operand source = builder.input(0);
  if (!given.root) {
    builder.receive(arrival, given.from, parts(builder, position, source, given.interval));
  }
  builder.copy(arrival, own, parts(builder, position, source, {position.me, 1, position.me}));
  position.tree.for_each_part(given, [&](const Interval& part, std::uint32_t tick) {
    builder.send(tick, part.leader, parts(builder, position, source, part),
                 given.root ? 0 : tick - arrival);
  });
}

// `copies` copies of the own part into `target`, S ticks apart; the last one in step `last`.
void add_copies(Builder& builder, const ScatterPosition& position, const Operand& own,
                const Operand& target, std::uint32_t last, std::uint32_t copies) {
  const std::uint8_t instances_ref = builder.count(static_cast<std::int32_t>(copies), 0);
  const std::uint8_t block_ref = builder.constant(0);
  const Operand part = parts(builder, position, target, {position.me, 1, position.me});
  Action& copy = builder.copy(last - (copies - 1) * position.send_ticks, part, own);
  copy.instances_ref = instances_ref;
  copy.into.block_ref = copy.a.block_ref = block_ref;
}

// A send waits for the receives of one step only. The copies of the own part ensure that all
// receives are complete: there is one in each step of a receive, and copies run in order. Receives
// S ticks apart share an action of copies. The root sends nothing, so one copy is enough there.
void add_gather(Builder& builder, const ScatterPosition& position) {
  const Given& given = position.given;
  const Operand own = builder.input(position.me);
  const std::uint32_t last = position.tree.steps() - 1;
  const std::uint32_t send = last + 1 - position.latency_ticks - given.tick;
  if (!given.root && given.interval.size == 1) {
    builder.send(send, given.from, own, 0);
    return;
  }
  if (!given.root) (void)builder.scratch(given.interval.size);
  const Operand target = builder.output(0);
  std::uint32_t latest = 0, earliest = last;
  position.tree.for_each_part(given, [&](const Interval& part, std::uint32_t tick) {
    earliest = last - tick;
    if (latest == 0) latest = earliest;
    builder.receive(earliest, part.leader, parts(builder, position, target, part));
  });
  if (given.root) return add_copies(builder, position, own, target, earliest, 1);
  std::uint32_t group = latest, copies = 0;  // receives S ticks apart, the latest in step `group`
  position.tree.for_each_part(given, [&](const Interval&, std::uint32_t tick) {
    if (group - copies * position.send_ticks != last - tick) {
      add_copies(builder, position, own, target, group, copies);
      group = last - tick;
      copies = 0;
    }
    ++copies;
  });
  add_copies(builder, position, own, target, group, copies);
  builder.send(send, given.from, parts(builder, position, target, given.interval), send - latest);
}

Status add_exchange(Builder& builder, const CollectiveParameters& parameters, std::uint32_t me,
                    Collective collective, const IntervalTree& tree) {
  const ScatterPosition position{tree, tree.given_to(me), me, parameters.send_ticks,
                                 parameters.latency_ticks};
  collective == Collective::kScatter ? add_scatter(builder, position)
                                     : add_gather(builder, position);
  builder.phase(parameters.send_ticks, static_cast<std::int32_t>(tree.steps()), 0);
  return builder.finish(static_cast<std::int32_t>(postal_ticks(
                            parameters.ranks, parameters.send_ticks, parameters.latency_ticks)),
                        0);
}

Status exchange_parts(const CollectiveParameters& parameters, std::uint32_t me,
                      Collective collective, const char* algorithm, Program& out) {
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = algorithm,
                                       .one_block = true,
                                       .send_ticks = parameters.send_ticks,
                                       .latency_ticks = parameters.latency_ticks});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  if (parameters.ranks > 2 * kLongestRun) return builder.refuse(Status::kTooLarge);
  const std::uint32_t radix = tree_radix(parameters.radix, parameters.ranks, parameters.send_ticks,
                                         parameters.latency_ticks);
  const Leaders leaders = collective == Collective::kGather ? Leaders::kNearest : Leaders::kFirst;
  return add_exchange(builder, parameters, me, collective,
                      {parameters.ranks, parameters.root, radix, parameters.send_ticks,
                       parameters.latency_ticks, leaders});
}

Status generate_binomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                 Collective collective, Program& out) {
  return exchange_parts(binomial_parameters(parameters), me, collective, "binomial", out);
}

Status generate_knomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                Collective collective, Program& out) {
  return exchange_parts(parameters, me, collective, "knomial", out);
}

}  // namespace

const Algorithm kKnomialScatterRows[] = {
    row("binomial", Collective::kScatter, generate_binomial_scatter,
        "one block per rank down a binomial tree: ceil(log2 p) steps"),
    row("knomial", Collective::kScatter, generate_knomial_scatter,
        "one block per rank down a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, "
        "or (k-2)S+L ticks",
        {.takes_lambda = true, .takes_radix = true}),
    row("binomial", Collective::kGather, generate_binomial_scatter,
        "one block per rank up a binomial tree: ceil(log2 p) steps"),
    row("knomial", Collective::kGather, generate_knomial_scatter,
        "one block per rank up a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, "
        "or (k-2)S+L ticks",
        {.takes_lambda = true, .takes_radix = true}),
};

}  // namespace espalier
