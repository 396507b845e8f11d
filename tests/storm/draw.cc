#include "tests/storm/draw.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/splitmix64.h"
#include "espalier/collectives/schedule/program.h"
#include "tests/storm/trial.h"

namespace espalier::storm {
namespace {

// The deadline of a trial in real time, which takes several.
constexpr std::uint64_t kRealDeadlineNs = 50'000'000;

bool combines(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kAllreduce ||
         collective == Collective::kScan || collective == Collective::kExscan ||
         collective == Collective::kReduceScatter;
}

void draw_operator(Dice& dice, const Schedule& schedule, Plan& plan) {
  const Collective collective = schedule.programs[0].collective;
  if (!schedule.commutative && dice.one_in(4)) {
    plan.op = Op::kCustom;
    plan.type = Type::kCustom;
    return;
  }
  for (;;) {
    plan.type = static_cast<Type>(dice.number(1, 16));
    plan.op = static_cast<Op>(dice.number(1, 9));
    const Operator op{.op = plan.op, .type = plan.type};
    // A product of many powers of two is not exact in 16 bits.
    if (plan.type == Type::kF16 && plan.op == Op::kProduct) continue;
    if (can_combine(op) || !combines(collective)) return;
  }
}

// Whether input and output may be the same memory. The verifier knows more; this is what every
// algorithm of the table can do.
bool may_be_in_place(const Schedule& schedule) {
  return schedule.spec.links == Links::kRouted &&
         find_algorithm(schedule.spec.collective, schedule.spec.algorithm.c_str()) != nullptr &&
         schedule.spec.collective != Collective::kAllToAll &&
         (schedule.spec.collective != Collective::kExscan || schedule.spec.algorithm == "chain");
}

// About how long the collectives take without faults.
std::uint64_t estimated_ns(const Plan& plan, const Schedule& schedule) {
  const Program& program = schedule.programs[0];
  const std::int64_t steps =
      count_value(program.counts[program.steps_ref], static_cast<std::int64_t>(plan.blocks));
  const std::uint64_t latency = plan.over == Over::kNetwork ? 1000 : 30'000;
  const std::uint64_t step = latency + plan.schedule.block_bytes + plan.pace_ns / 2;
  return plan.rounds * static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 1)) * step;
}

class FaultDice {
 public:
  FaultDice(Dice& dice, const Plan& plan, const Schedule& schedule)
      : dice_(dice), plan_(plan), schedule_(schedule), span_(estimated_ns(plan, schedule)) {}

  Fault draw(Kind kind) {
    Fault fault{.kind = kind,
                .node = dice_.number(0, static_cast<std::uint32_t>(schedule_.peers.size()) - 1)};
    const auto& peers = schedule_.peers[fault.node];
    if (peers.empty()) {
      fault.kind = Kind::kPause;
    } else {
      fault.peer = peers[dice_.number(0, static_cast<std::uint32_t>(peers.size()) - 1)];
    }
    fault.at_ns = part(span_ + span_ / 8, 0, 1000);
    const std::uint64_t deadline = plan_.deadline_ns;
    switch (fault.kind) {
      case Kind::kCorrupt: fault.bit = dice_.number(0, 4095); [[fallthrough]];
      case Kind::kDrop:
      case Kind::kDuplicate:
      case Kind::kReorder:
      case Kind::kDelay:
        fault.message = dice_.one_in(2) ? dice_.number(0, 2) : dice_.number(0, 24);
        fault.ns = part(deadline, 0, kind == Kind::kReorder ? 100 : 400);
        break;
      case Kind::kKill:
        if (dice_.one_in(2)) fault.operation = dice_.number(0, dice_.one_in(3) ? 200 : 20);
        break;
      case Kind::kPause:
        if (dice_.one_in(2)) fault.operation = dice_.number(0, dice_.one_in(3) ? 200 : 20);
        fault.ns = silence();
        break;
      case Kind::kHiccup:
        fault.ns = part(deadline, 20, 270);
        fault.every_ns = part(fault.ns, 1300, 4000);
        fault.times = dice_.number(1, 12);
        break;
      case Kind::kDrift: fault.ppm = dice_.number(900'000, 1'100'000); break;
      case Kind::kTick: fault.ns = part(deadline / 64, 1, 1000) + 1; break;
      case Kind::kOutage:
      case Kind::kRestart: fault.ns = silence(); break;
      case Kind::kNoise: fault.ppm = dice_.number(100, 5000); break;
      case Kind::kPartition:
        fault.node = dice_.number(1, static_cast<std::uint32_t>(schedule_.peers.size()) - 1);
        break;
      default: break;
    }
    return fault;
  }

 private:
  // A number between two thousandths of `whole`.
  std::uint64_t part(std::uint64_t whole, std::uint32_t from, std::uint32_t to) {
    return whole / 1000 * dice_.number(from, to) + dice_.number(0, 999) * whole / 1'000'000;
  }
  // How long a node or a link is silent: half of them are harmless.
  std::uint64_t silence() {
    return dice_.one_in(2) ? part(plan_.deadline_ns, 1, 280) : part(plan_.deadline_ns, 280, 3000);
  }

  Dice& dice_;
  const Plan& plan_;
  const Schedule& schedule_;
  std::uint64_t span_;
};

// Frames or bytes that a line loses of a million, times nodes.
constexpr std::uint64_t kMostLostByAll = 30'000;
// Frames of one collective that the lines of a router may lose: each is sent again after 1/100 of
// the deadline, and all others wait.
constexpr std::uint64_t kMostLostByRouter = 12;

// Draws what only framed links have, and leaves out what they have not.
void draw_line(Dice& dice, Plan& plan) {
  constexpr std::uint32_t kMtus[] = {112, 256, 512, 1498};
  if (dice.one_in(2)) plan.over = Over::kBytes;
  plan.mtu = kMtus[dice.number(0, 3)];
  // Up to 4 % of all frames.
  const std::uint32_t most = plan.over == Over::kBytes ? 13'000 / plan.mtu : 10'000;
  plan.line_ppm = dice.one_in(3) ? 0 : dice.number(1, most);
  plan.deadline_ns = Plan().deadline_ns;
  plan.eager_bytes = Plan().eager_bytes;
}

// A router passes on the messages of many ranks one after the other, and its slow links and resent
// frames add up: gives it the time that the collective takes without faults, measured, and fewer
// lost frames.
void allow_for_routers(const Schedule& schedule, Plan& plan) {
  if (schedule.programs.size() == schedule.programs[0].ranks) return;
  constexpr std::uint64_t kQuietDeadlineNs = 1'000'000'000;
  Plan quiet = plan;
  quiet.rounds = 1;
  quiet.line_ppm = 0;
  quiet.deadline_ns = kQuietDeadlineNs;
  const Outcome outcome = run_trial(quiet, schedule);
  if (!outcome.wrong.empty()) return;  // the trial itself breaks a promise, and is reported
  // A trial goes on for two deadlines after its last collective.
  plan.deadline_ns = std::max(plan.deadline_ns, 4 * (outcome.virtual_ns - 2 * kQuietDeadlineNs));
  std::uint64_t most = 0;  // messages that one router passes on
  for (std::size_t v = schedule.programs[0].ranks; v < outcome.sent.size(); ++v) {
    const auto& sent = outcome.sent[v];
    most = std::max(most, std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}));
  }
  // Frames of a message, and the replies to them.
  const std::uint64_t frames = most * (2 + 2 * std::uint64_t{plan.schedule.block_bytes} / plan.mtu);
  const std::uint64_t unit = plan.over == Over::kBytes ? plan.mtu : 1;
  plan.line_ppm = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      plan.line_ppm, kMostLostByRouter * 1'000'000 / std::max<std::uint64_t>(1, frames * unit)));
}

std::vector<Kind> possible_kinds(Over over) {
  std::vector<Kind> kinds;
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    if (is_possible(static_cast<Kind>(kind), over)) kinds.push_back(static_cast<Kind>(kind));
  }
  return kinds;
}

}  // namespace

const Schedule& Schedules::drawn(std::uint64_t seed) {
  const std::uint64_t group = seed / kSeedsPerSchedule;
  if (group != group_ || !drawn_) {
    group_ = group;
    Dice dice(splitmix64(splitmix64(group) + 1));
    drawn_.emplace(draw_schedule(dice, most_ranks_));
  }
  return *drawn_;
}

const Schedule* Schedules::made(const ScheduleSpec& spec, std::string& error) {
  if (drawn_ && drawn_->spec == spec) return &*drawn_;
  if (made_ && made_->spec == spec) return &*made_;
  auto schedule = make_schedule(spec);
  if (!schedule) {
    error = schedule.error().message;
    return nullptr;
  }
  made_.emplace(*std::move(schedule));
  return &*made_;
}

Plan draw_plan(std::uint64_t seed, const Schedule& schedule, Over over) {
  Dice dice(splitmix64(splitmix64(seed) + 1000));
  Plan plan;
  plan.over = over;
  plan.schedule = schedule.spec;
  plan.seed = seed;
  const Program& program = schedule.programs[0];
  draw_operator(dice, schedule, plan);
  plan.rounds = dice.number(1, 3);
  plan.blocks = dice.one_in(3) ? 1 : dice.number(1, 6);
  const std::uint64_t bytes =
      std::uint64_t{program.ranks} * program.segments * std::max(16u, plan.schedule.block_bytes);
  plan.blocks = std::max<std::uint64_t>(1, std::min(plan.blocks, (128u << 10) / bytes));
  plan.missing = dice.one_in(2) ? 0 : dice.number(0, 5);
  plan.unequal = schedule.unequal && dice.one_in(3);
  plan.in_place = may_be_in_place(schedule) && dice.one_in(3);
  const std::uint32_t least = program.latency_ticks;
  plan.machine_window = dice.one_in(2) ? 16 : dice.number(std::max(1u, least), 16);
  plan.endpoint_window = dice.one_in(2) ? 16 : dice.number(std::max(8u, least), 16);
  constexpr std::uint64_t kEager[] = {0, 16, 64, 64, 100, 4096};
  plan.eager_bytes = kEager[dice.number(0, 5)];
  plan.eager_copies = !dice.one_in(3);
  plan.jitter = dice.one_in(2) ? 0 : dice.number(0, 200);
  plan.link_jitter = dice.one_in(3) ? dice.number(0, 100) : 0;
  if (dice.one_in(4)) plan.pace_ns = dice.number(1, 10'000);
  const bool small = schedule.peers.size() <= 24;
  plan.deadline_ns = small && dice.one_in(4) ? 4'000'000 : 20'000'000;
  plan.check_blocks = !dice.one_in(3);
  if (is_framed(over)) draw_line(dice, plan);
  // In a large cluster a rank may wait for all others in turn: slow nodes and resent frames would
  // add up to more than the deadline, and the cluster would rightly be stalled.
  const std::uint64_t nodes = schedule.peers.size();
  const std::uint64_t polls = is_framed(over) ? 512 : 128;  // that a message of each may need
  plan.pace_ns = std::min<std::uint64_t>(plan.pace_ns, plan.deadline_ns / polls / nodes);
  plan.line_ppm =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.line_ppm, kMostLostByAll / nodes));
  if (over != Over::kNetwork) {
    plan.jitter = plan.link_jitter = 0;
    plan.eager_copies = Plan().eager_copies;
    plan.keyed = dice.one_in(2);
  }
  if (is_framed(over)) allow_for_routers(schedule, plan);
  if (is_real(over)) plan.deadline_ns = kRealDeadlineNs;
  const std::vector<Kind> kinds = possible_kinds(over);
  const std::uint32_t often = dice.number(0, 19);
  const std::uint32_t faults = often < 4 ? 0 : often < 11 ? 1 : often < 16 ? 2 : dice.number(3, 5);
  FaultDice draw(dice, plan, schedule);
  for (std::uint32_t i = 0; i < faults; ++i) {
    const Kind kind = kinds[dice.number(0, static_cast<std::uint32_t>(kinds.size()) - 1)];
    // An operation, and a held-back link, belong to one fault.
    const Fault fault = draw.draw(kind);
    const bool taken = std::any_of(plan.faults.begin(), plan.faults.end(), [&](const Fault& other) {
      return other.node == fault.node && (other.kind == fault.kind || other.operation != kNever);
    });
    if (!taken) plan.faults.push_back(fault);
    if (fault.kind == Kind::kCorrupt || fault.kind == Kind::kNoise) plan.check_blocks = true;
  }
  const bool damaged = std::any_of(plan.faults.begin(), plan.faults.end(), [](const Fault& fault) {
    return is_of_message(fault.kind) || fault.kind == Kind::kNoise;
  });
  plan.poison = !damaged && over == Over::kNetwork && dice.one_in(2);
  return plan;
}

}  // namespace espalier::storm
