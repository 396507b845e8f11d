#include "espalier/collectives/simulation/run.h"

#include <limits>

#include "collectives/simulation/deadlines.h"
#include "espalier/hal/sim/network.h"
#include "espalier/internal/base/assert.h"
#include "hal/sim/monotone_queue.h"
#include "hal/sim/network_state.h"

namespace espalier::sim {
namespace {

constexpr std::uint64_t kNoDeadline = Deadlines::kNone;
// The latest time that can be represented: the network counts picoseconds.
constexpr std::uint64_t kEndOfTime = kNoDeadline / 1000 - 1;
constexpr std::int64_t kNoStepLimit = std::numeric_limits<std::int64_t>::max();
// A machine that asks for an immediate poll this many times and does nothing is broken.
constexpr int kMaxIdlePolls = 1'000'000;
// A program is broken if its machines stay busy through this many steps in which no block moves.
constexpr int kMaxIdleSteps = 65'536;
// Visits of nodes between two ticks.
constexpr std::uint64_t kVisitsPerTick = 1 << 16;
// How many nodes ahead a machine is announced to Machines::expect().
constexpr std::size_t kAhead = 2;

// Machines that are all in memory at once.
class Pointers final : public Machines {
 public:
  explicit Pointers(const std::vector<Machine*>& machines) : machines_(machines) {}
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(machines_.size());
  }
  [[nodiscard]] bool has(std::uint32_t node) const override { return machines_[node] != nullptr; }
  [[nodiscard]] Machine& at(std::uint32_t node) override { return *machines_[node]; }

 private:
  const std::vector<Machine*>& machines_;
};

}  // namespace

// Lock step: the nodes that must be polled in a step; the others are skipped.
class DueSteps {
 public:
  // Schedules a poll of the node at the beginning of `step`, which is after the last step taken.
  void add(std::uint32_t node, std::int64_t step) {
    ESPALIER_ASSERT(step >= 0 && step > taken_);
    if (node >= last_.size()) last_.resize(node + std::size_t{1}, -1);
    if (last_[node] == step) return;
    last_[node] = step;
    queue_.push(static_cast<std::uint64_t>(step), node);
  }

  // Adds the nodes that are due up to `step` to `nodes`.
  void take(std::int64_t step, std::vector<std::uint32_t>& nodes) {
    ESPALIER_ASSERT(step >= taken_);
    taken_ = step;
    while (!queue_.empty() && queue_.least() <= static_cast<std::uint64_t>(step)) {
      nodes.push_back(queue_.pop());
    }
  }

 private:
  MonotoneQueue<std::uint32_t> queue_;  // nodes by step
  std::vector<std::int64_t> last_;      // by node: the last step for which it was added
  std::int64_t taken_ = -1;             // the last step taken
};

class Runner {
 public:
  Runner(Network& network, Machines& machines, const Tick& tick)
      : network_(network),
        state_(*network.state_),
        machines_(machines),
        tick_(tick),
        busy_(machines.size(), false),
        deadlines_(machines.size()),
        start_(network.now()),
        end_(start_) {}

  RunResult free_run() {
    poll_all();
    while (message_.empty() && any_busy()) {
      poll_touched();
      if (!any_busy()) break;
      if (next_deadline() <= network_.now_ns()) {
        poll(deadlines_.least().node);
      } else if (!advance(next_deadline()) && next_deadline() == kNoDeadline) {
        fail(Status::kStalled, stuck());
      }
    }
    state_.poster = nullptr;
    return result();
  }

  std::int64_t first_to_end(std::uint64_t until_ns) {
    poll_all();
    do {
      poll_touched();
    } while (first_ended_ < 0 && advance(until_ns));
    return first_ended_;
  }

  RunResult lock_step(std::uint32_t latency_ticks) {
    int idle = 0;
    in_lock_step_ = true;
    for (step_ = 0;; ++step_) {
      network_.begin_step();
      step_limit_ = step_ + 1;
      settle(latency_ticks);
      if (status_ != Status::kOk || !message_.empty() || state_.dead > 0) break;
      bool moved = false;
      const std::string wrong = network_.end_step(latency_ticks, moved);
      if (!wrong.empty()) {
        fail(Status::kNotInSchedule, "step " + std::to_string(step_) + ": " + wrong);
        break;
      }
      if (moved) steps_ = step_ + 1;
      if (!any_busy()) break;
      idle = moved ? 0 : idle + 1;
      if (idle > kMaxIdleSteps) fail(Status::kStalled, stuck());
    }
    in_lock_step_ = false;
    step_limit_ = kNoStepLimit;
    // Detecting a dead node, and announcing a machine's failure to the others, needs deadlines.
    if (message_.empty()) return free_run();
    for (std::uint32_t v = 0; v < machines_.size(); ++v) {
      if (machines_.has(v)) machines_.at(v).set_step_limit(kNoStepLimit);
    }
    return result();
  }

 private:
  [[nodiscard]] bool here(std::uint32_t node) const {
    return machines_.has(node) && !state_.nodes[node].dead;
  }

  void fail(Status status, const std::string& message) {
    if (status_ == Status::kOk) status_ = status;
    message_ = message;
  }

  // Returns the least deadline, or a lower bound of it if the network's next event is earlier.
  std::uint64_t next_deadline() {
    const std::uint64_t bound = deadlines_.bound();
    const bool event_first = state_.next_event() / 1000 < bound && bound > network_.now_ns();
    return event_first ? bound : deadlines_.least().value;
  }

  bool advance(std::uint64_t until_ns) {
    return state_.advance_moment(until_ns > kNever / 1000 ? kNever : until_ns * 1000);
  }

  void poll_all() {
    for (std::uint32_t v = 0; v < machines_.size(); ++v) poll(v);
  }

  void poll_touched() {
    while (!state_.touched.empty()) {
      touched_.swap(state_.touched);
      node_order_.sort(touched_, network_.nodes());
      for (std::size_t i = 0; i < touched_.size(); ++i) {
        for (std::size_t stage = 0; stage < NetworkState::kExpectStages; ++stage) {
          const std::size_t later = i + (NetworkState::kExpectStages - stage) * kAhead;
          if (later < touched_.size()) expect(touched_[later], stage);
        }
        const std::uint32_t node = touched_[i];
        state_.nodes[node].touched = false;
        if (node < machines_.size() && !waits(node)) poll(node);
      }
      touched_.clear();
    }
  }

  void expect(std::uint32_t node, std::size_t stage) {
    if (node >= machines_.size()) return;
    state_.expect_poll(node, stage);
    machines_.expect(node, stage);
  }

  // Whether the node, whose endpoint has changed, polls it later. It is then woken at that time.
  bool waits(std::uint32_t node) {
    if (network_.model().pace == 0) return false;
    const std::uint64_t now = network_.now_ns();
    if (poll_ns_.empty()) poll_ns_.resize(machines_.size(), kNoDeadline);
    std::uint64_t& poll_ns = poll_ns_[node];
    if (poll_ns == kNoDeadline) {
      poll_ns = now + network_.delay_ns(node, ++late_polls_);
      network_.wake(node, poll_ns);
    }
    if (now < poll_ns) return true;
    poll_ns = kNoDeadline;
    return false;
  }

  // Polls until the node has nothing to do before the next event.
  void poll(std::uint32_t node) {
    if (!here(node)) {
      busy_count_ -= busy_[node] ? 1 : 0;
      busy_[node] = false;
      deadlines_.set(node, kNoDeadline);
      return;
    }
    Machine& machine = machines_.at(node);
    const NodeState& state = state_.nodes[node];
    const NodeEndpoint& endpoint = state_.endpoints[node];
    state_.poster = &machine;
    state_.planned_step = [](const void* poster, std::uint32_t context) {
      return static_cast<const Machine*>(poster)->step_of(context);
    };
    machine.set_step_limit(step_limit_);
    std::uint64_t deadline = kNoDeadline;
    for (int idle = 0;; ++idle) {
      const std::uint32_t before = endpoint.activity;
      note(node, machine.poll());
      ++polls_;
      deadline = busy_[node] ? machine.next_deadline() : kNoDeadline;
      if (deadline > kEndOfTime) deadline = kNoDeadline;
      if (endpoint.activity != before || state.pending()) {
        idle = 0;
      } else if (deadline > network_.now_ns()) {
        break;
      }
      if (idle >= kMaxIdlePolls) {
        fail(Status::kStalled,
             "node " + std::to_string(node) + ": its machine asks for immediate polls without end");
        break;
      }
    }
    deadlines_.set(node, deadline);
    if (in_lock_step_) await_step(node, machine);
    if (tick_ && ++visits_ % kVisitsPerTick == 0) tick_(step_);
  }

  // Schedules the node's next poll, as it has nothing more to do in this step. If it could not
  // issue a step within the step limit, or could not post an issued step, it is polled again in the
  // next step.
  void await_step(std::uint32_t node, const Machine& machine) {
    const std::int64_t next = machine.next_step();
    if (next < step_limit_ || machine.refused()) {
      due_.add(node, step_limit_);
    } else if (next != InstanceScheduler::kNever) {
      due_.add(node, next);
    }
  }

  void note(std::uint32_t node, Status status) {
    const bool busy = status == Status::kBusy;
    if (busy != busy_[node]) {
      busy_[node] = busy;
      busy_count_ += busy ? 1 : -1;
      if (!busy) end_ = network_.now();
    }
    if (!busy && status != Status::kOk && status_ == Status::kOk) status_ = status;
    if (status == Status::kOk && first_ended_ < 0) first_ended_ = node;
  }

  // Whether any live node is busy. A node killed since its last poll is not.
  bool any_busy() {
    if (busy_count_ == 0) return false;
    for (std::uint32_t v = first_busy_; v < machines_.size(); ++v) {
      if (busy_[v] && here(v)) {
        first_busy_ = v;
        return true;
      }
    }
    first_busy_ = 0;
    for (std::uint32_t v = 0; v < machines_.size(); ++v) {
      if (busy_[v] && here(v)) return true;
    }
    return false;
  }

  // Runs all events of the step. If then no post lacks its match, nodes poll only when they are
  // asked for the next step, and not in between: once per step.
  void settle(std::uint32_t latency_ticks) {
    if (step_ == 0) {
      poll_all();
    } else {
      due_.take(step_, state_.touched);
      poll_touched();
    }
    if (network_.model().pace == 0 && message_.empty()) {
      while (advance(kNoDeadline)) {
      }
      if (network_.step_is_complete(latency_ticks)) return;
    }
    do {
      poll_touched();
    } while (message_.empty() && advance(kNoDeadline));
  }

  [[nodiscard]] std::string stuck() const {
    for (std::uint32_t v = 0; v < machines_.size(); ++v) {
      if (!busy_[v] || !here(v)) continue;
      const StallReport report = machines_.at(v).stall_report();
      std::string text = "node " + std::to_string(v) + " is busy, but no event will follow";
      if (report.waiting) {
        text += "; in step " + std::to_string(report.step) + " it waits for a " +
                (report.sending ? "send to" : "receive from") + " node " +
                std::to_string(report.peer);
      }
      return text;
    }
    return "";
  }

  [[nodiscard]] RunResult result() const {
    return {status_, end_ - start_, steps_, message_, polls_};
  }

  Network& network_;
  NetworkState& state_;
  Machines& machines_;
  const Tick tick_;
  std::vector<bool> busy_;
  Deadlines deadlines_;
  DueSteps due_;
  std::vector<std::uint32_t> touched_;
  NodeOrder node_order_;
  double start_;
  double end_;
  Status status_ = Status::kOk;
  std::int64_t step_ = 0;
  std::int64_t step_limit_ = kNoStepLimit;
  bool in_lock_step_ = false;
  std::int64_t steps_ = 0;
  std::string message_;
  std::int64_t busy_count_ = 0;
  std::uint32_t first_busy_ = 0;
  std::int64_t first_ended_ = -1;
  std::uint64_t polls_ = 0, visits_ = 0;
  // With a pace: the time at which each node polls its endpoint; kNoDeadline: at the next event.
  std::vector<std::uint64_t> poll_ns_;
  std::uint64_t late_polls_ = 0;
};

RunResult run(Network& network, Machines& machines, const Tick& tick) {
  return Runner(network, machines, tick).free_run();
}

RunResult run_lock_step(Network& network, Machines& machines, std::uint32_t latency_ticks,
                        const Tick& tick) {
  return Runner(network, machines, tick).lock_step(latency_ticks);
}

std::int64_t first_to_end(Network& network, Machines& machines, std::uint64_t until_ns) {
  return Runner(network, machines, nullptr).first_to_end(until_ns);
}

RunResult run(Network& network, const std::vector<Machine*>& machines) {
  Pointers all(machines);
  return run(network, all);
}

RunResult run_lock_step(Network& network, const std::vector<Machine*>& machines,
                        std::uint32_t latency_ticks) {
  Pointers all(machines);
  return run_lock_step(network, all, latency_ticks);
}

}  // namespace espalier::sim
