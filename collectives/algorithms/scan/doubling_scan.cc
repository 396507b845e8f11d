// Scan and exscan in logarithmically many steps, for short messages: one block; operators need not
// be commutative.
//
// recursive-doubling: in step s a rank sends the sum of the (at most) 2^s inputs that end with its
// own to the rank 2^s after it. Steps: ceil(log2 p), which is optimal. An exscan also keeps this
// sum without its own input, so it combines twice per step. Source: [HS86].
//
// doubling-123, exscan only: the distances are 1, 2, 3, 6, 12, ... In the first step a rank sends
// its input, in the second the sum of what it has received and its input, afterwards only what it
// has received: the 3, 6, 12, ... inputs before its own. So it combines once per step. Steps:
// ceil(log2(p-1) + log2(4/3)), at most one more than ceil(log2 p). Source: [Traff25].
//
// Cost of all: steps * (alpha + beta*m).

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/one_block.h"

namespace espalier {
namespace {

// The messages of one rank: it sends in steps 0 .. sends-1 and receives in steps 0 .. receives-1.
struct ScanMessages {
  std::uint32_t sends = 0, receives = 0;
};

// Adds the links: first those to the ranks distance(step) after this one, then those from the ranks
// before it. Rank 0 sends in the first `sends_of_first` steps only: later messages are sums of
// what comes before the sender's own input.
template <typename Distance>
ScanMessages add_scan_links(Builder& builder, std::uint32_t p, std::uint32_t me,
                            std::uint32_t sends_of_first, const Distance& distance) {
  ScanMessages messages;
  const auto sends = [&](std::uint32_t rank, std::uint32_t step) {
    return rank + distance(step) < p && (rank > 0 || step < sends_of_first);
  };
  for (; sends(me, messages.sends); ++messages.sends) {
    (void)builder.link(me + distance(messages.sends));
  }
  for (; distance(messages.receives) <= me; ++messages.receives) {
    const std::uint32_t from = me - distance(messages.receives);
    if (!sends(from, messages.receives)) break;
    (void)builder.link(from);
  }
  return messages;
}

constexpr std::uint32_t kEveryStep = 32;

constexpr std::uint32_t doubled(std::uint32_t step) { return 1u << step; }
constexpr std::uint32_t doubled_123(std::uint32_t step) {
  return step < 2 ? step + 1 : 3u << (step - 2);
}
// The inputs before its own that a rank has after `steps` steps, if there are as many.
constexpr std::uint32_t inputs_123(std::uint32_t steps) {
  return steps < 2 ? steps : doubled_123(steps);
}

// Rank 0 sends its input in every step.
void add_sends_of_input(Builder& builder, const ScanMessages& messages) {
  if (messages.sends == 0) return;
  const std::uint8_t links = links_from(builder, 0);
  repeat_block(builder, builder.send_by(0, links, builder.input(0), 0), messages.sends);
}

// Sends `sum` in all steps from `first` onward. It changes in every step that receives; the sends
// of these and of the next step share an action, because they wait for the step before.
void add_sends_of_sum(Builder& builder, const ScanMessages& messages, std::uint32_t first,
                      const Operand& sum) {
  std::uint32_t step = messages.receives + 1;
  if (step > messages.sends) step = messages.sends;
  if (step > first) {
    const std::uint8_t links = links_from(builder, first);
    repeat_block(builder, builder.send_by(first, links, sum, 1), step - first);
  } else {
    step = first;
  }
  for (; step < messages.sends; ++step) {
    const std::uint8_t link = builder.constant(step);
    builder.send_by(step, link, sum, step + 1 - messages.receives);
  }
}

// Returns the slots that the messages arrive in.
Ring add_receives(Builder& builder, const ScanMessages& messages, std::uint32_t window) {
  const Ring ring = ring_of_receives(builder, messages.receives, window);
  const std::uint8_t links = links_from(builder, messages.sends);
  const Operand news = slots_from(builder, ring, 0);
  repeat_block(builder, builder.receive_by(0, links, news), messages.receives);
  return ring;
}

// Adds what arrives in the steps from 1 to `end`-1 on the left of `sum`.
void add_left(Builder& builder, const Ring& ring, std::uint32_t end, const Operand& sum) {
  if (end <= 1) return;
  const Operand news = slots_from(builder, ring, 1);
  repeat_block(builder, builder.combine(1, sum, news, sum), end - 1);
}

void add_doubling_scan(Builder& builder, std::uint32_t p, std::uint32_t me, std::uint32_t window) {
  const ScanMessages messages = add_scan_links(builder, p, me, kEveryStep, doubled);
  const Operand own = builder.input(0), sum = builder.output(0);
  if (me == 0) {
    builder.copy(0, sum, own);
    return add_sends_of_input(builder, messages);
  }
  if (messages.sends > 0) builder.send(0, me + 1, own, 0);
  add_sends_of_sum(builder, messages, 1, sum);
  const Ring ring = add_receives(builder, messages, window);
  builder.combine(0, sum, slots_from(builder, {ring.first, 1}, 0), own);
  add_left(builder, ring, messages.receives, sum);
}

// The first message goes to OUTPUT only after INPUT has been used, so both may be the same memory.
// `with_own_once`: the sum with the own input is sent in step 1 only, and the sum before it later.
void add_doubling_exscan(Builder& builder, std::uint32_t me, std::uint32_t window,
                         const ScanMessages& messages, bool with_own_once) {
  if (me == 0) return add_sends_of_input(builder, messages);
  const Operand own = builder.input(0), before = builder.output(0);
  const std::uint32_t sends = messages.sends, receives = messages.receives;
  const Operand with_own = builder.slot(0, {sends > 1 ? builder.scratch(1) : 0, 1});
  if (sends > 0) builder.send(0, me + 1, own, 0);
  if (with_own_once) {
    if (sends > 1) builder.send(1, me + 2, with_own, 1);
    add_sends_of_sum(builder, messages, 2, before);
  } else {
    add_sends_of_sum(builder, messages, 1, with_own);
  }
  const Ring ring = add_receives(builder, messages, window);
  const Operand first = slots_from(builder, {ring.first, 1}, 0);
  if (sends > 1) builder.combine(0, with_own, first, own);
  builder.copy(0, before, first);
  add_left(builder, ring, receives, before);
  // The last send needs the sum of the step before.
  if (!with_own_once && sends > 1) {
    add_left(builder, ring, sends - 1 < receives ? sends - 1 : receives, with_own);
  }
}

template <bool kBy123>
Status generate_doubling_scan(const CollectiveParameters& parameters, std::uint32_t me,
                              Collective collective, Program& out) {
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = kBy123 ? "doubling-123" : "recursive-doubling",
                                       .one_block = true});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  std::uint32_t steps = log2_ceil(p);
  if (collective == Collective::kScan) {
    add_doubling_scan(builder, p, me, out.window);
  } else if (kBy123) {
    const ScanMessages messages = add_scan_links(builder, p, me, 2, doubled_123);
    add_doubling_exscan(builder, me, out.window, messages, true);
    for (steps = 1; inputs_123(steps) < p - 1;) ++steps;
  } else {
    const ScanMessages messages = add_scan_links(builder, p, me, kEveryStep, doubled);
    add_doubling_exscan(builder, me, out.window, messages, false);
  }
  builder.phase(1, static_cast<std::int32_t>(steps), 0);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kDoublingScanRows[] = {
    row("recursive-doubling", Collective::kScan, generate_doubling_scan<false>,
        "one block, twice as far each step: ceil(log2 p) steps"),
    row("recursive-doubling", Collective::kExscan, generate_doubling_scan<false>,
        "one block, twice as far each step: ceil(log2 p) steps"),
    row("doubling-123", Collective::kExscan, generate_doubling_scan<true>,
        "one block over distances 1, 2, 3, 6, 12, ...: ceil(log2(p-1)+log2(4/3)) steps"),
};

}  // namespace espalier
