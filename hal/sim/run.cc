#include <algorithm>
#include <bit>
#include <limits>

#include "hal/sim/sim.h"

namespace espalier::sim {
namespace {

constexpr std::uint64_t kNoDeadline = std::numeric_limits<std::uint64_t>::max();
// The network counts picoseconds: no time after this one comes.
constexpr std::uint64_t kEndOfTime = kNoDeadline / 1000 - 1;
constexpr std::int64_t kNoHorizon = std::numeric_limits<std::int64_t>::max();
// A machine that asks to be polled at once, again and again, and does nothing, is broken.
constexpr int kMaxIdlePolls = 1'000'000;
// So is a program whose machines are busy through this many steps in which no block moves.
constexpr int kMaxIdleSteps = 65'536;

// The least of one value a node, updated in O(log n).
class Deadlines {
 public:
  explicit Deadlines(std::size_t nodes)
      : leaves_(std::bit_ceil(std::max<std::size_t>(nodes, 1))), least_(2 * leaves_, kNoDeadline) {}
  void set(std::size_t node, std::uint64_t value) {
    std::size_t i = leaves_ + node;
    if (least_[i] == value) return;
    least_[i] = value;
    for (i /= 2; i > 0; i /= 2) least_[i] = std::min(least_[2 * i], least_[2 * i + 1]);
  }
  [[nodiscard]] std::uint64_t least() const { return least_[1]; }
  [[nodiscard]] std::uint32_t node() const {
    std::size_t i = 1;
    while (i < leaves_) i = least_[2 * i] == least_[1] ? 2 * i : 2 * i + 1;
    return static_cast<std::uint32_t>(i - leaves_);
  }

 private:
  std::size_t leaves_;
  std::vector<std::uint64_t> least_;
};

class Runner {
 public:
  Runner(Network& network, const std::vector<Machine*>& machines)
      : network_(network),
        machines_(machines),
        busy_(machines.size(), false),
        deadlines_(machines.size()),
        start_(network.now()),
        end_(start_) {}

  RunResult free_run() {
    poll_all();
    while (message_.empty() && any_busy()) {
      poll_touched();
      if (!any_busy()) break;
      if (deadlines_.least() <= network_.now_ns()) {
        poll(deadlines_.node());
      } else if (!network_.advance(deadlines_.least()) && deadlines_.least() == kNoDeadline) {
        fail(Status::kStalled, stuck());
      }
    }
    return result();
  }

  RunResult lock_step(std::uint32_t latency_ticks) {
    int idle = 0;
    for (std::int64_t step = 0;; ++step) {
      network_.begin_step();
      set_horizon(step + 1);
      settle();
      if (status_ != Status::kOk || !message_.empty() || any_dead()) break;
      bool moved = false;
      const std::string wrong = network_.end_step(latency_ticks, moved);
      if (!wrong.empty()) {
        fail(Status::kUnforeseen, "step " + std::to_string(step) + ": " + wrong);
        break;
      }
      if (moved) steps_ = step + 1;
      if (!any_busy()) break;
      idle = moved ? 0 : idle + 1;
      if (idle > kMaxIdleSteps) fail(Status::kStalled, stuck());
    }
    set_horizon(kNoHorizon);
    // To find a dead node, and for a machine that failed to tell the others, takes deadlines.
    return message_.empty() ? free_run() : result();
  }

 private:
  [[nodiscard]] bool here(std::uint32_t node) const {
    return machines_[node] != nullptr && network_.alive(node);
  }

  void fail(Status status, const std::string& message) {
    if (status_ == Status::kOk) status_ = status;
    message_ = message;
  }

  void poll_all() {
    for (std::uint32_t v = 0; v < machines_.size(); ++v) poll(v);
  }

  void poll_touched() {
    std::uint32_t node = 0;
    while (network_.next_touched(node)) {
      if (node < machines_.size() && !waits(node)) poll(node);
    }
  }

  // Whether the node, at whose endpoint something has happened, looks at it later: it is woken
  // then.
  bool waits(std::uint32_t node) {
    if (network_.model().pace == 0) return false;
    const std::uint64_t now = network_.now_ns();
    if (looks_at_.empty()) looks_at_.resize(machines_.size(), kNoDeadline);
    std::uint64_t& at = looks_at_[node];
    if (at == kNoDeadline) {
      at = now + network_.delay_ns(node, ++looks_);
      network_.wake(node, at);
    }
    if (now < at) return true;
    at = kNoDeadline;
    return false;
  }

  // Polls until nothing more is to be done before something comes.
  void poll(std::uint32_t node) {
    if (!here(node)) {
      busy_count_ -= busy_[node] ? 1 : 0;
      busy_[node] = false;
      deadlines_.set(node, kNoDeadline);
      return;
    }
    Machine& machine = *machines_[node];
    std::uint64_t deadline = kNoDeadline;
    for (int idle = 0;; ++idle) {
      const std::uint64_t before = network_.activity(node);
      note(node, machine.poll());
      deadline = busy_[node] ? machine.next_deadline() : kNoDeadline;
      if (deadline > kEndOfTime) deadline = kNoDeadline;
      if (network_.activity(node) != before || network_.pending(node)) {
        idle = 0;
      } else if (deadline > network_.now_ns()) {
        break;
      }
      if (idle >= kMaxIdlePolls) {
        fail(Status::kStalled,
             "node " + std::to_string(node) + ": its machine wants to be polled at once for ever");
        break;
      }
    }
    deadlines_.set(node, deadline);
  }

  void note(std::uint32_t node, Status status) {
    const bool busy = status == Status::kBusy;
    if (busy != busy_[node]) {
      busy_[node] = busy;
      busy_count_ += busy ? 1 : -1;
      if (!busy) end_ = network_.now();
    }
    if (!busy && status != Status::kOk && status_ == Status::kOk) status_ = status;
  }

  // A node that was killed since its last poll is busy no more.
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

  [[nodiscard]] bool any_dead() const {
    for (std::uint32_t v = 0; v < network_.nodes(); ++v) {
      if (!network_.alive(v)) return true;
    }
    return false;
  }

  void settle() {
    poll_all();
    do {
      poll_touched();
    } while (message_.empty() && network_.advance(kNoDeadline));
  }

  void set_horizon(std::int64_t horizon) {
    for (Machine* machine : machines_) {
      if (machine != nullptr) machine->set_horizon(horizon);
    }
  }

  [[nodiscard]] std::string stuck() const {
    for (std::uint32_t v = 0; v < machines_.size(); ++v) {
      if (!busy_[v] || !here(v)) continue;
      const StallReport report = machines_[v]->stall_report();
      std::string text = "node " + std::to_string(v) + " is busy and nothing will ever happen";
      if (report.waiting) {
        text += "; in step " + std::to_string(report.step) + " it awaits a " +
                (report.sending ? "send to" : "receive from") + " node " +
                std::to_string(report.peer);
      }
      return text;
    }
    return "";
  }

  [[nodiscard]] RunResult result() const { return {status_, end_ - start_, steps_, message_}; }

  Network& network_;
  const std::vector<Machine*>& machines_;
  std::vector<bool> busy_;
  Deadlines deadlines_;
  double start_;
  double end_;
  Status status_ = Status::kOk;
  std::int64_t steps_ = 0;
  std::string message_;
  std::int64_t busy_count_ = 0;
  std::uint32_t first_busy_ = 0;
  // With a pace: when each node will look at its endpoint; kNoDeadline: as soon as something comes.
  std::vector<std::uint64_t> looks_at_;
  std::uint64_t looks_ = 0;
};

}  // namespace

RunResult run(Network& network, const std::vector<Machine*>& machines) {
  return Runner(network, machines).free_run();
}

RunResult run_lock_step(Network& network, const std::vector<Machine*>& machines,
                        std::uint32_t latency_ticks) {
  return Runner(network, machines).lock_step(latency_ticks);
}

}  // namespace espalier::sim
