// Allreduce in the postal model by the global combine, for short messages: one block; every rank
// sends and receives in every round.
//
// Steps (ticks), with lambda = L/S and T_l(p) the least t with N_l(t) >= p (postal.h). For integer
// lambda: S * T_lambda(p), which is optimal. Otherwise the smaller of
//   * delay-receive, as if lambda were l = ceil(lambda): S * (T_l(p) - l) + L;
//   * delay-send, l = floor(lambda), a send every L/l ticks: floor(L * T_l(p) / l).
// (For delay-receive [Bruck96] has S * T_l(p): there the last receive idles too, although nothing
// follows it.) Cost: S ticks are alpha + beta*m. Source: [Bruck96] section 3 for n = N_lambda(t).
// The sequence of deficiencies for any n is our reconstruction of its reports.
//
// Choose e_r in {0, 1} such that M_r = M_{r-1} + M_{r-l} - e_r ends as M_t = p. After round r, rank
// i holds two sums. T is the sum of the M_r inputs that end with its own. S is the sum of the
// M_r - 1 inputs before its own. In round R it adds the value that was sent to it l - 1 rounds ago:
// T from rank i - M_{R-1} or, if e_R = 1, S from rank i - M_{R-1} + 1 (nothing if S is empty). It
// adds this value on the left of both T and S. The order is cyclic, so operators must be
// commutative.
//
// kTooLarge, on every rank, if there are 128 rounds or more or a program's tables are too small:
// lambda >= 9 beyond 10^6 ranks.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/postal.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxRounds = 128;

// The send times: message k = 0, 1, ... is sent in tick k*L/l or k*S. Messages that are `classes`
// apart are `period` ticks apart.
struct Timing {
  std::uint32_t l, rounds;  // l, and t = T_l(p)
  std::uint32_t classes, period, latency;

  [[nodiscard]] std::uint32_t messages() const { return rounds - l + 1; }
  [[nodiscard]] std::uint32_t sent(std::uint32_t message) const {
    return message * period / classes;
  }
  [[nodiscard]] std::uint32_t received(std::uint32_t message) const {
    return sent(message) + latency - 1;
  }
  [[nodiscard]] std::uint32_t steps() const { return received(messages() - 1) + 1; }
};

Timing timing_of(std::uint32_t p, std::uint32_t send, std::uint32_t latency) {
  const std::uint32_t floor = latency / send, ceil = (latency + send - 1) / send;
  const Timing receive{ceil, postal_ticks(p, 1, ceil), 1, send, latency};
  if (floor == ceil) return receive;
  const Timing delayed{floor, postal_ticks(p, 1, floor), floor, latency, latency};
  return delayed.steps() < receive.steps() ? delayed : receive;
}

// Message k, which is added in round k + l.
struct Message {
  bool exists, partial;   // partial: S, not T
  bool adds_to_partial;   // the receiver needs its S afterwards
  std::uint32_t places;   // distance from its sender to its receiver
  std::uint8_t to, from;  // links
};

// The plan, which is the same for all ranks.
struct Plan {
  Timing timing;
  Message messages[kMaxRounds];
  bool needs_partial = false;

  Plan(const Timing& of, std::uint32_t p) : timing(of) {
    const std::uint32_t l = timing.l, t = timing.rounds;
    std::uint32_t held[kMaxRounds + 1];  // M
    Reach reach(1, l);
    reach.up_to(p);
    std::uint32_t deficiency = reach.value(0) - p;
    for (std::uint32_t round = 0; round < l; ++round) held[round] = 1;
    for (std::uint32_t round = l; round <= t; ++round, reach.down(1)) {
      const bool less = reach.value(l) <= deficiency;  // N(t - round)
      if (less) deficiency -= reach.value(l);
      const std::uint32_t gained = held[round - l] - (less ? 1 : 0);
      held[round] = held[round - 1] + gained;
      messages[round - l] = {gained > 0, less, false, held[round - 1] - (less ? 1 : 0), 0, 0};
    }
    // Message k is S after round k, with all messages up to k - l added.
    for (std::uint32_t k = timing.messages(); k-- > 0;) {
      if (needs_partial) messages[k].adds_to_partial = k + l <= last_partial_;
      if (!needs_partial && messages[k].exists && messages[k].partial) {
        needs_partial = true;
        last_partial_ = k;
      }
    }
  }

 private:
  std::uint32_t last_partial_ = 0;
};

class Combine {
 public:
  Combine(Builder& builder, Plan& plan, std::uint32_t p, std::uint32_t me)
      : builder_(builder), plan_(plan) {
    const std::uint32_t messages = plan.timing.messages();
    for (std::uint32_t k = 0; k < messages; ++k) {
      Message& message = plan.messages[k];
      if (message.exists)
        message.to = static_cast<std::uint8_t>(builder.link((me + message.places) % p));
    }
    for (std::uint32_t k = 0; k < messages; ++k) {
      Message& message = plan.messages[k];
      if (message.exists)
        message.from = static_cast<std::uint8_t>(builder.link((me + p - message.places) % p));
    }
    if (plan.needs_partial) partial_ = builder.scratch(1);
    block_ref_ = builder.constant(0);
  }

  void add(std::uint32_t window) {
    const Timing& timing = plan_.timing;
    for (std::uint32_t begin = 0; begin < timing.classes; ++begin) {
      if (begin >= timing.messages()) break;
      const std::uint32_t in_class = (timing.messages() - begin - 1) / timing.classes + 1;
      const std::uint32_t wanted = (window + timing.period - 1) / timing.period;
      slots_ = wanted < in_class ? wanted : in_class;
      first_slot_ = builder_.scratch(slots_);
      add_all(begin, &Combine::same_send, &Combine::add_send);
      add_all(begin, &Combine::same_receive, &Combine::add_receive);
    }
  }

 private:
  // `count` messages from k onward, one class apart. One action serves all of them.
  struct Run {
    std::uint32_t k, count;
  };

  void add_all(std::uint32_t begin, bool (Combine::*same)(std::uint32_t, std::uint32_t) const,
               void (Combine::*add)(const Run&)) {
    const std::uint32_t messages = plan_.timing.messages(), next = plan_.timing.classes;
    for (std::uint32_t k = begin; k < messages;) {
      Run run{k, 1};
      for (k += next; k < messages && (this->*same)(k - next, k); k += next) ++run.count;
      if (plan_.messages[run.k].exists) (this->*add)(run);
    }
  }

  // Number of steps between computing the data of message k and sending it; 0: the data is the
  // input.
  [[nodiscard]] std::uint32_t age(std::uint32_t k) const {
    for (std::uint32_t made = k; made-- > 0;) {
      if (made + plan_.timing.l <= k && plan_.messages[made].exists) {
        return plan_.timing.sent(k) - plan_.timing.received(made);
      }
    }
    return 0;
  }
  [[nodiscard]] bool same_send(std::uint32_t a, std::uint32_t b) const {
    const Message &one = plan_.messages[a], &two = plan_.messages[b];
    return one.exists == two.exists && one.partial == two.partial && age(a) == age(b) &&
           one.to + 1 == two.to;
  }
  [[nodiscard]] bool same_receive(std::uint32_t a, std::uint32_t b) const {
    const Message &one = plan_.messages[a], &two = plan_.messages[b];
    return a > 0 && one.exists == two.exists && one.adds_to_partial == two.adds_to_partial &&
           one.from + 1 == two.from;
  }

  [[nodiscard]] std::uint8_t links(std::uint32_t first, const Run& run) {
    Index row{};
    row.base = static_cast<std::int32_t>(first);
    row.coef = run.count > 1 ? 1 : 0;
    return builder_.index(row);
  }
  [[nodiscard]] Operand partial() { return builder_.slot(0, {partial_, 1}); }
  // Where the messages of a run are stored. The first message is S until more is added.
  [[nodiscard]] Operand landing(const Run& run) {
    if (run.k == 0 && plan_.needs_partial) return partial();
    const std::uint32_t slot = run.k / plan_.timing.classes % slots_;
    if (run.count == 1 || slots_ == 1) return builder_.slot(0, {first_slot_ + slot, 1});
    Operand operand = builder_.slot(0, {first_slot_, 1});
    Index row{};
    row.base = static_cast<std::int32_t>(first_slot_);
    row.coef = 1;
    row.off = static_cast<std::int32_t>(slot);
    row.mod = slots_;
    operand.slot_ref = builder_.index(row);
    return operand;
  }
  void repeat(Action& action, std::uint8_t instances_ref) const {
    action.instances_ref = instances_ref;
    action.into.block_ref = action.a.block_ref = action.b.block_ref = block_ref_;
  }

  void add_send(const Run& run) {
    const Message& first = plan_.messages[run.k];
    const std::uint32_t after = age(run.k);
    const Operand total = after == 0 ? builder_.input(0) : builder_.output(0);
    const Operand from = first.partial ? partial() : total;
    const std::uint8_t times = builder_.count(static_cast<std::int32_t>(run.count), 0);
    const std::uint8_t link_ref = links(first.to, run);
    repeat(builder_.send_by(plan_.timing.sent(run.k), link_ref, from, after), times);
  }

  void add_receive(const Run& run) {
    const Message& first = plan_.messages[run.k];
    const std::uint32_t step = plan_.timing.received(run.k);
    const Operand news = landing(run);
    const Operand total = builder_.output(0);
    const Operand before = run.k == 0 ? builder_.input(0) : total;
    const std::uint8_t times = builder_.count(static_cast<std::int32_t>(run.count), 0);
    const std::uint8_t link_ref = links(first.from, run);
    repeat(builder_.receive_by(step, link_ref, news), times);
    repeat(builder_.combine(step, total, news, before), times);
    if (run.k == 0 || !first.adds_to_partial) return;
    repeat(builder_.combine(step, partial(), news, partial()), times);
  }

  Builder& builder_;
  Plan& plan_;
  std::uint32_t partial_ = 0, first_slot_ = 0, slots_ = 1;
  std::uint8_t block_ref_ = 0;
};

Status combine_allreduce(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                         Program& out) {
  Builder builder(out);
  const std::uint32_t p = parameters.ranks;
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kAllreduce,
                                       .algorithm = "combine",
                                       .one_block = true,
                                       .needs_commutative = p > 1,
                                       .send_ticks = parameters.send_ticks,
                                       .latency_ticks = parameters.latency_ticks});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  const Timing timing = timing_of(p, parameters.send_ticks, parameters.latency_ticks);
  if (timing.rounds >= kMaxRounds) return builder.refuse(Status::kTooLarge);
  Plan plan(timing, p);
  Combine(builder, plan, p, me).add(out.window);
  builder.phase(timing.period, static_cast<std::int32_t>(timing.steps()), 0);
  // Lower bound: every rank's data must reach all ranks.
  const std::uint32_t bound = postal_ticks(p, parameters.send_ticks, parameters.latency_ticks);
  return builder.finish(static_cast<std::int32_t>(bound), 0);
}

}  // namespace

const Algorithm kCombineRows[] = {
    row("combine", Collective::kAllreduce, combine_allreduce,
        "one block in the postal model, --lambda L/S: T_lambda(p) ticks for integer lambda",
        {.needs_commutative = true, .takes_lambda = true}),
};

}  // namespace espalier
