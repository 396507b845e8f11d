#include "tests/storm/trial.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "base/splitmix64.h"
#include "collectives/simulation/node_memory.h"
#include "collectives/simulation/testing/reference.h"
#include "espalier/collectives/machine/machine.h"
#include "tests/storm/carrier.h"
#include "tests/storm/message_faults.h"
#include "tests/storm/promises.h"
#include "tests/storm/watched_endpoint.h"

namespace espalier::storm {
namespace {

// A machine that asks for an immediate poll this many times and does nothing is broken.
constexpr int kMaxIdlePolls = 100'000;

// Frames that nodes send back and forth at one time, on lines without latency, must come to an end.
constexpr std::uint64_t kMaxTurns = 1'000'000;

// Memory that trials use in turn: machines are large.
struct NodeStore {
  std::optional<Machine> machine;
  sim::NodeMemory memory;
};
NodeStore& store(std::uint32_t node) {
  static thread_local std::deque<NodeStore> all;
  while (all.size() <= node) all.emplace_back();
  return all[node];
}

struct Interval {
  std::uint64_t from, until;
};

// A fault that happens at a time, or the boot of a node that restarts.
struct Timed {
  std::uint64_t ns;
  std::size_t fault;
  bool boots = false;

  bool operator<(const Timed& other) const { return ns < other.ns; }
};

std::unique_ptr<Carrier> make_carrier(const Plan& plan, const Schedule& schedule) {
  if (is_framed(plan.over)) return framed_carrier(plan, schedule);
  if (is_real(plan.over)) return real_carrier(plan, schedule);
  return simulated_carrier(plan, schedule);
}

struct Node {
  std::unique_ptr<fault::FaultEndpoint> faults;
  std::unique_ptr<WatchedEndpoint> endpoint;
  Machine* machine = nullptr;
  std::unique_ptr<Machine::Prepared> prepared;  // of the rounds in which the node prepares
  sim::NodeMemory* memory = nullptr;
  std::vector<std::uint64_t> offsets;
  std::vector<Interval> pauses;
  std::vector<std::uint64_t> wakes;
  std::uint64_t due_ns = 0, poll_ns = kNever;
  std::uint32_t round = 0;
  bool running = false, finished = false, alive = true;
  std::uint64_t digest = 0;  // of the memory when its collective failed
  NodeFacts facts;
};

std::uint64_t digest_of(const sim::NodeMemory& memory) {
  std::uint64_t digest = 0;
  for (const auto& part : {memory.input(), memory.output()}) {
    for (const std::uint8_t byte : part) digest = (digest ^ byte) * 0x100000001b3ull;
  }
  return digest;
}

class Trial {
 public:
  Trial(const Plan& plan, const Schedule& schedule)
      : plan_(plan),
        schedule_(schedule),
        carrier_(make_carrier(plan, schedule)),
        nodes_(schedule.peers.size()),
        alive_(nodes_.size(), 1),
        pauses_(nodes_.size()),
        open_(nodes_.size(), 1),
        due_(nodes_.size()),
        unfinished_(static_cast<std::int64_t>(nodes_.size())) {
    facts_.struck.resize(plan.faults.size());
    facts_.struck_ns.resize(plan.faults.size());
    for (std::uint32_t round = 0; round < plan.rounds; ++round) {
      jobs_.push_back(job_of(plan, schedule, round));
      outputs_.push_back(testing::outputs_of(jobs_.back(), ranks()));
    }
    for (std::uint32_t v = 0; v < nodes(); ++v) build(v);
    for (std::size_t i = 0; i < plan.faults.size(); ++i) arm(i);
  }

  Outcome run() {
    for (std::uint32_t v = 0; v < nodes(); ++v) start(v);
    drive();
    Outcome outcome;
    conclude(outcome);
    return outcome;
  }

 private:
  [[nodiscard]] std::uint32_t ranks() const { return schedule_.programs[0].ranks; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }

  // ---- building ----

  void build(std::uint32_t v) {
    Node& node = nodes_[v];
    // A message of the node that boots again would have the number of an earlier one.
    const bool is_first = node.endpoint == nullptr;
    const fault::Faults faults = is_first ? message_faults(plan_, schedule_, v) : fault::Faults();
    node.faults = nullptr;
    Endpoint* inner = &carrier_->endpoint(v);
    if (has_faults(faults)) {
      fault::FaultEndpoint::Hooks hooks;
      // The endpoint's clock did not begin with the trial.
      hooks.wake = [this, &node, inner](std::uint64_t at) {
        node.wakes.push_back(carrier_->now_ns() + at - inner->now());
      };
      node.faults = std::make_unique<fault::FaultEndpoint>(*inner, faults, hooks);
      inner = node.faults.get();
    }
    node.endpoint =
        std::make_unique<WatchedEndpoint>(*inner, [this] { return carrier_->now_ns(); });
    for (const Fault& fault : plan_.faults) {
      if (fault.node != v) continue;
      if (fault.kind == Kind::kDrift) node.endpoint->clock.ppm = fault.ppm;
      if (fault.kind == Kind::kTick)
        node.endpoint->clock.tick_ns = std::max<std::uint64_t>(1, fault.ns);
    }
    NodeStore& memory = store(v);
    node.machine = &memory.machine.emplace();
    node.memory = &memory.memory;
    MachineConfig config{.window = plan_.machine_window,
                         .deadline_ns = plan_.deadline_ns,
                         .check_blocks = plan_.check_blocks};
    if (node.machine->init(*node.endpoint, config) != Status::kOk) {
      node.facts.wrong = "the machine refuses its endpoint";
    }
  }

  void cut(std::uint32_t from, std::uint32_t to, std::uint64_t at_ns) {
    WatchedEndpoint& endpoint = *nodes_[to].endpoint;
    const std::uint32_t link = link_to(schedule_, to, from);
    if (link >= endpoint.incoming.size()) return;
    endpoint.incoming[link].cut_at = std::min(endpoint.incoming[link].cut_at, at_ns);
  }

  // Prepares a fault, except those of messages and clocks.
  void arm(std::size_t i) {
    const Fault& fault = plan_.faults[i];
    if (fault.node >= nodes() || fault.peer >= nodes()) return;
    Node& node = nodes_[fault.node];
    WatchedEndpoint& endpoint = *node.endpoint;
    facts_.struck_ns[i] = fault.at_ns;
    switch (fault.kind) {
      case Kind::kKill:
      case Kind::kPause:
        if (fault.operation == kNever) {
          timed_.push_back({fault.at_ns, i});
          break;
        }
        endpoint.strike_at_operation = fault.operation;
        endpoint.strike = [this, i] { strike(i); };
        break;
      case Kind::kHiccup: timed_.push_back({fault.at_ns, i}); break;
      case Kind::kRestart:
        timed_.push_back({fault.at_ns, i});
        timed_.push_back({fault.at_ns + fault.ns, i, true});
        break;
      case Kind::kDeaf:
        if (carrier_->take_fault(fault, i)) break;
        for (const std::uint32_t peer : schedule_.peers[fault.node]) {
          cut(peer, fault.node, fault.at_ns);
        }
        break;
      case Kind::kOneWay:
        if (!carrier_->take_fault(fault, i)) cut(fault.node, fault.peer, fault.at_ns);
        break;
      case Kind::kPartition:
        if (carrier_->take_fault(fault, i)) break;
        for (std::uint32_t v = 0; v < nodes(); ++v) {
          for (const std::uint32_t u : schedule_.peers[v]) {
            if ((v < fault.node) != (u < fault.node)) cut(v, u, fault.at_ns);
          }
        }
        break;
      case Kind::kOutage: {
        if (carrier_->take_fault(fault, i)) break;
        WatchedEndpoint& to = *nodes_[fault.peer].endpoint;
        const std::uint32_t link = link_to(schedule_, fault.peer, fault.node);
        if (link >= to.incoming.size()) break;
        to.incoming[link].hold_from = fault.at_ns;
        to.incoming[link].hold_until = fault.at_ns + fault.ns;
        break;
      }
      default: break;
    }
  }

  // A fault of a node happens now.
  void strike(std::size_t i) {
    const Fault& fault = plan_.faults[i];
    const std::uint64_t now = carrier_->now_ns();
    facts_.struck[i] = true;
    facts_.struck_ns[i] = now;
    Node& node = nodes_[fault.node];
    switch (fault.kind) {
      case Kind::kKill:
      case Kind::kRestart: kill(fault.node); break;
      case Kind::kPause: node.pauses.push_back({now, now + fault.ns}); break;
      case Kind::kHiccup:
        for (std::uint64_t k = 0; k < fault.times; ++k) {
          node.pauses.push_back({now + k * fault.every_ns, now + k * fault.every_ns + fault.ns});
        }
        break;
      default: break;
    }
    if (!node.pauses.empty()) pauses_[fault.node] = 1;
  }

  void kill(std::uint32_t v) {
    nodes_[v].alive = false;
    nodes_[v].endpoint->dead = true;
    carrier_->kill(v);
    alive_[v] = 0;
    note_poll(v);
  }

  // The node that fault i killed begins again, with the first collective. Nothing is left of its
  // first life but what look_at() has to know.
  void boot(std::size_t i) {
    const std::uint32_t v = plan_.faults[i].node;
    Node& node = nodes_[v];
    if (node.alive || !node.facts.wrong.empty() || is_killed(v, i)) return;
    for (std::size_t k = 0; k < plan_.faults.size(); ++k) look_at(k);
    if (!carrier_->start_again(v)) return;
    node.alive = true;
    node.round = 0;
    node.finished = false;
    node.facts = NodeFacts();
    node.due_ns = 0;
    build(v);
    alive_[v] = 1;
    pauses_[v] = 0;
    node.pauses.clear();
    start(v);
    note_poll(v);
  }

  // Whether a fault other than number `but` has killed the node.
  [[nodiscard]] bool is_killed(std::uint32_t v, std::size_t but) const {
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      const Fault& fault = plan_.faults[i];
      if (i != but && facts_.struck[i] && fault.node == v &&
          (fault.kind == Kind::kKill || fault.kind == Kind::kRestart)) {
        return true;
      }
    }
    return false;
  }

  // ---- running ----

  void start(std::uint32_t v) {
    Node& node = nodes_[v];
    const testing::Job& job = jobs_[node.round];
    const Program& program = schedule_.programs[v];
    ElementCounts counts = job.count;
    if (!job.counts.empty()) {
      node.offsets.resize(unequal_offsets(job.collective, ranks()));
      counts = {job.counts.data(), job.counts.size(), node.offsets.data()};
    }
    Layout layout;
    Status status = make_layout(program, counts, element_bytes(job.op), layout);
    if (status == Status::kOk) {
      node.memory->allocate(program, layout, job.in_place);
      const testing::Bytes input =
          v < ranks() ? testing::input_of(job, ranks(), v) : testing::Bytes();
      std::copy(input.begin(), input.end(), node.memory->input().begin());
      node.endpoint->running = true;
      if ((v + node.round) % 2 == 0) {
        status = node.machine->start(program, node.memory->buffers(), job.op, counts);
      } else {
        const Buffers buffers = node.memory->buffers();
        if (node.prepared == nullptr) node.prepared = std::make_unique<Machine::Prepared>();
        status = node.machine->prepare(program, buffers, job.op, counts, *node.prepared);
        if (status == Status::kOk) status = node.machine->start(*node.prepared);
      }
    }
    node.running = status == Status::kOk;
    if (node.running) return;
    if (status != node.machine->cause().status) {
      node.facts.wrong = std::string("start() returned ") + status_name(status);
    }
    fail(v, status);
  }

  void fail(std::uint32_t v, Status status) {
    Node& node = nodes_[v];
    node.running = false;
    node.finished = true;
    node.endpoint->running = false;
    node.facts.status = status;
    node.facts.ended_ns = carrier_->now_ns();
    node.digest = digest_of(*node.memory);
  }

  void check_result(std::uint32_t v) {
    Node& node = nodes_[v];
    if (!node.facts.wrong.empty()) return;
    const auto output = node.memory->output();
    const testing::Bytes none;
    const testing::Bytes& expected = v < ranks() ? outputs_[node.round][v] : none;
    if (!std::equal(output.begin(), output.end(), expected.begin(), expected.end())) {
      node.facts.wrong = "an incorrect result, in round " + std::to_string(node.round);
    }
    if (!node.memory->guards_are_intact()) node.facts.wrong = "a byte outside its buffers";
  }

  // Polls the node until it has nothing to do before the next event.
  void poll(std::uint32_t v) {
    Node& node = nodes_[v];
    std::erase_if(node.wakes, [now = carrier_->now_ns()](std::uint64_t at) { return at <= now; });
    for (int idle = 0; node.alive; ++idle) {
      const std::uint32_t before = node.endpoint->activity();
      const Status status = node.machine->poll();
      if (!node.alive) return;
      bool more = node.endpoint->activity() != before;
      if (status == Status::kOk && node.running) {
        check_result(v);
        node.running = node.endpoint->running = false;
        if (++node.round < plan_.rounds) {
          start(v);
          more = true;
        } else {
          node.finished = true;
        }
      } else if (status == Status::kBusy) {
        node.finished = false;
      } else if (status != Status::kOk && node.facts.status == Status::kOk) {
        fail(v, status);
      } else {
        node.finished = true;
      }
      const Cause& cause = node.machine->cause();
      if (node.facts.found_ns == kNever && cause.status != Status::kOk && cause.detector == v) {
        node.facts.found_ns = carrier_->now_ns();
      }
      node.due_ns =
          std::min(node.endpoint->clock.global(node.machine->next_deadline()), carrier_->due_ns(v));
      if (paused_until(v) != 0) return;  // it struck just now
      if (more) {
        idle = 0;
      } else if (node.due_ns > carrier_->now_ns()) {
        return;
      }
      if (idle > kMaxIdlePolls) {
        facts_.hang = "node " + std::to_string(v) + " asks for immediate polls without end";
        return;
      }
    }
  }

  // The end of the node's pause; 0: it does not pause.
  [[nodiscard]] std::uint64_t paused_until(std::uint32_t v) const {
    const std::uint64_t now = carrier_->now_ns();
    std::uint64_t until = 0;
    for (const Interval& pause : nodes_[v].pauses) {
      if (now >= pause.from && now < pause.until) until = std::max(until, pause.until);
    }
    return until;
  }

  // Whether the node, which has something to do, does it later; `next`: when.
  bool waits(Node& node, std::uint64_t now, std::uint64_t& next) {
    if (plan_.pace_ns == 0) return false;
    if (node.poll_ns == kNever) {
      node.poll_ns = now + splitmix64(plan_.seed ^ splitmix64(++late_polls_)) % plan_.pace_ns;
    }
    if (now < node.poll_ns) {
      next = std::min(next, node.poll_ns);
      return true;
    }
    node.poll_ns = kNever;
    return false;
  }

  // Takes over what poll() changed, into what drive() reads for every node at every event.
  void note_poll(std::uint32_t v) {
    const Node& node = nodes_[v];
    const bool unfinished = node.alive && !node.finished;
    unfinished_ += (unfinished ? 1 : 0) - (open_[v] ? 1 : 0);
    open_[v] = unfinished;
    due_[v] = std::min(node.due_ns, node.endpoint->next_ns());
    for (const std::uint64_t at : node.wakes) due_[v] = std::min(due_[v], at);
    facts_.moved_ns = std::max(facts_.moved_ns, node.endpoint->moved_ns());
  }

  void drive() {
    std::uint64_t over_ns = kNever;  // at which the trial ends, if nothing more happens
    const std::uint64_t patience = 8 * plan_.deadline_ns;
    std::sort(timed_.begin(), timed_.end());
    std::size_t timed = 0;
    std::uint64_t before = kNever, turns = 0;  // at the same time
    for (;;) {
      const std::uint64_t now = carrier_->now_ns();
      turns = now == before ? turns + 1 : 0;
      before = now;
      if (turns > kMaxTurns) {
        facts_.hang = "something happens without end, and time does not go on";
        return;
      }
      for (; timed < timed_.size() && timed_[timed].ns <= now; ++timed) {
        timed_[timed].boots ? boot(timed_[timed].fault) : strike(timed_[timed].fault);
      }
      std::uint64_t next = timed < timed_.size() ? timed_[timed].ns : kNever;
      std::uint64_t pauses = 0;
      bool pausing = false;  // a node has something to do, and pauses
      for (std::uint32_t v = 0; v < nodes(); ++v) {
        if (!alive_[v]) continue;
        if (pauses_[v]) {
          if (const std::uint64_t until = paused_until(v); until != 0) {
            next = std::min(next, until);
            pauses = std::max(pauses, until);
            pausing = true;
            continue;
          }
        }
        if (due_[v] <= now || carrier_->ready(v)) {
          if (waits(nodes_[v], now, next)) continue;
          poll(v);
          if (!facts_.hang.empty()) return;
          note_poll(v);
        }
        next = std::min(next, due_[v]);
      }
      const bool all_finished = !pausing && unfinished_ == 0;
      if (!all_finished) {
        over_ns = kNever;
      } else if (over_ns == kNever) {
        over_ns = now + 2 * plan_.deadline_ns;  // causes may still be in flight
      }
      if (now >= over_ns) return;
      const std::uint64_t quiet_since = std::max({facts_.moved_ns, pauses, last_fault(now)});
      if (now > quiet_since + patience && over_ns == kNever) {
        facts_.hang = "nothing moved for eight deadlines";
        return;
      }
      next = std::min(next, over_ns);
      if (!carrier_->advance(next) && next == kNever) {
        if (!all_finished) facts_.hang = "nothing will ever happen";
        return;
      }
    }
  }

  // The time of the last fault up to now.
  [[nodiscard]] std::uint64_t last_fault(std::uint64_t now) const {
    std::uint64_t last = 0;
    for (const Fault& fault : plan_.faults) {
      const std::uint64_t end = fault.at_ns + fault.ns + fault.every_ns * fault.times;
      last = std::max(last, std::min(end, now));
    }
    return last;
  }

  // ---- the end ----

  // Finds out whether the fault, which strike() does not see, did something so far.
  void look_at(std::size_t i) {
    const Fault& fault = plan_.faults[i];
    if (facts_.struck[i] || fault.node >= nodes() || fault.peer >= nodes()) return;
    facts_.struck[i] = carrier_->has_struck(i) || has_struck(fault);
  }

  [[nodiscard]] bool has_struck(const Fault& fault) const {
    const Node& node = nodes_[fault.node];
    const WatchedEndpoint& peer = *nodes_[fault.peer].endpoint;
    const auto any = [this](auto condition) {
      return std::any_of(nodes_.begin(), nodes_.end(), condition);
    };
    switch (fault.kind) {
      case Kind::kDrop:
      case Kind::kDuplicate:
      case Kind::kReorder:
      case Kind::kCorrupt:
      case Kind::kDelay: {
        if (node.faults == nullptr) return false;  // it has restarted
        const std::uint32_t link = link_to(schedule_, fault.node, fault.peer);
        const auto& sent = node.endpoint->sent();
        return link < sent.size() && sent[link] > fault.message;
      }
      case Kind::kDeaf: return node.endpoint->lost() > 0;
      case Kind::kOneWay: return peer.lost() > 0;
      case Kind::kOutage: return peer.held() > 0;
      case Kind::kPartition: return any([](const Node& one) { return one.endpoint->lost() > 0; });
      case Kind::kNoise:
        return any([](const Node& one) { return one.faults != nullptr && has_noise(*one.faults); });
      case Kind::kDrift:
      case Kind::kTick: return carrier_->now_ns() > 0;
      default: return false;
    }
  }

  void conclude(Outcome& outcome) {
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      Node& node = nodes_[v];
      node.facts.alive = node.alive;
      if (carrier_->is_mistaken(v)) node.facts.wrong = "its peers took it for the one that it was";
      node.facts.rounds = node.round;
      outcome.operations.push_back(node.endpoint->operations());
      outcome.sent.push_back(node.endpoint->sent());
      for (const std::uint64_t messages : node.endpoint->sent()) outcome.messages += messages;
      outcome.collectives += node.round;
      if (node.alive) {
        node.facts.ended = node.finished;
        node.facts.cause = node.machine->cause();
        if (node.facts.wrong.empty()) node.facts.wrong = node.endpoint->violation();
        if (!node.memory->guards_are_intact()) node.facts.wrong = "a byte outside its buffers";
        if (node.facts.wrong.empty() && node.facts.status != Status::kOk &&
            node.digest != digest_of(*node.memory)) {
          node.facts.wrong = "its memory changed after it had failed";
        }
      }
      facts_.nodes.push_back(node.facts);
    }
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      look_at(i);
      if (facts_.struck[i]) ++outcome.struck[static_cast<std::size_t>(plan_.faults[i].kind)];
    }
    Broken broken = broken_promise(plan_, schedule_, facts_);
    outcome.wrong = std::move(broken.text);
    outcome.wrong_kind = std::move(broken.kind);
    outcome.virtual_ns = carrier_->now_ns();
    for (const NodeFacts& node : facts_.nodes) {
      if (!node.alive) continue;
      outcome.verdicts[node.status == Status::kOk ? "right" : status_name(node.status)] = 1;
    }
  }

  const Plan& plan_;
  const Schedule& schedule_;
  std::unique_ptr<Carrier> carrier_;
  std::vector<Node> nodes_;
  std::vector<testing::Job> jobs_;
  std::vector<std::vector<testing::Bytes>> outputs_;  // by round and rank
  std::vector<Timed> timed_;                          // by time
  std::uint64_t late_polls_ = 0;
  // By node: whether it lives, ever pauses, has something left to do; when it is polled at last.
  std::vector<std::uint8_t> alive_, pauses_, open_;
  std::vector<std::uint64_t> due_;
  std::int64_t unfinished_;  // nodes that have something left to do
  Facts facts_;
};

}  // namespace

Outcome run_trial(const Plan& plan, const Schedule& schedule) {
  return Trial(plan, schedule).run();
}

}  // namespace espalier::storm
