// Reduce to any root with operators that need not be commutative: chains from both ends of the
// ranks meet at the root.
//
// Let a = root be the number of ranks before the root and b = p-1-root the number after it. Steps:
// p-2+N if a or b is 0; otherwise max(a, b) + 2N - 2, and one more if a = b. The root receives 2N
// blocks, one per step: blocks of the two chains alternate. (Receiving the whole shorter chain
// first would take max(max(a, b) + N - 1, min(a, b) + 2N - 1) steps. This is less, but no count of
// a program can express a maximum, and N is not known here.) Cost: steps * (alpha + beta*m/N).
// Source: the chain of [Sanders03] section 2, twice.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

// One of the two chains: `length` ranks without the root. Its block i reaches the root in step
// first + period*i.
struct Side {
  std::uint32_t length, first;
};

struct Sides {
  Side before, after;
  std::uint32_t period;

  [[nodiscard]] std::uint32_t last_first() const {
    return before.first > after.first ? before.first : after.first;
  }
};

Sides sides_of(std::uint32_t p, std::uint32_t root) {
  const std::uint32_t a = root, b = p - 1 - root;
  if (a == 0 || b == 0) return {{a, p - 2}, {b, p - 2}, 1};
  Sides sides{{a, a - 1}, {b, b - 1}, 2};
  if ((a + b) % 2 == 0) {  // both would arrive in the same steps: the shorter chain waits one step
    Side& later = a < b ? sides.before : sides.after;
    ++later.first;
  }
  return sides;
}

// Adds the actions of a rank `distance` >= 1 links from the root.
void add_link(Builder& builder, const Sides& sides, const Side& side, std::uint32_t distance,
              std::uint32_t nearer, std::uint32_t farther, bool before_root) {
  const std::uint32_t step = side.first - (distance - 1);
  Operand sum = builder.input(0);
  const bool far_end = distance == side.length;
  if (!far_end) {
    const Operand own = sum;
    sum = builder.slot(0, builder.ring(1, sides.period));
    builder.receive(step - 1, farther, sum);
    builder.combine(step - 1, sum, before_root ? sum : own, before_root ? own : sum);
  }
  builder.send(step, nearer, sum, far_end ? 0 : 1);
}

void add_root(Builder& builder, const Sides& sides, std::uint32_t root) {
  Operand sum = builder.input(0);
  const bool before_first = sides.before.first <= sides.after.first;
  for (const bool before : {before_first, !before_first}) {
    const Side& side = before ? sides.before : sides.after;
    if (side.length == 0) continue;
    const Operand slot = builder.slot(0, builder.ring(0, sides.period));
    const Operand into = builder.output(0);
    builder.receive(side.first, before ? root - 1 : root + 1, slot);
    builder.combine(side.first, into, before ? slot : sum, before ? sum : slot);
    sum = into;
  }
}

Status chain_ends_reduce(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                         Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = Collective::kReduce, .algorithm = "chain-ends"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks, root = parameters.root;
  if (p == 1) return builder.finish_alone();
  const Sides sides = sides_of(p, root);
  if (me == root) {
    add_root(builder, sides, root);
  } else if (me < root) {
    add_link(builder, sides, sides.before, root - me, me + 1, me - 1, true);
  } else {
    add_link(builder, sides, sides.after, me - root, me - 1, me + 1, false);
  }
  const auto period = static_cast<std::int32_t>(sides.period);
  builder.phase(sides.period, static_cast<std::int32_t>(sides.last_first()) + 1 - period, period);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kChainEndsRows[] = {
    row("chain-ends", Collective::kReduce, chain_ends_reduce,
        "pipelines from both ends to the root: at most max(root, p-1-root)+2N-1 steps"),
};

}  // namespace espalier
